"""Which format for which use: of a table with many operations, each by itself, the fastest first.

What is read whole and selected from is never ranked; where that is faster than every call made for the use, it is
said. What is surely slower, what cannot be told, and what has too few rounds for either are told apart. Where most
variants have no figure, as on a busy machine, none is the fastest. A pure function of a table: it does not depend on
where it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bench_runner.results.information import SAVE
from bench_runner.results.records import Run
from bench_runner.results.statistics import FEWEST_ROUNDS, Ratio, ranking
from reports.analysis.columns import Column, Role
from reports.analysis.near_storage.side_costs import has_near_storage
from reports.analysis.tables import Row, Table, unit_for, value_text
from reports.analysis.units import number_text

FEWEST_OPERATIONS = 4
"""A table has uses from so many operations beside save and read on."""
MOST_OTHERS = 4
"""So many are named behind the fastest."""
NO_VERDICT = "?"
"""Stands behind what may be chance."""
USES_MEANING = (
    "2.10: so many times as long as the fastest; =: cannot be told from it; "
    f"{NO_VERDICT}: under {FEWEST_ROUNDS} rounds in common, no verdict"
)
IN_PLACE = {"rewrite": "saving all anew with", "save-all": "gathering all with"}
"""What stands for a call that an engine does not have, in words, where it is not reading all."""


@dataclass(frozen=True)
class Use:
    """One operation in words: 'take 100 rows', 'vortex 4.42 ms', 'feather 1.4, f3 1.6?'."""

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
        title, counted = run.info.operation(operation).title, table.counted(column)
        if counted.too_few:
            yield Use(title, f"only {counted.having} of {counted.measured} counted", "")
            continue
        rows = {row.variant: row for row in table.rows}
        ranks = table.ranks(column)
        parts = [
            f"{rows[variant].label} {_multiple(ratio)}" for variant, ratio in list(ranks.items())[1 : 1 + MOST_OTHERS]
        ]
        first = next((rows[variant] for variant in ranks), None)
        whole = _whole(table, column, first)
        if whole:
            parts.insert(0, whole)
        best = _none_ranked(table, column) if first is None else _told(table, first, column)
        some = counted.having < counted.measured
        told = ", ".join(parts) + (f" ({counted.having} of {counted.measured} counted)" if some else "")
        yield Use(title, best, told.strip())


def _multiple(ratio: Ratio) -> str:
    """'=' for what is tied; a number for what is surely slower, with NO_VERDICT where nothing is sure."""
    return "=" if ratio.tied else f"{number_text(ratio.ratio)}{NO_VERDICT if ratio.tied is None else ''}"


def _none_ranked(table: Table, column: Column) -> str:
    """Why no call is the fastest: nobody has one, or of those that have none counts among the others."""
    own = any(column.operation in row.cells and not row.fallback(column.operation) for row in _ours(table))
    return "none ranked" if own else "no call of its own"


def _whole(table: Table, column: Column, first: Row | None) -> str:
    """The fastest way without a call of its own, where it is faster than the fastest call, or there is none; ''
    elsewhere."""
    places = [
        row
        for row in _ours(table)
        if row.fallback(column.operation) and row.interval(column) is not None and not row.wrong(column.operation)
    ]
    whole = min(places, key=lambda row: row.cells[column.operation].figures[column.figure].median, default=None)
    if whole is None:
        return ""
    told = f"{IN_PLACE.get(whole.fallback(column.operation), 'reading all with')} {_told(table, whole, column)}"
    if first is None:
        return told
    # Beside this one call it is a call as any other: by rounds in common, and nothing under what the clock can tell.
    beside = replace(whole.cells[column.operation], fallback="")
    ranks = ranking([beside, first.cells[column.operation]], column.figure, least=table.least(column))
    slower = ranks.get(first.cells[column.operation].cell)
    if slower is None or slower.tied or slower.ratio <= 1:
        return ""
    return f"{told} is faster{NO_VERDICT if slower.tied is None else ''}"


def _ours(table: Table) -> Iterator[Row]:
    """Those that could be ranked."""
    return (row for row in table.rows if not row.variant.is_raw_io and not row.variant.is_apart)


def _told(table: Table, row: Row, column: Column) -> str:
    unit = unit_for(table, column.figure)
    return f"{row.label} {value_text(table, row, column, unit)} {unit.name}"
