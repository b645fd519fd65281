"""From the rows of a plan's SELECT to its answer: groups as the plan means them, their order, ties, and the first rows.

It knows plans and how a selection is read, and no SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from adapters.document_store import RefusedQuery
from libraries.document_queries import plan as plans
from libraries.document_queries import steps
from libraries.document_queries.errors import QueryError
from libraries.document_queries.results import finish
from libraries.document_queries.semantics import order_key
from libraries.document_queries.values import INTEGER_HIGHEST, INTEGER_LOWEST

_DECODE = msgspec.json.Decoder().decode


@dataclass(frozen=True)
class Selection:
    """The SELECT, its parameters, and how its rows are read: how many columns each aggregate takes behind the keys of
    a group, or the names of a projection's columns behind the document's key."""

    text: str
    parameters: dict[str, Any]
    plan: plans.Plan
    reading: list[Any]
    plain_keys: tuple[bool, ...] = ()
    """Which keys of a group come as they are, and not as JSON."""
    merged_keys: tuple[bool, ...] = ()
    """Of which keys a NULL is a group of nulls, of what is missing, or of both."""


def answer(selection: Selection, rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """The answer to the plan from the rows of its SELECT. Raises RefusedQuery for values that SQL does not treat as the
    plan means, QueryError as the plan says."""
    result = selection.plan.result
    if isinstance(result, steps.GroupBy):
        return finish(selection.plan, [_group(result, selection, row) for row in rows])
    placed = []
    for key, *cells in rows:
        pairs = zip(selection.reading, cells, strict=True)
        placed.append((order_key(key), {name: _DECODE(text) for name, text in pairs if text is not None}))
    return finish(selection.plan, placed)


def _group(result: steps.GroupBy, selection: Selection, row: Sequence[Any]) -> tuple[Any, dict[str, Any]]:
    answered: dict[str, Any] = {}
    places = []
    for key, plain, merged, text in zip(result.keys, selection.plain_keys, selection.merged_keys, row, strict=False):
        if text is None:
            if merged:
                raise RefusedQuery("missing and null are one group in columns of one schema")
            places.append((0,))
            continue
        if not plain and text[0] in "[{":
            raise RefusedQuery("groups of arrays and objects are left to who reads them")
        value = text if plain else _DECODE(text)
        answered[key.name] = value
        places.append(order_key(value))
    column = len(result.keys)
    for aggregate, width in zip(result.aggregates, selection.reading, strict=True):
        answered[aggregate.name] = _figure(aggregate, row[column : column + width])
        column += width
    return places, answered


def _figure(aggregate: steps.Aggregate, parts: Sequence[Any]) -> Any:
    if aggregate.function == "count":
        return parts[0]
    if aggregate.function == "count_distinct":
        _refuse_containers(parts[1])
        return parts[0]
    if aggregate.function in ("sum", "avg"):
        return _sum(aggregate, *parts)
    _refuse_containers(parts[-1])
    integer, double, text, boolean, _ = parts
    found = [
        value for value in (integer, double, text, None if boolean is None else bool(boolean)) if value is not None
    ]
    if not found:
        return None
    extreme = (max if aggregate.function == "max" else min)(found, key=order_key)
    if isinstance(extreme, float) and extreme == 0:
        raise RefusedQuery("0.0 and -0.0 are one to SQL, and the extreme value may be either")
    return extreme


def _sum(aggregate: steps.Aggregate, high: Any, low: Any, integers: int, doubles: int) -> int | float | None:
    if doubles:
        raise RefusedQuery("SQL rounds sums of doubles at each step; the plan asks for the exact one")
    if not integers:
        return None
    exact = int(high) * 2**32 + int(low)
    if aggregate.function == "avg":
        return exact / integers
    if not INTEGER_LOWEST <= exact <= INTEGER_HIGHEST:
        raise QueryError(f"sum: {exact} is beyond 64 bits; use avg, or sum doubles")
    return exact


def _refuse_containers(count: int) -> None:
    if count:
        raise RefusedQuery("arrays and objects are compared by their text here")
