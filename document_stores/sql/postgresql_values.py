"""PostgreSQL's SQL expressions for values in a JSONB document. JSONB stores numbers as decimals, not in 64 bits."""

from __future__ import annotations

from collections.abc import Collection

from adapters.document_store import FieldPath
from document_stores.sql.values import Value


def literal(text: str) -> str:
    """Return a text as an SQL literal. Percent signs are written as escapes, because psycopg would treat a percent sign
    as the start of a parameter.

    Raises ValueError for a NUL, which PostgreSQL's texts cannot contain.
    """
    if "\0" in text:
        raise ValueError("a text in PostgreSQL cannot contain a NUL")
    escaped = text.replace("\\", "\\\\").replace("'", "''").replace("%", "\\x25")
    return f"E'{escaped}'"


class JsonbValue(Value):
    """A value within an expression of type jsonb. For each name in its path, an operator extracts a field."""

    def __init__(
        self, document: str, indexed: Collection[FieldPath] = (), path: FieldPath = (), text: str | None = None
    ) -> None:
        """`indexed` are the paths, relative to this value, that have an index. `text` is SQL for the value as text
        without quotes."""
        self._json, self._indexed, self._path = document, indexed, path
        self._text = text or f"({document} #>> '{{}}')"

    def step(self, name: str) -> JsonbValue:
        """Return the field of this name, extracted by an SQL operator."""
        quoted = literal(name)
        return JsonbValue(
            f"({self._json} -> {quoted})", self._indexed, (*self._path, name), f"({self._json} ->> {quoted})"
        )

    def _type(self) -> str:
        return f"jsonb_typeof({self._json})"

    def _is_integer(self) -> str:
        """Return an SQL condition that a number is a 64-bit integer. Larger whole numbers were stored as doubles with
        an exponent, which PostgreSQL writes without the exponent."""
        number = f"CAST({self._json} AS numeric)"
        return f"(scale({number}) = 0 AND {number} BETWEEN -9223372036854775808 AND 9223372036854775807)"

    def indexed(self) -> str:
        """Return the SQL expression for an index of this value. It has the type JSONB, which orders values of all
        kinds."""
        return self._json

    def kind(self) -> str:
        """Return SQL for the kind of the value, by jsonb_typeof. A number is an integer if it has no fraction, not even
        '.0'."""
        number = f"CASE WHEN {self._is_integer()} THEN 'integer' ELSE 'double' END"
        return f"(CASE {self._type()} WHEN 'number' THEN {number} WHEN 'string' THEN 'text' ELSE {self._type()} END)"

    def integer(self) -> str:
        """Return SQL for the value as BIGINT if it is an integer, else NULL."""
        cast = f"CASE WHEN {self._is_integer()} THEN CAST({self._json} AS BIGINT) END"
        return f"(CASE WHEN {self._type()} = 'number' THEN {cast} END)"

    def double(self) -> str:
        """Return SQL for the value as a double if it is one, else NULL."""
        cast = f"CASE WHEN NOT {self._is_integer()} THEN CAST({self._json} AS DOUBLE PRECISION) END"
        return f"(CASE WHEN {self._type()} = 'number' THEN {cast} END)"

    def text(self) -> str:
        """Return SQL for the text without its quotes if the value is a text, else NULL."""
        return f"(CASE WHEN {self._type()} = 'string' THEN {self._text} END)"

    def boolean(self) -> str:
        """Return SQL for the value as a boolean if it is one, else NULL."""
        return f"(CASE WHEN {self._type()} = 'boolean' THEN CAST({self._json} AS BOOLEAN) END)"

    def canonical(self) -> str:
        """Return SQL for the value's JSON text, as PostgreSQL writes it."""
        return f"CAST({self._json} AS TEXT)"

    def is_text(self, canonical: str, plain: str) -> str:
        """Return SQL that compares the value with the text as JSONB."""
        return f"({self._json} = CAST({canonical} AS jsonb))"

    def found_by(self, operator: str, canonical: str, plain: str) -> str | None:
        """Return SQL that compares the value as JSONB if this path has an index, else None. The SQL may also be true
        for values of other kinds, because JSONB sorts such values below or above numbers and texts."""
        return f"({self._json} {operator} CAST({canonical} AS jsonb))" if self._path in self._indexed else None

    def unguarded(self, type_: str) -> str:
        """Return SQL that casts the value's text without quotes to the type, without a test of the value's kind."""
        if type_ == "VARCHAR":
            return self._text
        return f"CAST({self._text} AS {'DOUBLE PRECISION' if type_ == 'DOUBLE' else type_})"

    def items(self) -> str:
        """Return SQL for the value if it is an array, else NULL."""
        return f"(CASE WHEN {self._type()} = 'array' THEN {self._json} END)"
