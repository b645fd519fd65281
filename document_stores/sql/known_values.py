"""Values whose kinds are known, so that the SQL need not test their kinds. Users who write SQL know their data too.

A separate query finds the kinds. They are valid until the next write.
"""

from __future__ import annotations

from document_stores.sql.values import NOTHING, Value

Kinds = frozenset[str | None]
"""The kinds of a field in all documents; None if it is missing in some."""


class KnownValue(Value):
    """A wrapper of a value with simpler SQL."""

    def __init__(self, value: Value, kinds: Kinds) -> None:
        """`kinds` must contain all kinds that occur."""
        self._value, self._kinds = value, kinds
        self.tells_null = value.tells_null  # type: ignore[misc]

    def step(self, name: str) -> Value:
        """Return the value of the field, whose kinds are not known."""
        return self._value.step(name)

    def _only(self, kind: str) -> bool:
        """Return whether only this kind and null occur. (Every cast turns null into NULL.)"""
        return kind in self._kinds and self._kinds <= {kind, "null", None}

    def kind(self) -> str:
        """Delegate."""
        return self._value.kind()

    def integer(self) -> str:
        """Return a cast without a test, or NULL."""
        if self._only("integer"):
            return self._value.unguarded("BIGINT")
        return self._value.integer() if "integer" in self._kinds else NOTHING["integer"]

    def double(self) -> str:
        """Return a cast without a test, or NULL."""
        if self._only("double"):
            return self._value.unguarded("DOUBLE")
        return self._value.double() if "double" in self._kinds else NOTHING["double"]

    def text(self) -> str:
        """Return a cast without a test, or NULL."""
        if self._only("text"):
            return self._value.unguarded("VARCHAR")
        return self._value.text() if "text" in self._kinds else NOTHING["text"]

    def boolean(self) -> str:
        """Delegate, or return NULL."""
        return self._value.boolean() if "boolean" in self._kinds else NOTHING["boolean"]

    def canonical(self) -> str:
        """Delegate."""
        return self._value.canonical()

    def plain(self) -> str | None:
        """Return a cast without a test if the value has one kind or is missing, and is never null."""
        if self._kinds <= {"text", None}:
            return self.text()
        return self.integer() if self._kinds <= {"integer", None} else None

    def may_hold(self) -> bool:
        """Use the known kinds."""
        return bool(self._kinds & {"array", "object"})

    def is_text(self, canonical: str, plain: str) -> str:
        """Compare the cast without a test."""
        return f"({self.text()} = {plain})" if self._only("text") else self._value.is_text(canonical, plain)

    def found_by(self, operator: str, canonical: str, plain: str) -> str | None:
        """Delegate."""
        return self._value.found_by(operator, canonical, plain)

    def unguarded(self, type_: str) -> str:
        """Delegate."""
        return self._value.unguarded(type_)
