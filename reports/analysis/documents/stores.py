"""Show how fast stores ingest documents, with and without the time of merges. Also show when a query by index is slower
than a scan.

Documents per second and bytes per second are computed from rows, bytes and times. Sections 6.3 and 6.4 of Alkowaileet
and Carey, VLDB 2022, show the same figures for other stores.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from bench_runner.results.records import Run
from bench_runner.results.statistics import CellSummary
from bench_runner.variants import OperationName
from reports.analysis.columns import Role
from reports.analysis.figures import Figures
from reports.analysis.tables import Row, Table
from reports.analysis.units import MILLISECONDS, number_text
from reports.analysis.words import NOTHING, fallback_mark

INPUT, ACCEPTED, WALL, SYNC = "input_bytes", "accepted_ns", "wall_ns", "sync_ns"
RANGE = "range"
_BYTES_A_NS_TO_MB_A_S = 1_000


def has_documents(table: Table) -> bool:
    """Return whether a table has document stores that ingested documents."""
    return any(_ingestions(table))


def documents_of(run: Run, table: Table) -> Iterator[Figures]:
    """Yield one `Figures` for each operation that ingests documents, then the figures of range queries."""
    for operation, rows in _ingestions(table):
        yield _ingestion(run, table, operation, rows)
    yield from _ranges(table)


def _ingestions(table: Table) -> Iterator[tuple[OperationName, list[Row]]]:
    """Yield each operation that ingests documents, with the rows that have figures. The fastest row comes first."""
    for operation in table.columns.operations:
        # A save whose time did not count has a size, but no rate.
        cells = ((row, row.cells[operation].figures) for row in table.rows if operation in row.cells)
        rows = [row for row, figures in cells if INPUT in figures and WALL in figures]
        if rows:
            yield operation, sorted(rows, key=lambda row: row.cells[operation].figures[WALL].median)


def _ingestion(run: Run, table: Table, operation: OperationName, rows: Sequence[Row]) -> Figures:
    lines = tuple((row.label, tuple(_rates(table, row.cells[operation]))) for row in rows)
    title = run.info.operation(operation).title
    return Figures(
        f"{title}: documents and bytes of JSON per second",
        "store",
        ("documents/s", "MB/s", "MB/s before merges", "MB/s with sync", "stored, % of JSON"),
        lines,
        (
            "time until all merges that are due have ended, including closing; before merges: until all documents were "
            "taken. Documents: those of the data set; MB: all JSON Lines that were handed over",
        ),
    )


def _rates(table: Table, cell: CellSummary) -> Iterator[str]:
    yield number_text(1e9 * table.data_rows / cell.figures[WALL].median)
    yield _megabytes_a_second(cell, (WALL,))
    yield _megabytes_a_second(cell, (ACCEPTED,))
    yield _megabytes_a_second(cell, (WALL, SYNC))
    stored = cell.figures.get("size_bytes") or cell.figures.get("growth_bytes")
    yield NOTHING if stored is None else number_text(100 * stored.median / cell.figures[INPUT].median)


def _megabytes_a_second(cell: CellSummary, times: Sequence[str]) -> str:
    """Return MB per second, as the median over rounds of this rate. Stores then have the same order by rate as by time.
    Return NOTHING if a time was not measured."""
    if not all(name in cell.figures for name in times):
        return NOTHING
    rates = [
        input_bytes / max(sum(cell.by_round[name][number] for name in times), 1)
        for number, input_bytes in cell.by_round[INPUT].items()
        if all(number in cell.by_round[name] for name in times)
    ]
    return number_text(_BYTES_A_NS_TO_MB_A_S * statistics.median(rates))


# --- ranges -------------------------------------------------------------------------------------------------------


def _ranges(table: Table) -> Iterator[Figures]:
    """Yield the times of range queries by scan and by index, as in the paper's table 3. Each store and number of fields
    has a row, and each share of documents a column."""
    names = {name: name.parameters for name in table.columns.operations if name.name == RANGE}
    fields = sorted({int(settings["paths"]) for settings in names.values()})
    ways = sorted({(settings["by"] != "scan", float(settings["selectivity"])) for settings in names.values()})
    by_way = {
        (settings["by"] != "scan", float(settings["selectivity"]), int(settings["paths"])): name
        for name, settings in names.items()
    }
    lines = []
    for row in table.rows:
        for count in fields:
            texts = tuple(_time(table, row, by_way.get((*way, count))) for way in ways)
            if any(text != NOTHING for text in texts):
                lines.append((f"{row.label}, {count} field{'s' * (count != 1)}", texts))
    if any(text != NOTHING for _, texts in lines for (indexed, _), text in zip(ways, texts, strict=True) if indexed):
        heads = tuple(f"{'index' if indexed else 'scan'} {100 * share:g} %" for indexed, share in ways)
        yield Figures(
            "range queries by scan and by index, by share of the documents: ms",
            "store",
            heads,
            tuple(lines),
            ("a range query counts the values of some fields in the documents whose indexed field is in a range",),
        )


def _time(table: Table, row: Row, operation: OperationName | None) -> str:
    cell = None if operation is None else row.cells.get(operation)
    if cell is None or WALL not in cell.figures:
        return NOTHING
    mark = next(
        (
            table.mark(column, row.variant) + fallback_mark(row, column)
            for column in table.columns
            if column.operation == operation and column.role is Role.TIME
        ),
        "",
    )
    return MILLISECONDS.text(cell.figures[WALL].median) + mark
