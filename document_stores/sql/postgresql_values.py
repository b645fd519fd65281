"""What lies in a document, in PostgreSQL's SQL: in a JSONB, whose numbers are decimal and not of 64 bits."""

from __future__ import annotations

from collections.abc import Collection

from adapters.document_store import FieldPath
from document_stores.sql.values import Value


def literal(text: str) -> str:
    """A text as a literal without a percent sign, by which psycopg knows parameters. Raises ValueError for one that
    holds a NUL, which no text of PostgreSQL's may."""
    if "\0" in text:
        raise ValueError("a NUL cannot stand in a text of PostgreSQL's")
    escaped = text.replace("\\", "\\\\").replace("'", "''").replace("%", "\\x25")
    return f"E'{escaped}'"


class JsonbValue(Value):
    """A name at a time, within an expression of type jsonb. By a name the operators reach fields alone, never items."""

    def __init__(
        self, document: str, indexed: Collection[FieldPath] = (), path: FieldPath = (), text: str | None = None
    ) -> None:
        """`indexed` are the paths from here that have an index; `text` is the value without its quotes."""
        self._json, self._indexed, self._path = document, indexed, path
        self._text = text or f"({document} #>> '{{}}')"

    def step(self, name: str) -> JsonbValue:
        """By an operator."""
        quoted = literal(name)
        return JsonbValue(
            f"({self._json} -> {quoted})", self._indexed, (*self._path, name), f"({self._json} ->> {quoted})"
        )

    def _type(self) -> str:
        return f"jsonb_typeof({self._json})"

    def _is_integer(self) -> str:
        """Of a number. One beyond 64 bits was a double, whose exponent has been written out."""
        number = f"CAST({self._json} AS numeric)"
        return f"(scale({number}) = 0 AND {number} BETWEEN -9223372036854775808 AND 9223372036854775807)"

    def indexed(self) -> str:
        """The expression of an index: as JSONB it has an order whatever kinds there are."""
        return self._json

    def kind(self) -> str:
        """By jsonb_typeof; integers are numbers without a fraction, also without one of zeros."""
        number = f"CASE WHEN {self._is_integer()} THEN 'integer' ELSE 'double' END"
        return f"(CASE {self._type()} WHEN 'number' THEN {number} WHEN 'string' THEN 'text' ELSE {self._type()} END)"

    def integer(self) -> str:
        """By a cast of what is one."""
        cast = f"CASE WHEN {self._is_integer()} THEN CAST({self._json} AS BIGINT) END"
        return f"(CASE WHEN {self._type()} = 'number' THEN {cast} END)"

    def double(self) -> str:
        """By a cast of what is one."""
        cast = f"CASE WHEN NOT {self._is_integer()} THEN CAST({self._json} AS DOUBLE PRECISION) END"
        return f"(CASE WHEN {self._type()} = 'number' THEN {cast} END)"

    def text(self) -> str:
        """Without its quotes, if it is one."""
        return f"(CASE WHEN {self._type()} = 'string' THEN {self._text} END)"

    def boolean(self) -> str:
        """By a cast of what is one."""
        return f"(CASE WHEN {self._type()} = 'boolean' THEN CAST({self._json} AS BOOLEAN) END)"

    def canonical(self) -> str:
        """PostgreSQL writes it anew."""
        return f"CAST({self._json} AS TEXT)"

    def is_text(self, canonical: str, plain: str) -> str:
        """Equal as JSONB."""
        return f"({self._json} = CAST({canonical} AS jsonb))"

    def found_by(self, operator: str, canonical: str, plain: str) -> str | None:
        """The order of JSONB, where this path has an index. Below and above a number or text are other kinds too."""
        return f"({self._json} {operator} CAST({canonical} AS jsonb))" if self._path in self._indexed else None

    def unguarded(self, type_: str) -> str:
        """The text without its quotes, which is NULL for null, or a cast of it."""
        if type_ == "VARCHAR":
            return self._text
        return f"CAST({self._text} AS {'DOUBLE PRECISION' if type_ == 'DOUBLE' else type_})"

    def items(self) -> str:
        """An array, or NULL for what is none."""
        return f"(CASE WHEN {self._type()} = 'array' THEN {self._json} END)"
