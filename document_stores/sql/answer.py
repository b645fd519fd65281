"""Convert the rows of a plan's SELECT to the rows of the answer. A column of the answer may come from several cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from adapters.document_store import RefusedQuery

_DECODE = msgspec.json.Decoder().decode

MISSING = object()
"""The value of a column that is omitted from a row."""


@dataclass(frozen=True)
class Column:
    """A column of the answer: the SQL of its cells, and the function that makes a value from these cells."""

    name: str
    cells: tuple[str, ...]
    read: Callable[..., Any]


@dataclass(frozen=True)
class Selection:
    """The SELECT of a plan: its text and parameters, and how its rows are converted to rows of the answer."""

    text: str
    parameters: dict[str, Any]
    columns: tuple[Column, ...]
    rows: int | None
    """Maximum number of rows; None: all."""
    refusals: tuple[tuple[type[Exception], str], ...]
    """Errors and their texts. If the last cell of a row is not NULL, it is the index of an error here. Such rows come
    first."""


def answer(selection: Selection, rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the answer to the plan.

    Raises RefusedQuery for values that SQL treats differently from the plan's meaning, and QueryError for a sum beyond
    64 bits.
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
    """Return a value unchanged; NULL is missing."""
    return MISSING if value is None else value


def of_json(text: str | None) -> Any:
    """Parse a value that arrives as JSON text; NULL is missing."""
    return MISSING if text is None else _DECODE(text)


def of_kinds(kinds: Sequence[str]) -> Callable[..., Any]:
    """Return a function that makes a value from cells, one cell for each kind of value. If all cells are NULL, the
    value is null. The function raises RefusedQuery for a double 0."""

    def read(*cells: Any) -> Any:
        for kind, cell in zip(kinds, cells, strict=True):
            if cell is None:
                continue
            if kind == "double" and cell == 0:
                raise RefusedQuery("SQL treats 0.0 and -0.0 as the same, so the value may be either")
            return bool(cell) if kind == "boolean" else cell
        return None

    return read


def average(high: Any, low: Any, count: int) -> float | None:
    """Return the average of integers whose sum is given as a high and a low half."""
    return (int(high) * 2**32 + int(low)) / count if count else None
