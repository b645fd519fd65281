"""Show figures of the reference run with their intervals, variant by variant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from bench_runner.results.information import SAVE
from bench_runner.results.records import Run
from bench_runner.results.statistics import FEWEST_ROUNDS, Interval
from bench_runner.variants import OperationName, Variant, operation_name_of
from docs._generate.reference import Reference
from reports.analysis.access.loaders import WHOLE, has_loaders, loaders_of
from reports.analysis.access.uses import NO_VERDICT
from reports.analysis.columns import Column, Role
from reports.analysis.fidelity import matrices
from reports.analysis.labels import short_labels
from reports.analysis.tables import Row, Table, unit_of, value_text
from reports.analysis.units import spread_text
from reports.text.page import markdown_table

READS_ALL, FROM_MEMORY = "†", "‡"
"""The marks of the reports for calls that read everything, and for answers from a library's own memory."""
LESS, FEW = "<", "n="
MARKS = {
    "**": "**bold**: best of its column",
    "=": "`=`: tied with it",
    NO_VERDICT: f"`{NO_VERDICT}`: too few rounds for a verdict",
    READS_ALL: f"`{READS_ALL}`: reads or saves everything",
    FROM_MEMORY: f"`{FROM_MEMORY}`: from the library's memory",
    LESS: f"`{LESS}`: below what can be measured",
    "±": "`±`: larger half of the 95 % interval",
    FEW: "`n=`: rounds, if under five, with minimum and maximum",
}


@dataclass(frozen=True)
class Head:
    """A column of a page's table: one figure of one table of the reference run."""

    title: str
    run: Run
    table: Table
    column: Column


def grid(heads: Sequence[Head]) -> str:
    """Return one row for each variant and one column for each head. The best is bold; marks are explained below.

    Variants that stand apart, because they return other data, have no rank and no row.
    """
    variants = [row.variant for head in heads for row in head.table.rows]
    names = short_labels(each for each in dict.fromkeys(variants) if not each.is_apart and not each.is_raw_io)
    units = [unit_of(head.table, head.column) for head in heads]
    titles = [f"{head.title}, {unit.name}" for head, unit in zip(heads, units, strict=True)]
    lines = [
        (name, *(_cell(head, variant) for head in heads)) for variant, name in sorted(names.items(), key=_by_format)
    ]
    lines = [line for line in lines if set(line[1:]) != {"-"}]
    shown = " ".join(cell for line in lines for cell in line[1:])
    marks = shown.replace(FEW, "")
    notes = [text for mark, text in MARKS.items() if mark in (shown if mark == FEW else marks)]
    return "\n\n".join([markdown_table(("", *titles), lines), " ".join(f"{each}." for each in notes)])


def _by_format(named: tuple[Variant, str]) -> tuple[str, int]:
    """Sort formats by name, and variants of a format from the plain call to the most settings."""
    variant, _ = named
    return variant.format_name, len(variant)


def _cell(head: Head, variant: Variant) -> str:
    """Return a figure with its spread and marks, and the number of rounds if there are few."""
    row = next((row for row in head.table.rows if row.variant == variant), None)
    interval = row.interval(head.column) if row else None
    if row is None or interval is None or row.wrong(head.column.operation):
        return "-"
    value = value_text(head.table, row, head.column, unit_of(head.table, head.column)) or "-"
    half = "" if value.startswith(LESS) else _spread(interval)
    if interval.rounds < FEWEST_ROUNDS:
        return f"{value}{_own(head, row)}{half} {FEW}{interval.rounds}"
    told = f"{value}{half}{_mark(head, row)}"
    if head.table.mark(head.column, variant) != "*":
        return told
    # The smallest of several figures below what can be measured is not known.
    return f"{told}=" if value.startswith(LESS) else f"**{told}**"


def _spread(interval: Interval) -> str:
    """Return the larger half of the interval, or under five rounds the smallest and the largest value."""
    if not interval.median:
        return ""
    if interval.low is None or interval.high is None:
        return f" {spread_text(interval)}" if interval.maximum > interval.minimum else ""
    half = max(interval.high - interval.median, interval.median - interval.low) / interval.median
    return f" ±{half:.0%}" if half >= 0.005 else ""


def _own(head: Head, row: Row) -> str:
    """Return the mark of a figure that does not depend on other variants."""
    if row.fallback(head.column.operation):
        return READS_ALL
    return FROM_MEMORY if row.cached(head.column.operation) else ""


def _mark(head: Head, row: Row) -> str:
    if own := _own(head, row):
        return own
    ratio = head.table.ranks(head.column).get(row.variant)
    if ratio is not None and ratio.tied is None:
        return NO_VERDICT
    return "=" if head.table.mark(head.column, row.variant) == "=" else ""


TAKE, PROJECT = operation_name_of("take[rows=10,handle=kept]"), operation_name_of("project[columns=10,handle=reopened]")
SAVE_STREAM, READ_STREAM = operation_name_of("stream-save[rows=8192]"), operation_name_of("stream-read[rows=8192]")
COLUMNS = re.compile(r"wide\[columns=(\d+),rows=8\]")
VALUES = re.compile(r"values\[bytes=(\d+)(,kind=fixed)?\]")
QUERIES = re.compile(r"query\[groups=([\d.]+)\]")
QUESTIONS = re.compile(r"ask\[query=q(\d)\]")
TITLES = {
    "save": "ingest",
    "get[documents=100]": "get 100",
    "fields[paths=2]": "2 fields of all",
    "range[selectivity=0.001,paths=1,by=scan]": "0.1 % by scan",
    "ingest[updates=0.5,indexes=none]": "half updates",
}
"""What the page calls the operations on documents."""
IN_THE_REPORT = {
    *("ask[query=q3]", "ask[query=q4]", "ask[query=q5]"),
    *("ingest[updates=0.5,indexes=2]", "range[selectivity=0.001,paths=1,by=index]"),
}
"""Operations on documents that the page leaves out, because a table of 14 columns is too wide to read."""
IN_THESIS = ("csv", "hdf5-table", "json", "orc", "parquet")
"""The formats that the thesis's own code saves and reads by dask."""
PARALLEL = (
    ("save", "save", "save-parallel[partitions={}]"),
    ("read", "read", "read-parallel[partitions={},result=gathered]"),
)
"""Word, operation on one file, and operation on partitions."""
WAITS = {"first batch ms": 4, "p99 gap ms": 5}
"""The waits of a training loop -> their index among the texts of a loader."""


def encodings(reference: Reference) -> str:
    """Return the time to take ten rows by size of the values. Values of fixed size come last. The page leaves out 4 B
    and 16 KiB, which the report has."""
    return _told(
        _head(_value_size(table.dataset), run, table, TAKE)
        for run, table in reference.of("encodings")
        if table.dataset not in ("values[bytes=4]", "values[bytes=16384]")
    )


def _value_size(dataset: str) -> str:
    found = VALUES.fullmatch(dataset)
    if found is None:
        return dataset
    size_bytes = int(found[1])
    size = f"{size_bytes // 1024} KiB" if size_bytes >= 1024 else f"{size_bytes} B"
    return f"{size} each" if found[2] else size


def writing(reference: Reference) -> str:
    """Return times and peak memory of saving and reading the data set `events` batch by batch, and its size. Each
    library has a row for its plain call and, if the size of units can be set, one for the setting with the lowest
    peak."""
    calls = (("stream-save", SAVE_STREAM), ("stream-read", READ_STREAM))
    wanted = [(name, operation, Role.TIME) for name, operation in calls]
    wanted += [(f"{name} peak", operation, Role.MEMORY) for name, operation in calls]
    ((run, table),) = ((run, table) for run, table in reference.of("writing") if table.dataset == "events")
    peak = table.columns.find(SAVE_STREAM, Role.MEMORY)
    libraries: dict[tuple[str, str | None], list[tuple[float, Row]]] = {}
    for row in table.rows:
        interval = row.interval(peak) if peak else None
        if interval is not None:
            libraries.setdefault((row.variant.format_name, row.variant.engine), []).append((interval.median, row))
    shown = [
        row
        for measured in libraries.values()
        for row in (
            min((row for _, row in measured), key=lambda row: len(row.variant)),
            min(measured, key=itemgetter(0))[1],
        )
    ]
    kept = replace(table, rows=tuple(row for row in table.rows if row in shown))
    return _told(
        _head(title, run, kept, operation, role) for title, operation, role in (*wanted, ("size", SAVE, Role.SIZE))
    )


def wide(reference: Reference) -> str:
    """Return the time to read ten columns of a newly opened file, by the number of its columns."""
    return _told(
        _head(f"{int(shape[1]):,} columns", run, table, PROJECT)
        for run, table in reference.of("wide")
        if (shape := COLUMNS.fullmatch(table.dataset)) is not None
    )


def near_storage(reference: Reference) -> str:
    """Return the time of queries over a network of 1,000 Mbit/s by the share of row groups that they read."""
    return _told(
        _head(f"{100 * float(share[1]):g} %", run, table, column.operation)
        for run, table in reference.of("near-storage")
        if table.conditions.network == "1000mbit"
        for column in table.columns.times
        if (share := QUERIES.fullmatch(column.operation)) is not None
    )


def documents(reference: Reference) -> str:
    """Return size and times of ingestion, look-ups and the first two questions of each store, for one data set."""
    return _told(
        _head(title, run, table, operation, role)
        for run, table in reference.of("documents")
        if table.dataset == "bluesky-events"
        for title, operation, role in (
            ("size", SAVE, Role.SIZE),
            *(
                (_title(operation), operation, Role.TIME)
                for operation in table.columns.operations
                if operation not in IN_THE_REPORT
            ),
        )
    )


def documents_fidelity(reference: Reference) -> str:
    """Return the kinds of documents that each store changes or refuses, as found by round trips."""
    (run,) = (run for run in reference.runs if run.folder.name == "documents-fidelity")
    (matrix,) = matrices(run)
    lines = ["| store | comes back changed | refused |", "| --- | --- | --- |"]
    for variant, label in matrix.labels.items():
        outcomes = {kind: matrix.cells[variant, kind][0] for kind in matrix.kinds}
        changed, refused = (
            ", ".join(kind for kind, verdict in outcomes.items() if verdict is not None and verdict.outcome == outcome)
            for outcome in ("lossy", "refused")
        )
        lines.append(f"| {label} | {changed or '-'} | {refused or '-'} |")
    return "\n".join(lines)


def _title(operation: OperationName) -> str:
    return TITLES.get(operation) or QUESTIONS.sub(r"question \1", operation)


def _head(title: str, run: Run, table: Table, operation: OperationName, role: Role = Role.TIME) -> Head | None:
    column = table.columns.find(operation, role)
    return None if column is None else Head(title, run, table, column)


def _told(found: Iterable[Head | None]) -> str:
    """Return a grid of the columns that were measured, below a line with rows, cache state and machine."""
    heads = [head for head in found if head is not None]
    most = max((head.table for head in heads), key=lambda table: table.data_rows)
    least = min(head.table.data_rows for head in heads)
    amount = most.amount if least == most.data_rows else f"{least:,} to {most.amount}"
    machine = heads[0].run.info.machine.cpu
    return f"{amount}, cache {most.conditions.cache}, on {machine}:\n\n{grid(heads)}"


def parallel(reference: Reference) -> str:
    """Return the times of the thesis's five formats on the data set `eq`: on one file, and in 1, 2 and 4 partitions."""
    ((run, table),) = ((run, table) for run, table in reference.of("parallel") if table.dataset == "eq")
    own = replace(table, rows=tuple(row for row in table.rows if row.variant.format_name in IN_THESIS))
    return _told(
        _head(f"{work} {name}", run, own, operation_name_of(operation))
        for work, plain, divided in PARALLEL
        for name, operation in (("one file", plain), *((f"N={n}", divided.format(n)) for n in (1, 2, 4)))
    )


def training(reference: Reference) -> str:
    """Return rows per second for each order of the rows, and the waits for the most shuffled order."""
    told = []
    for run, table in reference.of("training"):
        if has_loaders(table):
            told += [f"`{table.dataset}`, {table.amount}, on {run.info.machine.cpu}:", _orders(run, table)]
    return "\n\n".join(told)


def _orders(run: Run, table: Table) -> str:
    orders = list(loaders_of(run, table))
    rounds = {
        (run.info.operation(name).title, row.label): cell.rounds
        for row in table.rows
        for name, cell in row.cells.items()
    }
    titles = [f"{order.title.rpartition(', ')[2]}, rows/s" for order in orders]
    lines = []
    for name in dict.fromkeys(label for order in orders for label, _ in order.lines):
        found = [dict(order.lines).get(name) for order in orders]
        rates = [
            _rate(texts, rounds[order.title, name]) if texts else "-"
            for order, texts in zip(orders, found, strict=True)
        ]
        waits = [found[0][place] if found[0] else "-" for place in WAITS.values()]
        lines.append((name, *rates, *waits))
    return markdown_table(("", *titles, *WAITS), lines)


def _rate(texts: Sequence[str], rounds: int) -> str:
    """Return rows per second with their spread, and the share of the epoch that was read if it was ended early."""
    rate, spread, share = texts[0], texts[1], texts[-1]
    few = f"{FEW}{rounds}" if rounds < FEWEST_ROUNDS else ""
    return " ".join(filter(None, [rate, spread, few, "" if share == WHOLE else f"of {share}"]))
