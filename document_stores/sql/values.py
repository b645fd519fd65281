"""Values within documents, as SQL expressions: the interface between the translator and an engine.

A value is reached from another by a field's name. Methods return expressions of the engine's SQL: its kind, or the
value if it has one kind and NULL otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

EXACT = 2**53
"""Integers below this are exact as doubles."""

NOTHING = {
    "integer": "CAST(NULL AS BIGINT)",
    "double": "CAST(NULL AS DOUBLE PRECISION)",
    "text": "CAST(NULL AS VARCHAR)",
    "boolean": "CAST(NULL AS BOOLEAN)",
}
"""Kind -> a NULL of that kind."""


def is_nothing(expression: str) -> bool:
    """Return whether an expression is one of NOTHING, possibly in an engine's own form."""
    return expression.startswith("CAST(NULL AS ")


class Value(ABC):
    """A value in a document, present or missing. Every method except `step` returns an SQL expression."""

    tells_null: ClassVar[bool] = True
    """Whether `kind` distinguishes null from missing."""

    holds_nulls: bool = True
    """For a document: whether documents may contain nulls anywhere."""

    @abstractmethod
    def step(self, name: str) -> Value:
        """Return the field `name`; missing if the value is not an object."""

    @abstractmethod
    def kind(self) -> str:
        """Return 'null', 'boolean', 'integer', 'double', 'text', 'array' or 'object'; NULL if missing."""

    @abstractmethod
    def integer(self) -> str:
        """Return a 64-bit integer, or NULL."""

    @abstractmethod
    def double(self) -> str:
        """Return a double, or NULL, also for integers."""

    @abstractmethod
    def text(self) -> str:
        """Return a text, or NULL."""

    @abstractmethod
    def boolean(self) -> str:
        """Return a boolean, or NULL."""

    @abstractmethod
    def canonical(self) -> str:
        """Return its JSON text, equal for equal kind and bits (except for the order of fields); NULL if missing."""

    def stored(self) -> str:
        """Return `canonical`, but null if whole documents of this store have null instead of missing here."""
        return self.canonical()

    @abstractmethod
    def unguarded(self, type_: str) -> str:
        """Return the value as BIGINT, DOUBLE or VARCHAR, given that it is of that kind, null or missing."""

    def plain(self) -> str | None:
        """Return an integer or a text as an SQL value, NULL only if missing; None if that is ambiguous."""
        return None

    def may_hold(self) -> bool:
        """Return whether it may be an array or an object."""
        return True

    def found_by(self, operator: str, canonical: str, plain: str) -> str | None:
        """Return a condition that an index answers and that holds whenever this comparison holds; None without index.

        The value compared with is a number or text, given as an expression in JSON and as an SQL value.
        """
        return None

    @abstractmethod
    def is_text(self, canonical: str, plain: str) -> str:
        """Return a test for equality with a text, given in JSON and as an SQL value; false or NULL for other values.

        It is the fastest such test of the engine.
        """


@dataclass(frozen=True)
class Quoted:
    """Texts and names as SQL, so that nothing in them is taken for SQL."""

    @staticmethod
    def text(value: str) -> str:
        """Return a text as a literal of standard SQL. Raises ValueError for a NUL, which literals cannot contain."""
        if "\0" in value:
            raise ValueError("SQL cannot contain a NUL")
        return "'" + value.replace("'", "''") + "'"

    @staticmethod
    def name(value: str) -> str:
        """Return the name of a column or table in double quotes. Raises ValueError as `text` does."""
        if "\0" in value:
            raise ValueError("SQL cannot contain a NUL")
        return '"' + value.replace('"', '""') + '"'


def exactly(integer: str, operator: str, double: str) -> str:
    """Return the exact comparison of an integer with a double: doubles from 2 ** 53 on are whole numbers."""
    return (
        f"(CASE WHEN {integer} IS NULL THEN NULL WHEN {double} >= 9223372036854775808e0 THEN 0 {operator} 1"
        f" WHEN {double} < -9223372036854775808e0 THEN 1 {operator} 0"
        f" WHEN abs({double}) >= {EXACT}e0 THEN {integer} {operator} CAST({double} AS BIGINT)"
        f" ELSE CAST({integer} AS DOUBLE PRECISION) {operator} {double} END)"
    )
