"""SQL of PostgreSQL for values in a JSONB document. JSONB stores numbers as decimals, not in 64 bits."""

from __future__ import annotations

from collections.abc import Collection

from adapters.document_store import FieldPath
from document_stores.sql.values import Value


def literal(text: str) -> str:
    """Return a text as a literal without percent signs, which psycopg would take for parameters.

    Raises ValueError for a NUL, which PostgreSQL's texts cannot contain.
    """
    if "\0" in text:
        raise ValueError("a text in PostgreSQL cannot contain a NUL")
    escaped = text.replace("\\", "\\\\").replace("'", "''").replace("%", "\\x25")
    return f"E'{escaped}'"


class JsonbValue(Value):
    """A value within an expression of type jsonb. Each name of its path is an operator, which finds only fields."""

    def __init__(
        self, document: str, indexed: Collection[FieldPath] = (), path: FieldPath = (), text: str | None = None
    ) -> None:
        """`indexed` are paths from here that have an index; `text` is the value without its quotes."""
        self._json, self._indexed, self._path = document, indexed, path
        self._text = text or f"({document} #>> '{{}}')"

    def step(self, name: str) -> JsonbValue:
        """Use an operator."""
        quoted = literal(name)
        return JsonbValue(
            f"({self._json} -> {quoted})", self._indexed, (*self._path, name), f"({self._json} ->> {quoted})"
        )

    def _type(self) -> str:
        return f"jsonb_typeof({self._json})"

    def _is_integer(self) -> str:
        """Return a test whether a number is an integer of 64 bits. Larger whole numbers are doubles whose exponent was
        written out."""
        number = f"CAST({self._json} AS numeric)"
        return f"(scale({number}) = 0 AND {number} BETWEEN -9223372036854775808 AND 9223372036854775807)"

    def indexed(self) -> str:
        """Return the expression of an index. It is JSONB, which orders values of all kinds."""
        return self._json

    def kind(self) -> str:
        """Use jsonb_typeof. Integers are numbers that have no fraction, not even '.0'."""
        number = f"CASE WHEN {self._is_integer()} THEN 'integer' ELSE 'double' END"
        return f"(CASE {self._type()} WHEN 'number' THEN {number} WHEN 'string' THEN 'text' ELSE {self._type()} END)"

    def integer(self) -> str:
        """Cast integers."""
        cast = f"CASE WHEN {self._is_integer()} THEN CAST({self._json} AS BIGINT) END"
        return f"(CASE WHEN {self._type()} = 'number' THEN {cast} END)"

    def double(self) -> str:
        """Cast doubles."""
        cast = f"CASE WHEN NOT {self._is_integer()} THEN CAST({self._json} AS DOUBLE PRECISION) END"
        return f"(CASE WHEN {self._type()} = 'number' THEN {cast} END)"

    def text(self) -> str:
        """Return texts without their quotes."""
        return f"(CASE WHEN {self._type()} = 'string' THEN {self._text} END)"

    def boolean(self) -> str:
        """Cast booleans."""
        return f"(CASE WHEN {self._type()} = 'boolean' THEN CAST({self._json} AS BOOLEAN) END)"

    def canonical(self) -> str:
        """Use PostgreSQL's own output."""
        return f"CAST({self._json} AS TEXT)"

    def is_text(self, canonical: str, plain: str) -> str:
        """Compare as JSONB."""
        return f"({self._json} = CAST({canonical} AS jsonb))"

    def found_by(self, operator: str, canonical: str, plain: str) -> str | None:
        """Compare as JSONB if this path has an index. JSONB sorts values of other kinds below or above numbers and
        texts."""
        return f"({self._json} {operator} CAST({canonical} AS jsonb))" if self._path in self._indexed else None

    def unguarded(self, type_: str) -> str:
        """Return the text without its quotes, which is NULL for null, or a cast of it."""
        if type_ == "VARCHAR":
            return self._text
        return f"CAST({self._text} AS {'DOUBLE PRECISION' if type_ == 'DOUBLE' else type_})"

    def items(self) -> str:
        """Return arrays; NULL for other values."""
        return f"(CASE WHEN {self._type()} = 'array' THEN {self._json} END)"
