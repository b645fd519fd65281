"""Show training loops: rows per second, waits, and quality of the shuffle. Each order in which loaders return the rows
has a separate table.

The most shuffled order comes first. A loader is ranked only among loaders with the same order, so that a loader that
does not shuffle cannot win.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping

from bench_runner.results.records import Run
from bench_runner.results.statistics import CellSummary
from reports.analysis.columns import Column, Role
from reports.analysis.figures import Figures
from reports.analysis.tables import Row, Table
from reports.analysis.units import MILLISECONDS, number_text, spread_text
from reports.analysis.words import NOTHING, fallback_mark

EPOCH = "epoch_rows"
"""Name of a figure that only training loops have. A summary with this figure belongs to a training loop."""
HEADERS = ("rows/s", "", "epoch\n1", "epoch\n2", "first\nbatch ms", "p99\ngap ms", "locality", "parts", "rows\nread")
"""Headers of the columns to the right of the format's name."""
WHOLE = "all"
LOADERS_MEANING = (
    "rows/s: over both epochs including opening the copy; loaders are ranked by rows/s. p99 gap: 99 % of batches came "
    "within this time after the previous batch. locality: how often rows of a batch are stored less than one batch "
    "apart, relative to chance; parts: how unevenly a batch is spread over 16 parts of the table, relative to chance. "
    "Both are 1 for a full shuffle. Loaders of different orders are never ranked together. rows read: the share "
    "of an epoch that the loader returned, if the epoch was too long or too large"
)


def has_loaders(table: Table) -> bool:
    """Return whether a table has training loops with figures."""
    return any(_is_loop(cell) for row in table.rows for cell in row.cells.values())


def loaders_of(run: Run, table: Table) -> Iterator[Figures]:
    """Yield one `Figures` (table of numbers) for each order in which loaders return the rows. The most shuffled order
    comes first.

    Equally shuffled orders follow the order of the table's columns. Within an order, the fastest loaders come first,
    and loaders without a rank come last.
    """
    found = []
    for column in table.columns.times:
        rows = [row for row in table.rows if column.operation in row.cells and _is_loop(row.cells[column.operation])]
        if rows:
            found.append((_locality(rows, column), column, rows))
    found.sort(key=lambda each: each[0])
    for number, (_, column, rows) in enumerate(found, 1):
        places = {variant: place for place, variant in enumerate(table.ranks(column))}
        rows.sort(key=lambda row: (places.get(row.variant, len(places)), _slowness(row, column)))
        yield Figures(
            run.info.operation(column.operation).title,
            "format",
            HEADERS,
            tuple((row.label, _texts(table, row, column)) for row in rows),
            (LOADERS_MEANING,) if number == len(found) else (),
            abreast=len(HEADERS),
            leading=frozenset(row.label for row in rows if table.mark(column, row.variant)),
        )


def _is_loop(cell: CellSummary) -> bool:
    return EPOCH in cell.figures


def _locality(rows: list[Row], column: Column) -> float:
    figures = [row.cells[column.operation].figures for row in rows]
    return min((each["locality_permille"].median for each in figures if "locality_permille" in each), default=0)


def _slowness(row: Row, column: Column) -> float:
    return row.cells[column.operation].figures[Role.TIME.figure].median


def _texts(table: Table, row: Row, column: Column) -> tuple[str, ...]:
    cell = row.cells[column.operation]
    mark = table.mark(column, row.variant) + fallback_mark(row, column)
    share = cell.figures[EPOCH].median / table.data_rows
    return (
        number_text(_per_second(cell, lambda figures: (2 * figures[EPOCH], figures["calls_ns"]))) + mark,
        spread_text(cell.figures[Role.TIME.figure]),
        number_text(_per_second(cell, lambda figures: (figures[EPOCH], figures["epoch_1_ns"]))),
        number_text(_per_second(cell, lambda figures: (figures[EPOCH], figures["epoch_2_ns"]))),
        _told(cell, "first_batch_ns", MILLISECONDS.scale),
        _told(cell, "gap_p99_ns", MILLISECONDS.scale),
        _told(cell, "locality_permille", 1000),
        _told(cell, "parts_permille", 1000),
        WHOLE if share >= 1 else f"{share:.0%}",
    )


def _per_second(cell: CellSummary, of: Callable[[Mapping[str, int]], tuple[int, int]]) -> float:
    """Return rows per second, computed from the median over rounds of the time per row. Sorted by this result, loaders
    have the order of their ranks."""
    of_a_row_ns = []
    for number in cell.by_round[EPOCH]:
        rows, time_ns = of({name: values[number] for name, values in cell.by_round.items() if number in values})
        of_a_row_ns.append(max(time_ns, 1) / rows)
    return 1e9 / statistics.median(of_a_row_ns)


def _told(cell: CellSummary, figure: str, scale: float) -> str:
    return number_text(cell.figures[figure].median / scale) if figure in cell.figures else NOTHING
