"""SQLite's SQL expressions for values in a document that is stored as JSON text, as encoded by msgspec.

A path of SQLite cannot express a name with an escape or a quotation mark: SQLite compares names with the stored text
without decoding escapes, and a name in a path ends at a quotation mark.
"""

from __future__ import annotations

from collections.abc import Collection

from document_stores.sql.values import Quoted, Value


def can_name(name: str) -> bool:
    """Return whether a path of SQLite can express this field name. The name must contain no escapes."""
    return name != "" and not any(sign in '"\\' or sign < " " for sign in name)


class SqliteValue(Value):
    """A value within a JSON document. An SQL expression returns the document's JSON text, and a path of SQLite leads to
    the value."""

    def __init__(self, document: str, path: str = "$", item: bool = False, indexed: Collection[str] = ()) -> None:
        """If `item` is true, `document` is the name of a row of json_each, with its columns `type`, `value`, `key` and
        `json`. `indexed` are the SQL expressions that have an index."""
        self._document, self._path, self._item, self._indexed = document, path, item, indexed

    def step(self, name: str) -> SqliteValue:
        """Return the field of this name. Raises ValueError for a name that a path of SQLite cannot express."""
        if not can_name(name):
            raise ValueError(f"SQLite's JSON paths cannot express a field named {name!r}")
        if self._item:
            # Use the object's text. Looking the object up in the array would read the whole array for each item.
            return SqliteValue(f"(CASE WHEN {self._document}.type = 'object' THEN {self._document}.value END)").step(
                name
            )
        return SqliteValue(self._document, f'{self._path}."{name}"', indexed=self._indexed)

    def _literal(self) -> str:
        return Quoted.text(self._path)

    def _json(self) -> str:
        """Return SQL for the value's JSON text, which is NULL if the value is missing."""
        if self._item:
            # json_each returns doubles with 15 digits; its source text has all digits.
            return f"({self._document}.json -> ('$[' || {self._document}.key || ']'))"
        return f"({self._document} -> {self._literal()})"

    def _value(self) -> str:
        """Return SQL for the value as an SQL value, such as an integer or a text."""
        return f"{self._document}.value" if self._item else f"json_extract({self._document}, {self._literal()})"

    def _type(self) -> str:
        return f"{self._document}.type" if self._item else f"json_type({self._document}, {self._literal()})"

    def indexed(self) -> str:
        """Return the SQL expression for an index of this value. The methods `is_text`, `integer` and others must use
        the same expression. Otherwise SQLite would not use the index."""
        return self._value()

    def kind(self) -> str:
        """Return SQL for the kind of the value, by json_type."""
        return (
            f"(CASE {self._type()} WHEN 'true' THEN 'boolean' WHEN 'false' THEN 'boolean' WHEN 'real' THEN 'double'"
            f" ELSE {self._type()} END)"
        )

    def integer(self) -> str:
        """Return SQL for the value if it is an integer, else NULL."""
        return f"(CASE WHEN {self._type()} = 'integer' THEN {self._value()} END)"

    def double(self) -> str:
        """Return SQL for the value if it is a double, else NULL."""
        return f"(CASE WHEN {self._type()} = 'real' THEN {self._value()} END)"

    def text(self) -> str:
        """Return SQL for the value if it is a text, else NULL."""
        return f"(CASE WHEN {self._type()} = 'text' THEN {self._value()} END)"

    def boolean(self) -> str:
        """Return SQL for the value as 0 or 1 if it is a boolean, else NULL."""
        return f"(CASE WHEN {self._type()} IN ('true', 'false') THEN {self._value()} END)"

    def canonical(self) -> str:
        """Return SQL for the value's JSON text as it was stored, in the encoding of msgspec."""
        return self._json()

    def is_text(self, canonical: str, plain: str) -> str:
        """Return SQL that compares the value twice: as an SQL value, for which an index can be used, and as JSON,
        because SQLite's texts end at a NUL."""
        return f"({self._value()} = {plain} AND {self._json()} = {canonical})"

    def found_by(self, operator: str, canonical: str, plain: str) -> str | None:
        """Return SQL that compares the value as an SQL value if this path has an index, else None.

        In the order of SQL values, integers and doubles come before texts; booleans are among the numbers, and arrays
        and objects among the texts. SQLite uses an index only if the condition is an operand of AND and contains
        exactly the indexed expression.
        """
        return f"({self._value()} {operator} {plain})" if self._value() in self._indexed else None

    def unguarded(self, type_: str) -> str:
        """Return SQL for the value, without a test of its kind."""
        return self._value()

    def items(self) -> str:
        """Return SQL for the JSON text of the array, for json_each, or NULL if the value is not an array."""
        if self._item:
            return f"(CASE WHEN {self._document}.type = 'array' THEN {self._document}.value END)"
        return f"(CASE WHEN {self._type()} = 'array' THEN {self._json()} END)"
