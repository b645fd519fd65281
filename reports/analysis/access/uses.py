"""Name the fastest variants for each operation of a table with many operations.

A fallback reads everything and then selects, because the library has no call for the operation. Fallbacks are never
ranked, but a fallback is mentioned if it beats all variants whose library has the call. Each entry states whether
another variant is slower, tied with the fastest, or has too few rounds for a verdict. If most variants have no figure,
for example on a busy machine, no fastest variant is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bench_runner.results.information import SAVE
from bench_runner.results.records import Run
from bench_runner.results.statistics import Ratio, ranking
from reports.analysis.columns import Column, Role
from reports.analysis.near_storage.side_costs import has_near_storage
from reports.analysis.tables import Row, Table, unit_for, value_text
from reports.analysis.units import number_text

FEWEST_OPERATIONS = 4
"""A table needs at least this many operations, in addition to save and read, to have this section."""
MOST_OTHERS = 4
"""Largest number of variants that are named after the fastest."""
NO_VERDICT = "?"
"""Marks a ratio that may be due to chance."""
USES_MEANING = (
    f"2.10: takes 2.10 times as long as the fastest; =: tied with it; {NO_VERDICT}: too few rounds for a verdict"
)
IN_PLACE = {"rewrite": "rewriting everything with", "save-all": "gathering everything with"}
"""Wording for fallbacks that do something other than reading everything."""


@dataclass(frozen=True)
class Use:
    """The fastest variants for one operation as printed: 'take 100 rows' (title), 'vortex 4.42 ms' (best), and 'feather
    1.4, f3 1.6?' (others)."""

    title: str
    best: str
    others: str


def has_uses(table: Table) -> bool:
    """Return whether a table has enough operations for this section. Near-storage reading has its own section."""
    return len(table.columns.further) >= FEWEST_OPERATIONS and not has_near_storage(table)


def uses_of(run: Run, table: Table) -> Iterator[Use]:
    """Yield a `Use` for each operation except the save, in the order of the table's columns."""
    for operation in table.columns.operations:
        column = table.columns.find(operation, Role.TIME)
        if operation == SAVE or column is None:
            continue
        title, counted = run.info.operation(operation).title, table.counted(column)
        if counted.too_few:
            yield Use(title, f"only {counted.having} of {counted.measured} variants counted", "")
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
    """Return '=' for a tie, otherwise the ratio. NO_VERDICT follows the ratio if there are too few rounds."""
    return "=" if ratio.tied else f"{number_text(ratio.ratio)}{NO_VERDICT if ratio.tied is None else ''}"


def _none_ranked(table: Table, column: Column) -> str:
    """Return why no variant is named as the fastest: 'no native call' if no library has a call for the operation, else
    'none ranked'."""
    own = any(column.operation in row.cells and not row.fallback(column.operation) for row in _ours(table))
    return "none ranked" if own else "no native call"


def _whole(table: Table, column: Column, first: Row | None) -> str:
    """Return a sentence about the fastest fallback if it beats all variants whose library has the call, or if there are
    no such variants. Return '' otherwise."""
    places = [
        row
        for row in _ours(table)
        if row.fallback(column.operation) and row.interval(column) is not None and not row.wrong(column.operation)
    ]
    whole = min(places, key=lambda row: row.cells[column.operation].figures[column.figure].median, default=None)
    if whole is None:
        return ""
    told = f"{IN_PLACE.get(whole.fallback(column.operation), 'reading everything with')} {_told(table, whole, column)}"
    if first is None:
        return told
    # The usual ranking handles common rounds and times that are too short to compare, so use it for these two calls.
    beside = replace(whole.cells[column.operation], fallback="")
    ranks = ranking([beside, first.cells[column.operation]], column.figure, least=table.least(column))
    slower = ranks.get(first.cells[column.operation].cell)
    if slower is None or slower.tied or slower.ratio <= 1:
        return ""
    return f"{told} is faster{NO_VERDICT if slower.tied is None else ''}"


def _ours(table: Table) -> Iterator[Row]:
    return (row for row in table.rows if not row.variant.is_raw_io and not row.variant.is_apart)


def _told(table: Table, row: Row, column: Column) -> str:
    unit = unit_for(table, column.figure)
    return f"{row.label} {value_text(table, row, column, unit)} {unit.name}"
