"""Values whose kinds (such as integer or text) are known for all documents, so that SQL need not test the kinds. Users
who write SQL also know the kinds of their data.

A separate query finds the kinds. Its result is valid until documents are written.
"""

from __future__ import annotations

from document_stores.sql.values import NOTHING, Value

Kinds = frozenset[str | None]
"""Type for the kinds that the values of a field have in all documents. It contains None if the field is missing in
some documents."""


class KnownValue(Value):
    """Wraps a value and returns simpler SQL, which need not test the kind of the value."""

    def __init__(self, value: Value, kinds: Kinds) -> None:
        """`kinds` must contain all kinds that the value has in any document."""
        self._value, self._kinds = value, kinds
        self.tells_null = value.tells_null  # type: ignore[misc]
        # A field that is in all documents was never dropped.
        self.drops_empty = value.drops_empty and None in kinds

    def step(self, name: str) -> Value:
        """Return the field of this name without this wrapper, because the kinds of the field are not known."""
        return self._value.step(name)

    def _only(self, kind: str) -> bool:
        """Return whether the value always is of this kind, null or missing. (Every cast converts null to NULL.)"""
        return kind in self._kinds and self._kinds <= {kind, "null", None}

    def kind(self) -> str:
        """Return the SQL of the wrapped value."""
        return self._value.kind()

    def integer(self) -> str:
        """Return SQL without a test of the kind if all values are integers, null or missing. Otherwise return the SQL
        of the wrapped value, or NULL if no value is an integer."""
        if self._only("integer"):
            return self._value.unguarded("BIGINT")
        return self._value.integer() if "integer" in self._kinds else NOTHING["integer"]

    def double(self) -> str:
        """Return SQL without a test of the kind if all values are doubles, null or missing. Otherwise return the SQL of
        the wrapped value, or NULL if no value is a double."""
        if self._only("double"):
            return self._value.unguarded("DOUBLE")
        return self._value.double() if "double" in self._kinds else NOTHING["double"]

    def text(self) -> str:
        """Return SQL without a test of the kind if all values are texts, null or missing. Otherwise return the SQL of
        the wrapped value, or NULL if no value is a text."""
        if self._only("text"):
            return self._value.unguarded("VARCHAR")
        return self._value.text() if "text" in self._kinds else NOTHING["text"]

    def boolean(self) -> str:
        """Return the SQL of the wrapped value, or NULL if the value is never a boolean."""
        return self._value.boolean() if "boolean" in self._kinds else NOTHING["boolean"]

    def canonical(self) -> str:
        """Return the SQL of the wrapped value."""
        return self._value.canonical()

    def plain(self) -> str | None:
        """Return SQL without a test of the kind if all values are texts or missing, or all are integers or missing.
        Otherwise return None."""
        if self._kinds <= {"text", None}:
            return self.text()
        return self.integer() if self._kinds <= {"integer", None} else None

    def may_hold(self) -> bool:
        """Return whether arrays or objects are among the known kinds."""
        return bool(self._kinds & {"array", "object"})

    def is_text(self, canonical: str, plain: str) -> str:
        """Return SQL that compares the value with the text. The kind of the value is not tested if all values are
        texts."""
        return f"({self.text()} = {plain})" if self._only("text") else self._value.is_text(canonical, plain)

    def found_by(self, operator: str, canonical: str, plain: str) -> str | None:
        """Return the SQL of the wrapped value."""
        return self._value.found_by(operator, canonical, plain)

    def unguarded(self, type_: str) -> str:
        """Return the SQL of the wrapped value."""
        return self._value.unguarded(type_)
