"""Which format for which use: of a table with many operations, each by itself, the fastest first.

What is read whole and selected from is never ranked; where that is faster than every call made for the use, it is
said. A pure function of a table: it knows nothing of where it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench_runner.results.information import SAVE
from bench_runner.results.records import Run
from bench_runner.results.statistics import is_raw_io
from reports.analysis.columns import Column, Role
from reports.analysis.near_storage.beside import has_near_storage
from reports.analysis.tables import Row, Table, unit_for, value_text
from reports.analysis.units import number_text

FEWEST_OPERATIONS = 4
"""A table has uses from so many operations beside save and read on."""
MOST_OTHERS = 4
"""So many are named behind the fastest."""


@dataclass(frozen=True)
class Use:
    """One operation in words: 'take 100 rows', 'vortex 4.42 ms', 'feather 1.4, f3 1.6'."""

    title: str
    best: str
    others: str


def has_uses(table: Table) -> bool:
    """Whether a table is about uses; ways of reading near the storage have a section of their own."""
    return len(table.columns.further) >= FEWEST_OPERATIONS and not has_near_storage(table)


def uses_of(run: Run, table: Table) -> Iterator[Use]:
    """One for each operation but the save, in the order of the columns."""
    for operation in table.columns.operations:
        column = table.columns.find(operation, Role.TIME)
        if operation == SAVE or column is None:
            continue
        rows = {row.variant: row for row in table.rows}
        ranks = table.ranks(column)
        whole = _fastest_whole(table, column)
        parts = []
        for variant, ratio in list(ranks.items())[1 : 1 + MOST_OTHERS]:
            tied = "=" if table.mark(column, variant) else ""
            parts.append(f"{rows[variant].label} {tied or number_text(ratio.ratio)}")
        first = next(iter(ranks), None)
        if whole is not None and (first is None or _median(whole, column) < _median(rows[first], column)):
            parts.insert(0, f"reading all with {_told(table, whole, column)} is faster")
        best = "no call of its own" if first is None else _told(table, rows[first], column)
        yield Use(run.info.operation(operation).title, best, ", ".join(parts))


def _told(table: Table, row: Row, column: Column) -> str:
    unit = unit_for(table, column.figure)
    return f"{row.label} {value_text(table, row, column, unit)} {unit.name}"


def _median(row: Row, column: Column) -> float:
    interval = row.interval(column)
    return float("inf") if interval is None else interval.median


def _fastest_whole(table: Table, column: Column) -> Row | None:
    whole = [row for row in table.rows if row.fallback(column.operation) and not is_raw_io(row.variant)]
    return min(whole, key=lambda row: _median(row, column), default=None)
