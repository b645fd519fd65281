"""One trait of the data or of the use, all others equal: at which value does the winner change?

`run SUITE --over TRAIT` makes points of a trait; this module says which traits there are and at which values they are
measured where nobody names others. It is data: bench_runner.plan.sweeping makes data sets and operations of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bench_runner.suites.rules import CHOICE, Spelled
from bench_runner.suites.suite import Quick, Suite

BASE = "traits"
"""The data set of which every trait is a parameter."""
BASE_ROWS = 1_000_000
"""Its rows where neither the user nor the trait says how many."""


@dataclass(frozen=True, kw_only=True)
class Trait:
    """One thing that is varied: of the use, where `operation` spells what is timed with `{}` for the value, else the
    parameter of the data set that is called like the trait."""

    meaning: str
    points: tuple[str, ...]
    """Where nobody names others."""
    operation: str = ""
    base: Mapping[str, str] = field(default_factory=dict)
    """In what the table differs from BASE as it is, at all points; `{rows}` stands for its rows."""
    rows_each: int = 0
    """So many rows a point needs for each 1 of its value: what a table with fewer cannot have is left out."""


TRAITS: Mapping[str, Trait] = {
    "distinct": Trait(
        meaning="distinct values of each column",
        points=("10", "100", "1000", "10000", "100000", "1000000"),
        rows_each=1,
    ),
    "run_length": Trait(
        meaning="mean number of equal values in a row", points=("1", "3", "10", "30", "100", "300"), rows_each=1_200
    ),
    "nulls": Trait(meaning="share of missing values", points=("0", "0.1", "0.3", "0.5", "0.7", "0.9")),
    "width": Trait(
        meaning="bytes of each text, all of them different",
        points=("8", "32", "128", "512", "2048"),
        base={"distinct": "{rows}", "rows": "20000"},
    ),
    "columns": Trait(meaning="number of columns", points=("4", "16", "64", "256", "1024"), base={"rows": "5000"}),
    "rows": Trait(
        meaning="rows of the table", points=("100", "1000", "10000", "100000", "1000000"), base={"distinct": "100"}
    ),
    "rows_taken": Trait(
        meaning="rows of one call that takes some by their numbers",
        points=("1", "10", "100", "1000", "10000"),
        operation="take[rows={},handle=kept]",
        rows_each=1,
    ),
    "columns_read": Trait(
        meaning="columns that are read of 32",
        points=("1", "2", "4", "8", "16", "32"),
        operation="project[columns={}]",
        base={"columns": "32", "rows": "200000"},
    ),
    "selectivity": Trait(
        meaning="share of the rows that meet a condition",
        points=("0.001", "0.01", "0.1", "0.5", "1"),
        operation="scan[selectivity={},kind=range]",
    ),
}


class Sweep(Suite):
    """One whose operations and data are points of lines."""

    operations_over_data = ("save", "read", "project[columns=2]", "take[rows=100,handle=kept]")
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
            "'run tabular --over' has them",
            "hdf5-pytables, sqlite-table": "hold rows: 'run access' has them",
        },
    ),
    quick=Quick(rows=50_000, reason="50,000 rows"),
    reasons={
        "traits": "a table of which one trait can be varied while all others stay",
        "without --over": "columns read, rows taken and selectivity share one stored copy; traits of the data need one "
        "for each of their values, and are asked for by name",
        "one trait at a time": "everything crossed would take days, and no line would have one cause",
        "target arrow": "making a DataFrame of 20 rows takes longer than reading them",
        "the variants": "formats that have calls for parts of a table, with the settings that decide what a part costs",
    },
)
