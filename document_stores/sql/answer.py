"""Convert the ordered rows of a plan's SELECT to those of its answer: one value from each column's cells."""

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
    """A column of the answer: its cells as SQL, and the function that makes a value of them."""

    name: str
    cells: tuple[str, ...]
    read: Callable[..., Any]


@dataclass(frozen=True)
class Selection:
    """The SELECT of a plan: its text and parameters, and how its rows become those of the answer."""

    text: str
    parameters: dict[str, Any]
    columns: tuple[Column, ...]
    rows: int | None
    """Maximum number of rows; None: all."""
    refusals: tuple[tuple[type[Exception], str], ...]
    """Errors and their texts. A last cell that is not NULL is the number of one; such rows come first."""


def answer(selection: Selection, rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the answer to the plan.

    Raises RefusedQuery for values that SQL does not treat as the plan means, QueryError for a sum beyond 64 bits.
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
    """Return a function for a value in the cell of its kind; all NULL are null. Raises RefusedQuery for a double 0."""

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
    """Return the average of integers whose sum arrives in halves."""
    return (int(high) * 2**32 + int(low)) / count if count else None
