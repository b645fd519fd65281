"""Lay out the figures of a table's operations as grids. The first grid is for saving and reading; further operations
are in grids below.

Each operation has a group of columns. A grid has as many groups as fit on the page.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from rich.table import Table as Grid
from rich.text import Text

from bench_runner.results.information import SAVE
from bench_runner.results.records import Run
from bench_runner.variants import OperationName
from reports.analysis.columns import Column, Role
from reports.analysis.tables import Row, Table, unit_for, unit_of, value_text
from reports.analysis.units import MEGABYTES, MILLISECONDS, SECONDS, Unit, spread_text
from reports.analysis.words import (
    LONG_NS,
    NOTHING,
    cores_text,
    each_text,
    fallback_mark,
    fidelity_text,
    multiple_text,
    rounds_text,
    sync_text,
)
from reports.text.page import WIDTH, labelled_grid, width_of

_HEADER_WIDTH = 10
"""The title of an operation is wrapped at this many characters above its columns."""
MOST_WHOLE = 4
"""If a table has more operations than this in addition to save and read, grids show only the times of these
operations."""
_LABELS = 26
"""Number of characters for the labels in the grids of operations other than save and read."""
_Column = tuple[str, list[Text | str]]
"""A column: its header, and a value for each row."""


def main_grid(run: Run, table: Table) -> Grid:
    """Return the grid of save and read, with all columns."""
    operations = table.columns.main
    columns: list[_Column] = [("n", [rounds_text(row, operations) for row in table.rows])]
    for operation in operations:
        columns += _times(run, table, operation)
        if operation == SAVE:
            unit = unit_for(table, "wall_ns")
            columns.append(("save\n+sync", [sync_text(row, unit) for row in table.rows]))
    for column in (column for column in table.columns if column.operation in operations):
        if column.role is not Role.TIME:
            unit = unit_of(table, column)
            columns.append((header_of(run, column, unit), _values(table, column, unit)))
    letters = f"\n{initials(run, table)}" if len(operations) > 1 else ""
    columns += [
        (f"cores{letters}", [each_text(row, operations, cores_text) for row in table.rows]),
        (f"x raw{letters}", [each_text(row, operations, multiple_text) for row in table.rows]),
        ("fidelity", [fidelity_text(row) for row in table.rows]),
    ]
    return _grid(table, columns, left=1)


def further_grids(run: Run, table: Table) -> Iterator[Grid]:
    """Yield grids of the other operations, with time, peak memory, cores and multiple of raw I/O. If there are many
    operations, only the times are shown. The site and the CSV files have the other figures."""
    further = table.columns.listed
    tried = replace(table, rows=tuple(row for row in table.rows if set(further) & row.cells.keys()))
    shown = _time_alone if len(further) > MOST_WHOLE else _group
    beside: list[OperationName] = []
    for operation in further:
        columns = [column for name in (*beside, operation) for column in shown(run, tried, name)]
        if beside and _width(columns) > WIDTH - _LABELS:
            yield _further_grid(run, tried, beside, shown)
            beside = []
        beside.append(operation)
    yield _further_grid(run, tried, beside, shown)


def _further_grid(
    run: Run,
    table: Table,
    operations: Sequence[OperationName],
    shown: Callable[[Run, Table, OperationName], list[_Column]],
) -> Grid:
    """Return a grid of these operations. Rows are sorted by time if there is a single operation, otherwise by name."""
    column = table.columns.find(operations[0], Role.TIME) if len(operations) == 1 else None

    def place(row: Row) -> tuple[bool, bool, bool, float, str]:
        interval = row.interval(column) if column else None
        nothing = interval is None if column else not row.measured
        unranked = column is not None and row.variant not in table.ranks(column)
        return row.variant.is_raw_io, nothing, unranked, interval.median if interval else 0.0, row.label

    ordered = replace(table, rows=tuple(sorted(table.rows, key=place)))
    return _grid(ordered, [column for name in operations for column in shown(run, ordered, name)])


def _time_alone(run: Run, table: Table, operation: OperationName) -> list[_Column]:
    return _times(run, table, operation)[:1]


def initials(run: Run, table: Table) -> str:
    """Return the first letters of the main operations for narrow headers: 's/r' for save and read."""
    return "/".join(run.info.operation(name).title[:1] for name in table.columns.main)


def _group(run: Run, table: Table, operation: OperationName) -> list[_Column]:
    rows, found = table.rows, _times(run, table, operation)
    size, memory = (table.columns.find(operation, role) for role in (Role.SIZE, Role.MEMORY))
    if size is not None:
        unit = unit_for(table, size.figure)
        found.append((f"size\n{unit.name}", _values(table, size, unit)))
    if memory is not None:
        found.append(("peak\nMB", _values(table, memory, MEGABYTES)))
    return [
        ("n", [rounds_text(row, [operation]) for row in rows]),
        *found,
        ("cores", [each_text(row, [operation], cores_text) for row in rows]),
        ("x raw", [each_text(row, [operation], multiple_text) for row in rows]),
    ]


def _times(run: Run, table: Table, operation: OperationName) -> list[_Column]:
    column = table.columns.find(operation, Role.TIME)
    if column is None:
        return []
    unit = unit_for(table, column.figure)
    spreads: list[Text | str] = [Text(figure_spread(row, column), "dim") for row in table.rows]
    return [(header_of(run, column, unit), _values(table, column, unit)), ("", spreads)]


def header_of(run: Run, column: Column, unit: Unit) -> str:
    """Return the header of a column on several lines: operation, kind of figure and unit."""
    operation = "\n".join(textwrap.wrap(run.info.operation(column.operation).title, _HEADER_WIDTH))
    if column.role is Role.SIZE:
        return f"size\n{unit.name}" if column.operation == SAVE else f"{operation}\nsize\n{unit.name}"
    return f"{operation}\n{'peak ' if column.is_memory else ''}{unit.name}"


def _width(columns: Sequence[_Column]) -> int:
    return sum(width_of(header, texts, 1) for header, texts in columns)


def _grid(table: Table, columns: Sequence[_Column], left: int = 0) -> Grid:
    lines = [
        (row.label, [texts[place] for _, texts in columns], row_style(row)) for place, row in enumerate(table.rows)
    ]
    return labelled_grid("format", [header for header, _ in columns], lines, padding=1, left=left)


def row_style(row: Row) -> str:
    """Return the text style of a row. Raw I/O and rows without figures have their own styles."""
    if not row.measured:
        return "dim"
    return "dim italic" if row.variant.is_raw_io else ""


def _values(table: Table, column: Column, unit: Unit) -> list[Text | str]:
    return [_value(table, row, column, unit) for row in table.rows]


def _value(table: Table, row: Row, column: Column, unit: Unit) -> Text:
    text = figure_text(table, row, column, unit)
    if text is None:
        return Text(NOTHING, "dim")
    # A fallback is not ranked, so a figure never has both a rank mark and the mark of a fallback.
    mark = table.mark(column, row.variant)
    return Text(text + mark, "bold green" if mark else "")


def figure_text(table: Table, row: Row, column: Column, unit: Unit) -> str | None:
    """Return a figure with the marks `~` (uncertain memory) and `†` (the library has no call), but without the mark of
    its rank. Return None if there is no figure. Long times are in seconds."""
    interval = row.interval(column)
    is_long = unit is MILLISECONDS and interval is not None and interval.median >= LONG_NS
    text = value_text(table, row, column, SECONDS if is_long else unit)
    if text is None:
        return None
    seen = column.is_memory and not text.startswith("<")
    mapped = "~" if seen and row.cells[column.operation].memory_disagrees else ""
    return text + ("s" if is_long else "") + mapped + fallback_mark(row, column)


def figure_spread(row: Row, column: Column) -> str:
    """Return the spread of a figure, or '' if the figure has no spread."""
    interval = row.interval(column)
    return spread_text(interval) if interval else ""
