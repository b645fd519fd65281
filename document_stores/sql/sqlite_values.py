"""What lies in a document, in SQLite's SQL: in a JSON text whose names are written as msgspec writes them.

SQLite's paths compare names as they stand in the text, without reading escapes, and end at a quotation mark: names that
need either cannot be named.
"""

from __future__ import annotations

from collections.abc import Collection

from document_stores.sql.values import Quoted, Value


def can_name(name: str) -> bool:
    """Whether a path of SQLite's can name a field: nothing in its name is written by an escape."""
    return name != "" and not any(sign in '"\\' or sign < " " for sign in name)


class SqliteValue(Value):
    """By a path within an expression that is JSON text."""

    def __init__(self, document: str, path: str = "$", item: bool = False, indexed: Collection[str] = ()) -> None:
        """`item`: `document` is a row of json_each, with its columns `type`, `value`, `key` and `json`. `indexed` are
        the expressions that have an index."""
        self._document, self._path, self._item, self._indexed = document, path, item, indexed

    def step(self, name: str) -> SqliteValue:
        """A path in quotation marks names fields alone, never an item. Raises ValueError for a name that none can."""
        if not can_name(name):
            raise ValueError(f"SQLite has no path to a field called {name!r}")
        if self._item:
            # The text of an object; to look it up in the array again would be to read all of it for each item.
            return SqliteValue(f"(CASE WHEN {self._document}.type = 'object' THEN {self._document}.value END)").step(
                name
            )
        return SqliteValue(self._document, f'{self._path}."{name}"', indexed=self._indexed)

    def _literal(self) -> str:
        return Quoted.text(self._path)

    def _json(self) -> str:
        """The value as JSON text, and NULL if missing."""
        if self._item:
            # What json_each gives of a double has 15 digits; the text that it was given has all.
            return f"({self._document}.json -> ('$[' || {self._document}.key || ']'))"
        return f"({self._document} -> {self._literal()})"

    def _value(self) -> str:
        """The value as SQL has it."""
        return f"{self._document}.value" if self._item else f"json_extract({self._document}, {self._literal()})"

    def _type(self) -> str:
        return f"{self._document}.type" if self._item else f"json_type({self._document}, {self._literal()})"

    def indexed(self) -> str:
        """The expression of an index: that of `is_text`, `integer` and the others."""
        return self._value()

    def kind(self) -> str:
        """By json_type."""
        return (
            f"(CASE {self._type()} WHEN 'true' THEN 'boolean' WHEN 'false' THEN 'boolean' WHEN 'real' THEN 'double'"
            f" ELSE {self._type()} END)"
        )

    def integer(self) -> str:
        """The value, if it is one."""
        return f"(CASE WHEN {self._type()} = 'integer' THEN {self._value()} END)"

    def double(self) -> str:
        """The value, if it is one."""
        return f"(CASE WHEN {self._type()} = 'real' THEN {self._value()} END)"

    def text(self) -> str:
        """The value, if it is one."""
        return f"(CASE WHEN {self._type()} = 'text' THEN {self._value()} END)"

    def boolean(self) -> str:
        """0 or 1, if it is one."""
        return f"(CASE WHEN {self._type()} IN ('true', 'false') THEN {self._value()} END)"

    def canonical(self) -> str:
        """The text as it is stored, which is as msgspec writes it."""
        return self._json()

    def is_text(self, canonical: str, plain: str) -> str:
        """Equal as SQL has it, which an index of the expression answers, and as JSON: SQL's texts end at a NUL."""
        return f"({self._value()} = {plain} AND {self._json()} = {canonical})"

    def found_by(self, operator: str, canonical: str, plain: str) -> str | None:
        """The order of SQL's values, where this path has an index: numbers of both kinds lie before texts, and
        booleans, arrays and objects among them. SQLite takes an index for its very expression alone, beside AND."""
        return f"({self._value()} {operator} {plain})" if self._value() in self._indexed else None

    def unguarded(self, type_: str) -> str:
        """The value as it is."""
        return self._value()

    def items(self) -> str:
        """An array's text for json_each; NULL for what is no array."""
        if self._item:
            return f"(CASE WHEN {self._document}.type = 'array' THEN {self._document}.value END)"
        return f"(CASE WHEN {self._type()} = 'array' THEN {self._json()} END)"
