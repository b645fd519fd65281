"""Values within documents, as SQL expressions: what a translator asks of an engine.

A value is reached from another by a field's name. What it gives are expressions of the engine's SQL: its kind, or what
it is if it is of one kind and NULL otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

EXACT = 2**53
"""Integers below it are doubles without rounding."""

NOTHING = {
    "integer": "CAST(NULL AS BIGINT)",
    "double": "CAST(NULL AS DOUBLE PRECISION)",
    "text": "CAST(NULL AS VARCHAR)",
    "boolean": "CAST(NULL AS BOOLEAN)",
}
"""Kind -> what stands for a value of it that nothing has."""


def is_nothing(expression: str) -> bool:
    """Whether an expression is one of NOTHING, or the same in an engine's words."""
    return expression.startswith("CAST(NULL AS ")


class Value(ABC):
    """Something in a document, there or missing. Every method gives an SQL expression, but for `step`."""

    tells_null: ClassVar[bool] = True
    """Whether `kind` tells null from missing."""

    holds_nulls: bool = True
    """Of a document: whether documents may hold a null anywhere."""

    @abstractmethod
    def step(self, name: str) -> Value:
        """The field `name` of it; missing where it is no object."""

    @abstractmethod
    def kind(self) -> str:
        """'null', 'boolean', 'integer', 'double', 'text', 'array' or 'object'; NULL where it is missing."""

    @abstractmethod
    def integer(self) -> str:
        """A 64-bit integer, or NULL."""

    @abstractmethod
    def double(self) -> str:
        """A double, or NULL; integers are none."""

    @abstractmethod
    def text(self) -> str:
        """A text, or NULL."""

    @abstractmethod
    def boolean(self) -> str:
        """A boolean, or NULL."""

    @abstractmethod
    def canonical(self) -> str:
        """Its JSON text, the same for the same kind and bits, but for the order of an object's fields; NULL where it is
        missing."""

    def stored(self) -> str:
        """As `canonical`, but null where whole documents of this store have a null for something missing."""
        return self.canonical()

    @abstractmethod
    def unguarded(self, type_: str) -> str:
        """The value as BIGINT, DOUBLE or VARCHAR, given that it is of that kind, null or missing."""

    def plain(self) -> str | None:
        """An integer or a text as SQL has it, NULL only where it is missing; None where that does not say all."""
        return None

    def may_hold(self) -> bool:
        """Whether it may be an array or an object."""
        return True

    def found_by(self, operator: str, canonical: str, plain: str) -> str | None:
        """A condition which an index answers, and which is met wherever this stands so to a number or text, given as an
        expression in JSON and as it is; None where there is no such index."""
        return None

    @abstractmethod
    def is_text(self, canonical: str, plain: str) -> str:
        """Whether it is one text, given as an expression in JSON and as it is; false or NULL for all else. The cheapest
        test that an engine has."""


@dataclass(frozen=True)
class Quoted:
    """How an engine writes texts and names down, so that nothing in them is taken for SQL."""

    @staticmethod
    def text(value: str) -> str:
        """A text as a literal of standard SQL. Raises ValueError for one that holds a NUL, which no literal may."""
        if "\0" in value:
            raise ValueError("a NUL cannot stand in SQL")
        return "'" + value.replace("'", "''") + "'"

    @staticmethod
    def name(value: str) -> str:
        """A name of a column or table in double quotes. Raises ValueError as `text` does."""
        if "\0" in value:
            raise ValueError("a NUL cannot stand in SQL")
        return '"' + value.replace('"', '""') + '"'


def exactly(integer: str, operator: str, double: str) -> str:
    """An integer compared with a double, neither of them rounded: a double from 2 ** 53 on is a whole number."""
    return (
        f"(CASE WHEN {integer} IS NULL THEN NULL WHEN {double} >= 9223372036854775808e0 THEN 0 {operator} 1"
        f" WHEN {double} < -9223372036854775808e0 THEN 1 {operator} 0"
        f" WHEN abs({double}) >= {EXACT}e0 THEN {integer} {operator} CAST({double} AS BIGINT)"
        f" ELSE CAST({integer} AS DOUBLE PRECISION) {operator} {double} END)"
    )
