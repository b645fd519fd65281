"""Figures of the reference run for the page of questions: how two variants compare at one operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench_runner.results.figures import FIGURES
from bench_runner.results.statistics import Interval, Ratio, Ratios, median_interval
from bench_runner.variants import operation_name_of, variant_of
from docs._generate.reference import Reference
from reports.analysis.tables import Row, Table
from reports.analysis.units import MEGABYTES, MILLISECONDS, SECONDS, Unit, number_text

WALL, SIZE, PEAK = "wall_ns", "size_bytes", "peak_private_bytes"
PARQUET, CSV = "parquet[engine=pyarrow,codec=none]", "csv[engine=pandas]"


@dataclass(frozen=True)
class Comparison:
    """A figure of one operation on one data set of a run, for a variant and for another that it is compared with.

    `said` has the placeholders {one} and {other}, the values with their units, and {ratio}, one divided by the other,
    or {share}, the same in percent.
    """

    run: str
    dataset: str
    operation: str
    one: str
    other: str
    said: str
    figure: str = WALL
    threads: str = "default"


_ZSTD, _SNAPPY = "parquet[engine=pyarrow,codec=zstd,level={}]", "parquet[engine=pyarrow,codec=snappy]"
_SCAN = "scan[selectivity=0.01,kind=range]"
_TAKE = "take[rows=100,handle=kept]"
COMPARISONS: Mapping[str, tuple[Comparison, ...]] = {
    "codec": (
        Comparison(
            *("levels", "core", "save", _ZSTD.format(1), _SNAPPY),
            "zstd at level 1 makes a file of {share} of the size of snappy's ({one} and {other})",
            SIZE,
        ),
        Comparison(
            *("levels", "core", "save", _ZSTD.format(1), _SNAPPY), "saving takes {ratio} times as long as with snappy"
        ),
        Comparison(*("levels", "core", "read", _ZSTD.format(1), _SNAPPY), "reading takes {ratio} times as long"),
        Comparison(
            *("levels", "core", "save", _ZSTD.format(9), _ZSTD.format(1)),
            "level 9 leaves {share} of the size of level 1",
            SIZE,
        ),
        Comparison(
            *("levels", "core", "save", _ZSTD.format(9), _ZSTD.format(1)),
            "saving at level 9 takes {ratio} times as long as at level 1",
        ),
    ),
    "append": (
        Comparison(
            *("access", "events", "append[rows=1000]", PARQUET, "lance[engine=pylance]"),
            "adding 1,000 rows takes {one} in Parquet, which is written again: {ratio} times as long as in Lance",
        ),
    ),
    "memory": (
        Comparison(
            *("tabular", "core", "read", PARQUET, "feather[engine=pyarrow,codec=none]"),
            "reading a table of 203 MB into a DataFrame has a memory peak of {one} with Parquet, {ratio} times as much "
            "as with Feather",
            PEAK,
        ),
    ),
    "larger-than-memory": (
        Comparison(
            *("writing", "events", "stream-save[rows=8192]", "parquet[engine=pyarrow,codec=none,row_group_rows=16384]"),
            PARQUET,
            "saving batch by batch needs up to {one} in row groups of 16,384 rows, {share} of what those of 1,048,576 "
            "rows need",
            PEAK,
        ),
    ),
    "databases": (
        Comparison(
            *("access", "events", _SCAN, "sqlite-table[engine=sqlite3]", "duckdb-table[engine=duckdb]"),
            "a filter that 1 % of the rows pass takes {one} in SQLite, {ratio} times as long as in a file of DuckDB",
        ),
        Comparison(
            *("access", "events", _SCAN, "parquet[engine=duckdb,codec=none]", "duckdb-table[engine=duckdb]"),
            "DuckDB on Parquet takes {ratio} times as long as on its own file",
        ),
    ),
    "parts": (
        Comparison(
            *("access", "events", "project[columns=4]", CSV.replace("pandas", "pyarrow"), PARQUET),
            "4 of 12 columns take {ratio} times as long from CSV as from Parquet",
        ),
        Comparison(
            *("access", "events", _TAKE, PARQUET, "lance[engine=pylance]"),
            "100 rows by their numbers take {one} from Parquet and {other} from Lance, {ratio} times as long",
        ),
    ),
    "images": (
        Comparison(
            *("image", "cifar-like", "read", "png[engine=pillow]", "lmdb[engine=lmdb]"),
            "reading 50,000 images of 32 x 32 pixels takes {one} from PNG files and {other} from LMDB",
        ),
    ),
    "shuffled": (
        Comparison(
            *("training", "vectors", "batches[rows=64,order=shuffled]", PARQUET, "lance[engine=pylance]"),
            "a mini-batch of 64 random vectors of 4 kB takes {one} from Parquet and {other} from Lance",
        ),
        Comparison(
            *("training", "vectors", "batches[rows=64,order=shuffled]", "feather[engine=pyarrow,codec=none]"),
            "lance[engine=pylance]",
            "from Feather it takes {ratio} times as long as from Lance",
        ),
    ),
    "calls": (
        Comparison(
            *("engines", "core", "read", "csv[engine=polars]", CSV),
            "reading CSV into a DataFrame takes {ratio} times as long by polars as by pandas, with two threads",
        ),
        Comparison(
            *("engines", "core", "read", "parquet[engine=fastparquet,codec=none]", PARQUET),
            "reading Parquet by fastparquet takes {ratio} times as long as by pyarrow",
        ),
    ),
    "hundred-times": (
        Comparison(
            *("tabular", "core", "read", CSV, PARQUET),
            "CSV takes {ratio} times as long to read as Parquet",
        ),
        Comparison(
            *("tabular", "core", "read", CSV, "feather[engine=pyarrow,codec=none]"),
            "it takes {ratio} times as long as Feather",
        ),
    ),
    "nested": (
        Comparison(
            *("documents", "bluesky-events", "ask[query=q1]", "sqlite-json[engine=sqlite3]"),
            "duckdb-json[engine=duckdb]",
            "counting the documents of each kind takes {one} in SQLite, {ratio} times as long as in DuckDB, both with "
            "JSON as text",
        ),
    ),
    "rewrite": (
        Comparison(
            *("access", "events", "save", PARQUET, "duckdb-table[engine=duckdb]"),
            "writing the table of 219 MB again takes {one} in Parquet",
        ),
    ),
    "row-groups": (
        Comparison(
            *("row-groups", "traits", _SCAN, "parquet[engine=pyarrow,codec=none,row_group_rows=2048]"),
            "parquet[engine=pyarrow,codec=none,row_group_rows=131072]",
            "a filter on an unsorted column takes {ratio} times as long in row groups of 2,048 rows as in those of "
            "131,072",
        ),
        Comparison(
            *("row-groups", "traits", "read", "parquet[engine=pyarrow,codec=none,row_group_rows=2048]"),
            "parquet[engine=pyarrow,codec=none,row_group_rows=131072]",
            "reading all takes {ratio} times as long",
        ),
    ),
    "files": (
        Comparison(
            *("files", "traits", "read", "parquet[engine=pyarrow,codec=none,files=50]"),
            "parquet[engine=pyarrow,codec=none,files=2]",
            "reading all takes {ratio} times as long from 50 files of 20,000 rows as from 2 of 500,000 ({one} and "
            "{other})",
        ),
    ),
    "small": (
        Comparison(
            *("small", "traits[distinct=100,rows=45000]", "read", CSV, PARQUET),
            "reading 5 MB takes {one} from CSV and {other} from Parquet",
        ),
    ),
}


def text_of(reference: Reference, comparisons: tuple[Comparison, ...]) -> str:
    """Return the comparisons as one sentence, with the data and its rows. Raises LookupError if the reference run lacks
    a figure."""
    run, table = _table(reference, comparisons[0])
    said = [_said(reference, each) for each in comparisons]
    # In Markdown, a line that begins with a comment is not formatted.
    sentences = " ".join(f"{text[0].upper()}{text[1:]}." for text in said)
    return f"\n`{table.dataset}`, {table.amount} (run `{run}`). {sentences}\n"


def _table(reference: Reference, asked: Comparison) -> tuple[str, Table]:
    found = next(
        (
            (run.folder.name, table)
            for run, table in reference.tables
            if run.folder.name == asked.run
            and table.dataset == asked.dataset
            and table.conditions.threads == asked.threads
            and {asked.one, asked.other} <= {row.variant for row in table.rows}
        ),
        None,
    )
    if found is None:
        raise LookupError(f"{asked.run}: no table of {asked.dataset} has {asked.one} and {asked.other}")
    return found


def _said(reference: Reference, asked: Comparison) -> str:
    _, table = _table(reference, asked)
    by_round = {row.variant: _by_round(row, asked) for row in table.rows}
    one, other = variant_of(asked.one), variant_of(asked.other)
    exact = FIGURES[asked.figure].exact
    ratio = Ratios({variant: values for variant, values in by_round.items() if values}, exact=exact).of(one, other)
    if ratio is None:
        raise LookupError(f"{asked.run}: {asked.operation} of {asked.one} or {asked.other} has no {asked.figure}")
    return asked.said.format(
        one=_value(by_round[one], asked.figure, exact=exact),
        other=_value(by_round[other], asked.figure, exact=exact),
        ratio=_ratio(ratio),
        share=_share(ratio),
    )


def _by_round(row: Row, asked: Comparison) -> Mapping[int, int]:
    cell = row.cells.get(operation_name_of(asked.operation))
    return {} if cell is None else cell.by_round.get(asked.figure, {})


def _ratio(ratio: Ratio) -> str:
    if ratio.low is None or ratio.high is None:
        return f"{number_text(ratio.ratio)} (n={ratio.rounds})"
    if ratio.low == ratio.high:
        return number_text(ratio.ratio)
    return f"{number_text(ratio.ratio)} ({number_text(ratio.low)} to {number_text(ratio.high)})"


def _share(ratio: Ratio) -> str:
    """Return a ratio below 1 in percent."""
    if ratio.low is None or ratio.high is None or ratio.low == ratio.high:
        return f"{ratio.ratio:.0%}"
    return f"{ratio.ratio:.0%} ({ratio.low:.0%} to {ratio.high:.0%})"


def _value(by_round: Mapping[int, int], figure: str, *, exact: bool) -> str:
    interval = median_interval([*by_round.values()], exact=exact)
    unit = _unit(interval, figure)
    told = f"{unit.text(interval.median)} {unit.name}"
    if exact:
        return told
    if interval.low is None or interval.high is None:
        return f"{told} (n={interval.rounds})"
    return f"{told} ({unit.text(interval.low)} to {unit.text(interval.high)})"


def _unit(interval: Interval, figure: str) -> Unit:
    if not figure.endswith("_ns"):
        return MEGABYTES
    return SECONDS if interval.median >= 1e9 else MILLISECONDS
