"""SQL of DuckDB for values in a document that is stored as JSON text, as a VARIANT, or in typed columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from document_stores.sql.values import Quoted, Value

_KINDS_OF_JSON = {
    "NULL": "null",
    "BOOLEAN": "boolean",
    "UBIGINT": "integer",
    "BIGINT": "integer",
    "HUGEINT": "integer",
    "DOUBLE": "double",
    "VARCHAR": "text",
    "ARRAY": "array",
    "OBJECT": "object",
}
_INTEGERS_OF_VARIANT = tuple(f"{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64))


def _one_of(names: tuple[str, ...]) -> str:
    return ", ".join(map(Quoted.text, names))


class JsonValue(Value):
    """A value at a JSON pointer (RFC 6901) within an expression of type JSON. Pointers can express any name."""

    def __init__(self, document: str, pointer: str = "", item: bool = False) -> None:
        """`item`: the value is an item of an array. DuckDB returns null items as NULL, so NULL then means null."""
        self._document, self._pointer, self._item = document, pointer, item

    def step(self, name: str) -> JsonValue:
        """Return a field of an object. In an array, the names '-' and numbers would refer to items."""
        pointer = f"{self._pointer}/{name.replace('~', '~0').replace('/', '~1')}"
        if not name.isdigit() and name != "-":
            return JsonValue(self._document, pointer)
        inside = f"CASE WHEN {self._type()} = 'OBJECT' THEN {self._json()} END"
        return JsonValue(f"({inside})", pointer[len(self._pointer) :])

    def _json(self) -> str:
        if not self._pointer:
            return self._document
        return f"json_extract({self._document}, {Quoted.text(self._pointer)})"

    def _type(self) -> str:
        if not self._pointer:
            return f"json_type({self._document})"
        return f"json_type({self._document}, {Quoted.text(self._pointer)})"

    def kind(self) -> str:
        """Use json_type."""
        cases = " ".join(f"WHEN '{theirs}' THEN '{ours}'" for theirs, ours in _KINDS_OF_JSON.items())
        kind = f"CASE {self._type()} {cases} END"
        return f"coalesce({kind}, 'null')" if self._item else f"({kind})"

    def integer(self) -> str:
        """Cast integers."""
        return f"(CASE WHEN {self._type()} IN ('UBIGINT', 'BIGINT') THEN TRY_CAST({self._json()} AS BIGINT) END)"

    def double(self) -> str:
        """Cast doubles."""
        return f"(CASE WHEN {self._type()} = 'DOUBLE' THEN TRY_CAST({self._json()} AS DOUBLE) END)"

    def text(self) -> str:
        """Extract the text without its quotes."""
        return f"(CASE WHEN {self._type()} = 'VARCHAR' THEN json_extract_string({self._json()}, '$') END)"

    def boolean(self) -> str:
        """Cast booleans."""
        return f"(CASE WHEN {self._type()} = 'BOOLEAN' THEN TRY_CAST({self._json()} AS BOOLEAN) END)"

    def canonical(self) -> str:
        """Use DuckDB's own output of extracted values, which has no blanks or needless escapes."""
        return (
            f"coalesce(CAST({self._json()} AS VARCHAR), 'null')" if self._item else f"CAST({self._json()} AS VARCHAR)"
        )

    def is_text(self, canonical: str, plain: str) -> str:
        """Extract the value once, and compare it with JSON written by DuckDB. (Other writers escape some characters
        differently.)"""
        return f"(CAST({self._json()} AS VARCHAR) = CAST(to_json(CAST({plain} AS VARCHAR)) AS VARCHAR))"

    def unguarded(self, type_: str) -> str:
        """Use json_extract_string, or a cast of its result."""
        path = Quoted.text(self._pointer or "$")
        text = f"json_extract_string({self._document}, {path})"
        return text if type_ == "VARCHAR" else f"CAST({text} AS {type_})"

    def items(self) -> str:
        """Return a list of JSON; NULL for other values than arrays."""
        return f"(CASE WHEN {self._type()} = 'ARRAY' THEN CAST({self._json()} AS JSON[]) END)"

    def of_item(self, item: str) -> Value:
        """Return one item of `items`."""
        return JsonValue(item, item=True)


class VariantValue(Value):
    """A value within an expression of type VARIANT. variant_extract is called for each name of its path."""

    def __init__(self, variant: str, exists: str = "true") -> None:
        """`exists` is the condition under which a null value exists."""
        self._variant, self._exists = variant, exists

    def step(self, name: str) -> VariantValue:
        """Extract a field. Here names never refer to items of arrays."""
        quoted = Quoted.text(name)
        exists = f"variant_exists({self._variant}, {quoted})"
        if not name:
            # For variant_exists, an empty name means the value itself.
            exists = f"coalesce(list_contains(variant_keys({self._variant}), ''), false)"
        return VariantValue(f"variant_extract({self._variant}, {quoted})", exists)

    def _type(self) -> str:
        return f"variant_type({self._variant})"

    def kind(self) -> str:
        """Use variant_type, which is NULL for null and missing values."""
        return (
            f"(CASE WHEN {self._type()} IS NULL THEN CASE WHEN {self._exists} THEN 'null' END"
            f" WHEN {self._type()} IN ({_one_of(_INTEGERS_OF_VARIANT)}) THEN 'integer'"
            f" WHEN {self._type()} IN ('DOUBLE', 'FLOAT') THEN 'double'"
            f" WHEN {self._type()} = 'VARCHAR' THEN 'text'"
            f" WHEN {self._type()} LIKE 'BOOL%' THEN 'boolean'"
            f" ELSE lower({self._type()}) END)"
        )

    def integer(self) -> str:
        """Cast integers."""
        of_kind = f"{self._type()} IN ({_one_of(_INTEGERS_OF_VARIANT)})"
        return f"(CASE WHEN {of_kind} THEN TRY_CAST({self._variant} AS BIGINT) END)"

    def double(self) -> str:
        """Cast doubles."""
        return f"(CASE WHEN {self._type()} IN ('DOUBLE', 'FLOAT') THEN TRY_CAST({self._variant} AS DOUBLE) END)"

    def text(self) -> str:
        """Cast texts."""
        return f"(CASE WHEN {self._type()} = 'VARCHAR' THEN TRY_CAST({self._variant} AS VARCHAR) END)"

    def boolean(self) -> str:
        """Cast booleans."""
        return f"(CASE WHEN {self._type()} LIKE 'BOOL%' THEN TRY_CAST({self._variant} AS BOOLEAN) END)"

    def canonical(self) -> str:
        """Use to_json, which returns NULL for null."""
        of_null = f"CASE WHEN {self._exists} THEN 'null' END"
        return f"coalesce(CAST(to_json({self._variant}) AS VARCHAR), {of_null})"

    def is_text(self, canonical: str, plain: str) -> str:
        """Compare the value after a cast to text. Values of other kinds can have the same text, so test the kind
        too."""
        return f"(TRY_CAST({self._variant} AS VARCHAR) = {plain} AND {self._type()} = 'VARCHAR')"

    def unguarded(self, type_: str) -> str:
        """Cast without a test."""
        return f"CAST({self._variant} AS {type_})"

    def items(self) -> str:
        """Return a list of JSON; NULL for other values than arrays. In DuckDB 2.0 lists of VARIANT are much slower."""
        return f"(CASE WHEN {self._type()} = 'ARRAY' THEN CAST(to_json({self._variant}) AS JSON[]) END)"

    def of_item(self, item: str) -> Value:
        """Return one item of `items`."""
        return JsonValue(item, item=True)


class MissingValue(Value):
    """A missing value."""

    def step(self, name: str) -> MissingValue:
        """Return a missing value."""
        return self

    def kind(self) -> str:
        """Return NULL."""
        return "CAST(NULL AS VARCHAR)"

    def integer(self) -> str:
        """Return NULL."""
        return "CAST(NULL AS BIGINT)"

    def double(self) -> str:
        """Return NULL."""
        return "CAST(NULL AS DOUBLE)"

    def text(self) -> str:
        """Return NULL."""
        return "CAST(NULL AS VARCHAR)"

    def boolean(self) -> str:
        """Return NULL."""
        return "CAST(NULL AS BOOLEAN)"

    def canonical(self) -> str:
        """Return NULL."""
        return "CAST(NULL AS VARCHAR)"

    def is_text(self, canonical: str, plain: str) -> str:
        """Return false."""
        return "false"

    def unguarded(self, type_: str) -> str:
        """Return NULL."""
        return f"CAST(NULL AS {type_})"

    def plain(self) -> str | None:
        """Return NULL."""
        return "CAST(NULL AS VARCHAR)"

    def may_hold(self) -> bool:
        """Return false."""
        return False

    def items(self) -> str:
        """Return NULL."""
        return "CAST(NULL AS VARCHAR[])"

    def of_item(self, item: str) -> Value:
        """Return a missing value."""
        return self


_INTEGER_TYPES = frozenset({"tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint"})


class TypedValue(MissingValue):
    """A typed column or a field within it. NULL can mean missing or null, and is treated as missing."""

    tells_null = False

    def __init__(self, expression: str, type_: Any, around: str = "true") -> None:
        """`type_` is DuckDB's type object, with `id` and `children`. `around` is the condition that the value's parent
        exists."""
        self._expression, self._type_of, self._around = expression, type_, around

    @property
    def _id(self) -> str:
        return str(self._type_of.id)

    def step(self, name: str) -> Any:
        """Return a field of a struct by its exact name; DuckDB itself ignores case."""
        for theirs, type_ in self._type_of.children if self._id == "struct" else ():
            if theirs == name:
                inside = f"struct_extract({self._expression}, {Quoted.text(name)})"
                return typed(inside, type_, f"{self._expression} IS NOT NULL")
        return MissingValue()

    def _if_any(self, kind: str) -> str:
        return f"(CASE WHEN {self._expression} IS NOT NULL THEN '{kind}' END)"

    def kind(self) -> str:
        """Use the column's type."""
        if self._id in _INTEGER_TYPES:
            return self._if_any("integer")
        known = {"double": "double", "varchar": "text", "boolean": "boolean", "list": "array", "struct": "object"}
        return self._if_any(known[self._id]) if self._id in known else super().kind()

    def integer(self) -> str:
        """Return the column if it has integers."""
        return self._expression if self._id in _INTEGER_TYPES else super().integer()

    def double(self) -> str:
        """Return the column if it has doubles."""
        return self._expression if self._id == "double" else super().double()

    def text(self) -> str:
        """Return the column if it has texts."""
        return self._expression if self._id == "varchar" else super().text()

    def boolean(self) -> str:
        """Return the column if it has booleans."""
        return self._expression if self._id == "boolean" else super().boolean()

    def canonical(self) -> str:
        """Use to_json."""
        return f"CAST(to_json({self._expression}) AS VARCHAR)"

    def stored(self) -> str:
        """Return null for NULL if the parent exists."""
        return _null_if(self._around, self.canonical())

    def is_text(self, canonical: str, plain: str) -> str:
        """Compare if the column has texts."""
        return f"({self._expression} = {plain})" if self._id == "varchar" else "false"

    def unguarded(self, type_: str) -> str:
        """Return the column."""
        return self._expression

    def plain(self) -> str | None:
        """Return the column if it has integers or texts."""
        return self._expression if self._id == "varchar" or self._id in _INTEGER_TYPES else None

    def may_hold(self) -> bool:
        """Return whether the column has lists or structs."""
        return self._id in ("list", "struct")

    def items(self) -> str:
        """Return the column if it has lists."""
        return self._expression if self._id == "list" else super().items()

    def of_item(self, item: str) -> Value:
        """Return one item of the list."""
        return typed(item, self._type_of.children[0][1]) if self._id == "list" else MissingValue()


@dataclass(frozen=True)
class _Scalar:
    """A scalar type with the same attributes as DuckDB's type objects."""

    id: str
    children: tuple[()] = ()


class ColumnValue(TypedValue):
    """A column computed from a value of one kind. NULL means missing."""

    tells_null = True

    def __init__(self, expression: str, kind: str) -> None:
        """`kind` is 'text' or 'integer'."""
        super().__init__(expression, _Scalar("varchar" if kind == "text" else "bigint"))


class JsonPart(JsonValue):
    """A JSON column, or a JSON field within a column, with values of mixed kinds."""

    tells_null = False

    def __init__(self, expression: str, around: str) -> None:
        """`around` is the condition that its parent exists."""
        super().__init__(expression)
        self._around = around

    def stored(self) -> str:
        """Return null for NULL if the parent exists."""
        return _null_if(self._around, self.canonical())


def _null_if(around: str, canonical: str) -> str:
    return f"(CASE WHEN {around} THEN coalesce({canonical}, 'null') END)"


def typed(expression: str, type_: Any, around: str = "true") -> Value:
    """Return the value of a column or of a field within a column."""
    return JsonPart(expression, around) if str(type_).upper() == "JSON" else TypedValue(expression, type_, around)


class Row(MissingValue):
    """All columns of a table as one document."""

    tells_null = False

    def __init__(self, columns: dict[str, tuple[str, Any]], text: str, holds_nulls: bool) -> None:
        """`columns` maps field names to a column's expression and type. `text` is the JSON text of the whole row."""
        self._columns, self._text = columns, text
        self.holds_nulls = holds_nulls

    def kind(self) -> str:
        """Return object."""
        return "'object'"

    def canonical(self) -> str:
        """Return the text, with null for missing fields."""
        return self._text

    def may_hold(self) -> bool:
        """Return true."""
        return True

    def step(self, name: str) -> Any:
        """Return a column by its exact name."""
        return typed(*self._columns[name]) if name in self._columns else MissingValue()
