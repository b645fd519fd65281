"""Values within documents, as SQL expressions. This module is the interface between the translation and the engines.

`Value.step` returns the value of a field. The other methods return SQL expressions, such as the value's kind, or the
value as an integer with NULL for values of other kinds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

EXACT = 2**53
"""Limit below which every integer can be converted to a double exactly."""

NOTHING = {
    "integer": "CAST(NULL AS BIGINT)",
    "double": "CAST(NULL AS DOUBLE PRECISION)",
    "text": "CAST(NULL AS VARCHAR)",
    "boolean": "CAST(NULL AS BOOLEAN)",
}
"""For each kind of value, SQL for a NULL of the corresponding type."""


def is_nothing(expression: str) -> bool:
    """Return whether an expression is a NULL as in NOTHING, possibly with an engine's own type name."""
    return expression.startswith("CAST(NULL AS ")


class Value(ABC):
    """A value in a document, present or missing. Every method except `step` returns an SQL expression."""

    tells_null: ClassVar[bool] = True
    """Whether `kind` distinguishes null from missing."""

    holds_nulls: bool = True
    """Whether documents may contain nulls anywhere. Used only for the value of a whole document."""

    drops_empty: bool = False
    """Whether a missing value may have been an empty object, which the store has dropped."""

    @abstractmethod
    def step(self, name: str) -> Value:
        """Return the value of the field `name`. It is missing if this value is not an object."""

    @abstractmethod
    def kind(self) -> str:
        """Return SQL for 'null', 'boolean', 'integer', 'double', 'text', 'array' or 'object', or NULL if the value is
        missing."""

    @abstractmethod
    def integer(self) -> str:
        """Return SQL for the value if it is a 64-bit integer, else NULL."""

    @abstractmethod
    def double(self) -> str:
        """Return SQL for the value if it is a double, else NULL. Integers are NULL too."""

    @abstractmethod
    def text(self) -> str:
        """Return SQL for the value if it is a text, else NULL."""

    @abstractmethod
    def boolean(self) -> str:
        """Return SQL for the value if it is a boolean, else NULL."""

    @abstractmethod
    def canonical(self) -> str:
        """Return SQL for the value's JSON text, which is NULL if the value is missing. Values of the same kind
        with the same bits have equal texts, except that the fields of objects may be in another order."""

    def stored(self) -> str:
        """Return SQL for the JSON text that the value has in whole documents. This is `canonical`, or the text null for
        a missing value if the store returns missing fields as null."""
        return self.canonical()

    @abstractmethod
    def unguarded(self, type_: str) -> str:
        """Return SQL for the value as BIGINT, DOUBLE, BOOLEAN or VARCHAR, without a test of its kind. The value must be
        of that kind, null or missing; for null and missing values, the result is NULL."""

    def plain(self) -> str | None:
        """Return SQL for the value as an integer or a text, which is NULL only if the value is missing.

        Return None if there is no such expression."""
        return None

    def may_hold(self) -> bool:
        """Return whether the value may be an array or an object."""
        return True

    def found_by(self, operator: str, canonical: str, plain: str) -> str | None:
        """Return an SQL condition for which the engine uses an index, or None if there is no index.

        The condition must be true whenever the comparison of the value with a constant is true. The constant is a
        number or a text, given in SQL as JSON (`canonical`) and as an SQL value (`plain`).
        """
        return None

    @abstractmethod
    def is_text(self, canonical: str, plain: str) -> str:
        """Return the engine's fastest SQL condition that the value equals a text.

        The text is given in SQL as JSON and as an SQL value. The condition is false or NULL for other kinds of values.
        """


@dataclass(frozen=True)
class Quoted:
    """Functions that quote texts and names, so that no part of them is executed as SQL."""

    @staticmethod
    def text(value: str) -> str:
        """Return a text as a literal of standard SQL. Raises ValueError for a NUL, which literals cannot contain."""
        if "\0" in value:
            raise ValueError("a text or name in SQL cannot contain a NUL")
        return "'" + value.replace("'", "''") + "'"

    @staticmethod
    def name(value: str) -> str:
        """Return the name of a column or table in double quotes. Raises ValueError as `text` does."""
        if "\0" in value:
            raise ValueError("a text or name in SQL cannot contain a NUL")
        return '"' + value.replace('"', '""') + '"'


def exactly(integer: str, operator: str, double: str) -> str:
    """Return SQL that compares an integer with a double exactly. Doubles from 2 ** 53 on are compared as integers."""
    return (
        f"(CASE WHEN {integer} IS NULL THEN NULL WHEN {double} >= 9223372036854775808e0 THEN 0 {operator} 1"
        f" WHEN {double} < -9223372036854775808e0 THEN 1 {operator} 0"
        f" WHEN abs({double}) >= {EXACT}e0 THEN {integer} {operator} CAST({double} AS BIGINT)"
        f" ELSE CAST({integer} AS DOUBLE PRECISION) {operator} {double} END)"
    )
