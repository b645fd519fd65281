"""Show the times of stored copies that stay open: the time to open a copy, the time of the first call, and the time of
later calls.

Other tables show one time for each operation. This section adds the time to open a copy, which for a wide table is most
of the work. It also adds the latency of a call, which is longer than the time per call if several streams call at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench_runner.results.records import Run
from bench_runner.variants import OperationName
from reports.analysis.columns import Column, Role
from reports.analysis.figures import Figures
from reports.analysis.tables import Row, Table, value_text
from reports.analysis.units import MILLISECONDS, number_text
from reports.analysis.words import NOTHING, fallback_mark

_OPENED, _LATENCY = "open_ns", "latency_ns"
_SECOND_NS = 1e9


def has_handles(table: Table) -> bool:
    """Return whether at least one operation of a table keeps its copies open."""
    return any(map(_kept, table.rows))


def handles_of(run: Run, table: Table) -> Iterator[Figures]:
    """Yield one `Figures` for each operation that keeps its copies open, in the order of the table's columns. The
    fastest variant comes first."""
    for operation in table.columns.operations:
        column = table.columns.find(operation, Role.TIME)
        rows = [row for row in table.rows if operation in _kept(row)]
        if column is None or not rows:
            continue
        at_once = any(_LATENCY in row.cells[operation].figures for row in rows)
        rows.sort(key=lambda row: row.cells[operation].figures[Role.TIME.figure].median)
        call = "latency\nms" if at_once else "call\nms"
        yield Figures(
            "",
            run.info.operation(operation).title,
            ("open\nms", "first\nms", call, "90 % under\nms", _per_second(operation)),
            tuple((row.label, tuple(_texts(table, row, column))) for row in rows),
        )


def _kept(row: Row) -> list[str]:
    return [name for name, cell in row.cells.items() if _OPENED in cell.figures]


def _per_second(operation: OperationName) -> str:
    return "rows/s" if "rows" in operation.parameters else "calls/s"


def _texts(table: Table, row: Row, column: Column) -> Iterator[str]:
    figures = row.cells[column.operation].figures

    def milliseconds(name: str) -> str:
        return MILLISECONDS.text(figures[name].median) if name in figures else NOTHING

    yield milliseconds(_OPENED)
    # A cold sample has only the first call.
    yield milliseconds("first_ns")
    call = value_text(table, row, column, MILLISECONDS) or NOTHING
    yield (milliseconds(_LATENCY) if _LATENCY in figures else call) + fallback_mark(row, column)
    yield milliseconds("p90_ns")
    rows = int(column.operation.parameters.get("rows", "1"))
    clocked = figures[column.figure].median
    # A rate would be meaningless for calls so short that reading the clock takes a tenth of the measured time.
    yield NOTHING if clocked < table.least(column) else number_text(rows * _SECOND_NS / clocked)
