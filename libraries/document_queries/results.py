"""Turn groups or rows into the answer: add computed columns, sort, and keep the first rows."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from libraries.document_queries.aggregates import new_state
from libraries.document_queries.interpreter import Groups, evaluate
from libraries.document_queries.plan import Plan
from libraries.document_queries.semantics import MISSING, order_key
from libraries.document_queries.steps import Compute, GroupBy, Limit, TopK

Row = dict[str, Any]
Place = Any
"""Sort key of a row before a TopK step sorts the rows: the document's key, or for a group the sort keys of the group's
keys."""


def rows_of_groups(group_by: GroupBy, groups: Groups) -> list[tuple[Place, Row]]:
    """Return a row for each group, with its sort key."""
    if not group_by.keys and not groups:
        groups = {(): ((), [new_state(aggregate.function) for aggregate in group_by.aggregates])}
    placed = []
    names = [key.name for key in group_by.keys]
    for keys, states in groups.values():
        row = {name: value for name, value in zip(names, keys, strict=True) if value is not MISSING}
        for aggregate, state in zip(group_by.aggregates, states, strict=True):
            row[aggregate.name] = state.result()
        placed.append(([order_key(key) for key in keys], row))
    return placed


def finish(plan: Plan, placed: Iterable[tuple[Place, Row]]) -> list[Row]:
    """Return the answer: add computed columns, sort, and keep the first rows. Rows with equal sort keys keep their
    order."""
    entries = list(placed)
    for step in plan.steps:
        if isinstance(step, Compute):
            entries = [(place, computed(step, row)) for place, row in entries]
        elif isinstance(step, TopK) and step.rows is not None:
            entries = _candidates(step, step.rows, entries)
    entries.sort(key=itemgetter(0))
    rows = [row for _, row in entries]
    for step in plan.steps:
        if isinstance(step, TopK):
            rows = _ordered(step, rows)
        elif isinstance(step, Limit):
            rows = rows[: step.rows]
    return rows


def computed(step: Compute, row: Row) -> Row:
    """Return the row with the step's columns added. A column can refer to the columns before it."""
    row = dict(row)
    for column in step.columns:
        value = evaluate(column.expression, {"": row})
        if value is not MISSING:
            row[column.name] = value
    return row


def _candidates(step: TopK, rows: int, entries: list[tuple[Place, Row]]) -> list[tuple[Place, Row]]:
    """Return the entries that the first sort column does not exclude from the first `rows` rows. Only these entries
    need to be sorted by all columns."""
    if rows >= len(entries) or rows == 0:
        return entries[:rows] if rows == 0 else entries
    first = step.by[0]
    keys = [order_key(row.get(first.name, MISSING)) for _, row in entries]
    if first.descending:
        bound = heapq.nlargest(rows, keys)[-1]
        return [entry for entry, key in zip(entries, keys, strict=True) if key >= bound]
    bound = heapq.nsmallest(rows, keys)[-1]
    return [entry for entry, key in zip(entries, keys, strict=True) if key <= bound]


def _ordered(step: TopK, rows: list[Row]) -> list[Row]:
    for order in reversed(step.by):
        rows = _sorted(rows, order.name, order.descending)
    return rows if step.rows is None else rows[: step.rows]


def _sorted(rows: Sequence[Row], name: str, descending: bool) -> list[Row]:
    return sorted(rows, key=lambda row: order_key(row.get(name, MISSING)), reverse=descending)
