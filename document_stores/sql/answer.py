"""Converting the rows of a plan's SELECT to the rows of the result. A value of the result may be computed from several
columns of the SELECT. These columns are called the cells of the value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from adapters.document_store import RefusedQuery

_DECODE = msgspec.json.Decoder().decode

MISSING = object()
"""Marker for a column that is omitted from a row of the result."""


@dataclass(frozen=True)
class Column:
    """A column of the result: its name, its cells (columns of the SELECT), and the function that computes its value."""

    name: str
    cells: tuple[str, ...]
    read: Callable[..., Any]


@dataclass(frozen=True)
class Selection:
    """The SELECT of a plan: its text, its parameters, and how its rows are converted to rows of the result."""

    text: str
    parameters: dict[str, Any]
    columns: tuple[Column, ...]
    rows: int | None
    """Maximum number of rows, or None for all rows."""
    refusals: tuple[tuple[type[Exception], str], ...]
    """Errors with their messages. If the last value in a row of the SELECT is not NULL, this value is an index in
    `refusals`: raise the error at that index. The SELECT returns such rows first."""


def answer(selection: Selection, rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the rows of the result, given the rows of the SELECT.

    Raises RefusedQuery if a value is found for which SQL gives another result than the plan defines, and QueryError for
    a sum that exceeds 64 bits.
    """
    answered = []
    for row in rows:
        if selection.refusals and row[-1] is not None:
            error, reason = selection.refusals[row[-1]]
            raise error(reason)
        found, place = {}, 0
        for column in selection.columns:
            value = column.read(*row[place : place + len(column.cells)])
            place += len(column.cells)
            if value is not MISSING:
                found[column.name] = value
        answered.append(found)
    return answered[: selection.rows]


def plain(value: Any) -> Any:
    """Return a value unchanged, or MISSING for NULL."""
    return MISSING if value is None else value


def of_json(text: str | None) -> Any:
    """Return the value of a JSON text, or MISSING for NULL."""
    return MISSING if text is None else _DECODE(text)


def of_kinds(kinds: Sequence[str]) -> Callable[..., Any]:
    """Return a function that takes one cell for each kind in `kinds` and returns the value of the cell that is not
    NULL. At most one cell is not NULL. If all are NULL, the function returns None, which means null. It raises
    RefusedQuery for a double 0, because SQL does not distinguish 0.0 from -0.0."""

    def read(*cells: Any) -> Any:
        for kind, cell in zip(kinds, cells, strict=True):
            if cell is None:
                continue
            if kind == "double" and cell == 0:
                raise RefusedQuery("a value in the answer may be 0.0 or -0.0, which SQL does not distinguish")
            return bool(cell) if kind == "boolean" else cell
        return None

    return read


def average(high: Any, low: Any, count: int) -> float | None:
    """Return the average of `count` integers whose sum is high * 2**32 + low, or None if `count` is 0."""
    return (int(high) * 2**32 + int(low)) / count if count else None
