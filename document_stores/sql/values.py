"""Values within documents, as SQL expressions: the interface between the translator and an engine.

`Value.step` returns the value of a field. The other methods return SQL expressions, such as the value's kind, or the
value as an integer with NULL for values of other kinds.
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
        """Return the value's JSON text; NULL if it is missing. Values with equal kind and bits have equal text, except
        for the order of fields."""

    def stored(self) -> str:
        """Return `canonical`, or null for a missing value if this store returns null for it in whole documents."""
        return self.canonical()

    @abstractmethod
    def unguarded(self, type_: str) -> str:
        """Return the value as BIGINT, DOUBLE or VARCHAR. The value must be of that kind, null or missing."""

    def plain(self) -> str | None:
        """Return the value, an integer or text, as an SQL value that is NULL only if the value is missing.

        Returns None if there is no such expression."""
        return None

    def may_hold(self) -> bool:
        """Return whether the value may be an array or an object."""
        return True

    def found_by(self, operator: str, canonical: str, plain: str) -> str | None:
        """Return a condition for which an index is used and that is true whenever this comparison is true.

        Returns None without an index. The comparison is with a number or text, given as an expression in JSON
        (`canonical`) and as an SQL value (`plain`).
        """
        return None

    @abstractmethod
    def is_text(self, canonical: str, plain: str) -> str:
        """Return the engine's fastest test for equality with a text.

        The text is given in JSON and as an SQL value. The test is false or NULL for values that are not texts.
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
    """Return the exact comparison of an integer with a double. Doubles from 2 ** 53 on are compared as integers."""
    return (
        f"(CASE WHEN {integer} IS NULL THEN NULL WHEN {double} >= 9223372036854775808e0 THEN 0 {operator} 1"
        f" WHEN {double} < -9223372036854775808e0 THEN 1 {operator} 0"
        f" WHEN abs({double}) >= {EXACT}e0 THEN {integer} {operator} CAST({double} AS BIGINT)"
        f" ELSE CAST({integer} AS DOUBLE PRECISION) {operator} {double} END)"
    )
