"""A value whose kinds are known beforehand, as a user knows their data: then no test of each value's kind is needed.

What is known was found by a query of its own and holds until the next write.
"""

from __future__ import annotations

from document_stores.sql.values import NOTHING, Value

Kinds = frozenset[str | None]
"""The kinds that a field has in all documents; None where it is missing in some."""


class KnownValue(Value):
    """As the value that it stands for, in cheaper words."""

    def __init__(self, value: Value, kinds: Kinds) -> None:
        """`kinds` has to hold all kinds that occur."""
        self._value, self._kinds = value, kinds
        self.tells_null = value.tells_null  # type: ignore[misc]

    def step(self, name: str) -> Value:
        """Of what lies within nothing is known."""
        return self._value.step(name)

    def _only(self, kind: str) -> bool:
        """Whether nothing else occurs but null, which every cast gives as NULL."""
        return kind in self._kinds and self._kinds <= {kind, "null", None}

    def kind(self) -> str:
        """As it is."""
        return self._value.kind()

    def integer(self) -> str:
        """A cast alone, or nothing."""
        if self._only("integer"):
            return self._value.unguarded("BIGINT")
        return self._value.integer() if "integer" in self._kinds else NOTHING["integer"]

    def double(self) -> str:
        """A cast alone, or nothing."""
        if self._only("double"):
            return self._value.unguarded("DOUBLE")
        return self._value.double() if "double" in self._kinds else NOTHING["double"]

    def text(self) -> str:
        """A cast alone, or nothing."""
        if self._only("text"):
            return self._value.unguarded("VARCHAR")
        return self._value.text() if "text" in self._kinds else NOTHING["text"]

    def boolean(self) -> str:
        """As it is, or nothing."""
        return self._value.boolean() if "boolean" in self._kinds else NOTHING["boolean"]

    def canonical(self) -> str:
        """As it is."""
        return self._value.canonical()

    def plain(self) -> str | None:
        """A cast alone, where it is of one kind or missing and never null."""
        if self._kinds <= {"text", None}:
            return self.text()
        return self.integer() if self._kinds <= {"integer", None} else None

    def may_hold(self) -> bool:
        """As it is known."""
        return bool(self._kinds & {"array", "object"})

    def is_text(self, canonical: str, plain: str) -> str:
        """A comparison of the cast alone."""
        return f"({self.text()} = {plain})" if self._only("text") else self._value.is_text(canonical, plain)

    def found_by(self, operator: str, canonical: str, plain: str) -> str | None:
        """As it is."""
        return self._value.found_by(operator, canonical, plain)

    def unguarded(self, type_: str) -> str:
        """As it is."""
        return self._value.unguarded(type_)
