"""The suite `sweep`, and the traits that can be varied. Varying a trait shows at which value another format becomes the
best.

A trait is a property of the data, such as the number of columns, or of the operation, such as the number of rows read.
`run SUITE --over TRAIT` measures several values of a trait. These values are called points. This module defines the
traits and their default points. bench_runner.plan.sweeping makes data sets and operations from points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bench_runner.suites.rules import CHOICE, Spelled
from bench_runner.suites.suite import Quick, Suite

BASE = "traits"
"""Name of the data set that has a parameter for every trait of the data."""
BASE_ROWS = 1_000_000
"""Number of rows of BASE if neither the user nor the trait sets this number."""


@dataclass(frozen=True, kw_only=True)
class Trait:
    """A property that is varied.

    A trait of an operation has the operation's full name in `operation`, with `{}` in place of the value. A trait of
    variants is a setting with the same name. A trait of the data is a parameter of the data set with the same name.
    """

    meaning: str
    points: tuple[str, ...]
    """The values of the trait that are measured by default."""
    operation: str = ""
    variants: tuple[str, ...] = ()
    """If the trait is a setting of variants: the full names of the variants, with `{}` in place of the value."""
    base: Mapping[str, str] = field(default_factory=dict)
    """Parameters of the data set that differ from the defaults of BASE, at all points of this trait. `{rows}` stands
    for the number of rows."""
    rows_each: int = 0
    """Rows required per unit of a point's value: a value of 10 needs a table of at least 10 times as many rows. Points
    that need more rows than the table has are left out."""


TRAITS: Mapping[str, Trait] = {
    "distinct": Trait(
        meaning="distinct values of each column",
        points=("10", "100", "1000", "10000", "100000", "1000000"),
        rows_each=1,
    ),
    "run_length": Trait(
        meaning="mean number of consecutive equal values", points=("1", "3", "10", "30", "100", "300"), rows_each=1_200
    ),
    "nulls": Trait(meaning="share of missing values", points=("0", "0.1", "0.3", "0.5", "0.7", "0.9")),
    "width": Trait(
        meaning="bytes of each text, all texts different",
        points=("8", "32", "128", "512", "2048"),
        base={"distinct": "{rows}", "rows": "20000"},
    ),
    "columns": Trait(meaning="number of columns", points=("4", "16", "64", "256", "1024"), base={"rows": "5000"}),
    "rows": Trait(
        meaning="rows of the table", points=("100", "1000", "10000", "100000", "1000000"), base={"distinct": "100"}
    ),
    "rows_taken": Trait(
        meaning="rows that one call takes by their numbers",
        points=("1", "10", "100", "1000", "10000"),
        operation="take[rows={},handle=kept]",
        rows_each=1,
    ),
    "columns_read": Trait(
        meaning="columns read, of 32",
        points=("1", "2", "4", "8", "16", "32"),
        operation="project[columns={}]",
        base={"columns": "32", "rows": "200000"},
    ),
    "selectivity": Trait(
        meaning="share of the rows that meet a condition",
        points=("0.001", "0.01", "0.1", "0.5", "1"),
        operation="scan[selectivity={},kind=range]",
    ),
    "row_group_rows": Trait(
        meaning="rows of a row group of Parquet",
        points=("2048", "8192", "32768", "131072", "524288"),
        variants=(
            "parquet[engine=pyarrow,codec=none,row_group_rows={}]",
            "parquet[engine=pyarrow,codec=zstd,level=1,row_group_rows={}]",
        ),
    ),
    "files": Trait(
        meaning="Parquet files that hold the table",
        points=("2", "10", "50", "250", "1000"),
        variants=("parquet[engine=pyarrow,codec=none,files={}]", "parquet[engine=pyarrow,codec=zstd,level=1,files={}]"),
        rows_each=1,
    ),
}


class Sweep(Suite):
    """A suite whose results are shown as lines in a chart, with a point for each operation or data set."""

    operations_over_data = ("save", "read", "project[columns=2]", "take[rows=100,handle=kept]")
    operations_over_settings = ("save", "read", "project[columns=2]", "scan[selectivity=0.01,kind=range]")
    fallbacks_once = False


SUITE = Sweep(
    name="sweep",
    question="At which value of one trait of the data or the use does the winner change?",
    operations=(
        "save",
        "read",
        *(f"project[columns={columns}]" for columns in (1, 2, 4, 8)),
        *(TRAITS["rows_taken"].operation.format(point) for point in TRAITS["rows_taken"].points),
        *(TRAITS["selectivity"].operation.format(point) for point in TRAITS["selectivity"].points),
    ),
    datasets=(BASE,),
    on_request=("events", "core", "eq", "vectors", "texts", "blobs", "synthetic", "table"),
    target="arrow",
    variants=Spelled(
        tracks=(CHOICE,),
        spelled=(
            "f3[codec=none]",
            "f3[codec=none,rows_per_unit=4096]",
            "feather[engine=pyarrow,codec=none]",
            "feather[engine=pyarrow,codec=lz4]",
            "lance[engine=pylance]",
            "orc[engine=pyarrow,codec=none]",
            "parquet[engine=pyarrow,codec=none]",
            "parquet[engine=pyarrow,codec=none,row_group_rows=8192]",
            "parquet[engine=pyarrow,codec=zstd,level=1]",
            "vortex[engine=vortex-data]",
        ),
        left_out={
            "avro, csv, excel, hdf5-fixed, hdf5-table, json, pickle, xml": "are read whole for every part of a table; "
            "use 'run tabular --over'",
            "hdf5-pytables, sqlite-table": "hold rows: use 'run access'",
        },
    ),
    quick=Quick(rows=50_000, reason="50,000 rows"),
    reasons={
        "traits": "a table where one trait can be varied while all others stay the same",
        "without --over": "columns read, rows taken and selectivity share one stored copy; traits of the data need one "
        "for each of their values, and are measured on request",
        "one trait at a time": "all combinations would take days, and no line would have a single cause",
        "target arrow": "making a DataFrame of 20 rows takes longer than reading them",
        "the variants": "formats with calls for parts of a table, with the settings that decide the cost of a part",
    },
)
