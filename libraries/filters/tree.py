"""The tree of a filter: operations, column names, typed literals. Plain data without schema, file or wire format.

A filter has SQL's three values: true, false and null. It is null if it depends on a null value. Only rows for which the
filter is true are kept. NaN compares as in Arrow: it is unequal to every value, including itself, so only `!=` is true
for NaN. -0.0 equals 0.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeAlias

import pyarrow as pa

Operator: TypeAlias = OneOf["==", "!=", "<", "<=", ">", ">="]
OPERATORS: tuple[Operator, ...] = ("==", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Literal:
    """A value as a Python object with its Arrow type; `value` is None for null."""

    value: object
    type: pa.DataType


@dataclass(frozen=True)
class Comparison:
    """`column operator literal`. Null if the column or the literal is null."""

    operator: Operator
    column: str
    literal: Literal


@dataclass(frozen=True)
class In:
    """True if the column equals one of the literals; else null if the column or a literal is null; else false."""

    column: str
    literals: tuple[Literal, ...]


@dataclass(frozen=True)
class IsNull:
    """Whether the column is null. The result is never null itself."""

    column: str


@dataclass(frozen=True)
class Prefix:
    """Whether the column's text begins with `text`, compared as UTF-8 bytes. Null where the column is null."""

    column: str
    text: str


@dataclass(frozen=True)
class Known:
    """`value` where the column is not null, null elsewhere. Replaces comparisons that the type decides, such as `i <
    300` on int8."""

    column: str
    value: bool


@dataclass(frozen=True)
class Constant:
    """The same value for every row; None is null."""

    value: bool | None


@dataclass(frozen=True)
class And:
    """Kleene's AND: false if one part is false, else null if one is null, else true. Without parts: true."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Or:
    """Kleene's OR: true if one part is true, else null if one is null, else false. Without parts: false."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Not:
    """Kleene's NOT: null stays null."""

    part: Predicate


Predicate: TypeAlias = Comparison | In | IsNull | Prefix | Known | Constant | And | Or | Not


def columns_of(predicate: Predicate) -> frozenset[str]:
    """Return the names of all columns that the filter uses."""
    match predicate:
        case And(parts) | Or(parts):
            return frozenset().union(*(columns_of(part) for part in parts))
        case Not(part):
            return columns_of(part)
        case Constant():
            return frozenset()
        case _:
            return frozenset({predicate.column})
