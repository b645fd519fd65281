"""DuckDB's SQL expressions for values in a document that is stored as JSON text, as a VARIANT, or in typed columns."""

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
    """A value within a JSON document. An SQL expression of type JSON returns the document, and a JSON pointer (RFC
    6901) leads to the value. Pointers can express any name."""

    def __init__(self, document: str, pointer: str = "", item: bool = False) -> None:
        """`item` is whether the value is an item of an array. DuckDB returns null items as NULL, so NULL then means
        null."""
        self._document, self._pointer, self._item = document, pointer, item

    def step(self, name: str) -> JsonValue:
        """Return the field of this name. In an array, names such as '-' and '0' would refer to items. For such names,
        the SQL first tests whether the value is an object."""
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
        """Return SQL for the kind of the value, by json_type."""
        cases = " ".join(f"WHEN '{theirs}' THEN '{ours}'" for theirs, ours in _KINDS_OF_JSON.items())
        kind = f"CASE {self._type()} {cases} END"
        return f"coalesce({kind}, 'null')" if self._item else f"({kind})"

    def integer(self) -> str:
        """Return SQL for the value as BIGINT if it is an integer, else NULL."""
        return f"(CASE WHEN {self._type()} IN ('UBIGINT', 'BIGINT') THEN TRY_CAST({self._json()} AS BIGINT) END)"

    def double(self) -> str:
        """Return SQL for the value as a double if it is one, else NULL."""
        return f"(CASE WHEN {self._type()} = 'DOUBLE' THEN TRY_CAST({self._json()} AS DOUBLE) END)"

    def text(self) -> str:
        """Return SQL for the text without its quotes if the value is a text, else NULL."""
        return f"(CASE WHEN {self._type()} = 'VARCHAR' THEN json_extract_string({self._json()}, '$') END)"

    def boolean(self) -> str:
        """Return SQL for the value as a boolean if it is one, else NULL."""
        return f"(CASE WHEN {self._type()} = 'BOOLEAN' THEN TRY_CAST({self._json()} AS BOOLEAN) END)"

    def canonical(self) -> str:
        """Return SQL for the value's JSON text as DuckDB writes it, without blanks and unnecessary escapes."""
        return (
            f"coalesce(CAST({self._json()} AS VARCHAR), 'null')" if self._item else f"CAST({self._json()} AS VARCHAR)"
        )

    def is_text(self, canonical: str, plain: str) -> str:
        """Return SQL that extracts the value once and compares its JSON text with the constant's JSON text. DuckDB must
        write the JSON text of the constant, because other writers escape some characters differently."""
        return f"(CAST({self._json()} AS VARCHAR) = CAST(to_json(CAST({plain} AS VARCHAR)) AS VARCHAR))"

    def unguarded(self, type_: str) -> str:
        """Return SQL for the value, by json_extract_string, without a test of its kind."""
        path = Quoted.text(self._pointer or "$")
        text = f"json_extract_string({self._document}, {path})"
        return text if type_ == "VARCHAR" else f"CAST({text} AS {type_})"

    def items(self) -> str:
        """Return SQL for the items as a list of JSON values, or NULL if the value is not an array."""
        return f"(CASE WHEN {self._type()} = 'ARRAY' THEN CAST({self._json()} AS JSON[]) END)"

    def of_item(self, item: str) -> Value:
        """Return an item of the array; `item` is SQL for one element of `items`."""
        return JsonValue(item, item=True)


class VariantValue(Value):
    """A value within an expression of type VARIANT, extracted by a call of variant_extract for each name in its
    path."""

    def __init__(self, variant: str, exists: str = "true") -> None:
        """`exists` is an SQL condition that is true if the value exists, needed because null and missing are both
        NULL."""
        self._variant, self._exists = variant, exists

    def step(self, name: str) -> VariantValue:
        """Return the field of this name. Unlike in JSON pointers, a name never refers to an item of an array."""
        quoted = Quoted.text(name)
        exists = f"variant_exists({self._variant}, {quoted})"
        if not name:
            # For variant_exists, an empty name means the value itself.
            exists = f"coalesce(list_contains(variant_keys({self._variant}), ''), false)"
        return VariantValue(f"variant_extract({self._variant}, {quoted})", exists)

    def _type(self) -> str:
        return f"variant_type({self._variant})"

    def kind(self) -> str:
        """Return SQL for the kind of the value, by variant_type. Because variant_type is NULL for null and missing
        values, these are tested separately."""
        return (
            f"(CASE WHEN {self._type()} IS NULL THEN CASE WHEN {self._exists} THEN 'null' END"
            f" WHEN {self._type()} IN ({_one_of(_INTEGERS_OF_VARIANT)}) THEN 'integer'"
            f" WHEN {self._type()} IN ('DOUBLE', 'FLOAT') THEN 'double'"
            f" WHEN {self._type()} = 'VARCHAR' THEN 'text'"
            f" WHEN {self._type()} LIKE 'BOOL%' THEN 'boolean'"
            f" ELSE lower({self._type()}) END)"
        )

    def integer(self) -> str:
        """Return SQL for the value as BIGINT if it is an integer, else NULL."""
        of_kind = f"{self._type()} IN ({_one_of(_INTEGERS_OF_VARIANT)})"
        return f"(CASE WHEN {of_kind} THEN TRY_CAST({self._variant} AS BIGINT) END)"

    def double(self) -> str:
        """Return SQL for the value as a double if it is one, else NULL."""
        return f"(CASE WHEN {self._type()} IN ('DOUBLE', 'FLOAT') THEN TRY_CAST({self._variant} AS DOUBLE) END)"

    def text(self) -> str:
        """Return SQL for the value as a text if it is one, else NULL."""
        return f"(CASE WHEN {self._type()} = 'VARCHAR' THEN TRY_CAST({self._variant} AS VARCHAR) END)"

    def boolean(self) -> str:
        """Return SQL for the value as a boolean if it is one, else NULL."""
        return f"(CASE WHEN {self._type()} LIKE 'BOOL%' THEN TRY_CAST({self._variant} AS BOOLEAN) END)"

    def canonical(self) -> str:
        """Return SQL for the value's JSON text, by to_json. Because to_json returns NULL for null, null is a special
        case."""
        of_null = f"CASE WHEN {self._exists} THEN 'null' END"
        return f"coalesce(CAST(to_json({self._variant}) AS VARCHAR), {of_null})"

    def is_text(self, canonical: str, plain: str) -> str:
        """Return SQL that compares the value, cast to text, and tests its kind, because values of other kinds can have
        the same text."""
        return f"(TRY_CAST({self._variant} AS VARCHAR) = {plain} AND {self._type()} = 'VARCHAR')"

    def unguarded(self, type_: str) -> str:
        """Return SQL that casts the value to the type, without a test of its kind."""
        return f"CAST({self._variant} AS {type_})"

    def items(self) -> str:
        """Return SQL for the items as a list of JSON values, or NULL if the value is not an array. In DuckDB 2.0, lists
        of VARIANT values are much slower."""
        return f"(CASE WHEN {self._type()} = 'ARRAY' THEN CAST(to_json({self._variant}) AS JSON[]) END)"

    def of_item(self, item: str) -> Value:
        """Return an item of the array; `item` is SQL for one element of `items`."""
        return JsonValue(item, item=True)


class MissingValue(Value):
    """A value that is missing in every document."""

    def step(self, name: str) -> MissingValue:
        """Return a missing value, because this value is missing."""
        return self

    def kind(self) -> str:
        """Return an SQL expression that is always NULL, because the value is missing."""
        return "CAST(NULL AS VARCHAR)"

    def integer(self) -> str:
        """Return an SQL expression that is always NULL, because the value is missing."""
        return "CAST(NULL AS BIGINT)"

    def double(self) -> str:
        """Return an SQL expression that is always NULL, because the value is missing."""
        return "CAST(NULL AS DOUBLE)"

    def text(self) -> str:
        """Return an SQL expression that is always NULL, because the value is missing."""
        return "CAST(NULL AS VARCHAR)"

    def boolean(self) -> str:
        """Return an SQL expression that is always NULL, because the value is missing."""
        return "CAST(NULL AS BOOLEAN)"

    def canonical(self) -> str:
        """Return an SQL expression that is always NULL, because the value is missing."""
        return "CAST(NULL AS VARCHAR)"

    def is_text(self, canonical: str, plain: str) -> str:
        """Return SQL for false, because the value is missing."""
        return "false"

    def unguarded(self, type_: str) -> str:
        """Return an SQL expression that is always NULL, because the value is missing."""
        return f"CAST(NULL AS {type_})"

    def plain(self) -> str | None:
        """Return an SQL expression that is always NULL, because the value is missing."""
        return "CAST(NULL AS VARCHAR)"

    def may_hold(self) -> bool:
        """Return False, because the value is missing."""
        return False

    def items(self) -> str:
        """Return an SQL expression that is always NULL, because the value is missing."""
        return "CAST(NULL AS VARCHAR[])"

    def of_item(self, item: str) -> Value:
        """Return a missing value, because this value is missing."""
        return self


_INTEGER_TYPES = frozenset({"tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint"})


class TypedValue(MissingValue):
    """A typed column, or a field of a struct in a typed column. NULL can mean missing or null, and is treated as
    missing."""

    tells_null = False

    def __init__(self, expression: str, type_: Any, around: str = "true") -> None:
        """`type_` is DuckDB's type object, with `id` and `children`. `around` is an SQL condition that is true if the
        parent object exists."""
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
        """Return SQL for the kind of the value, which the column's type determines."""
        if self._id in _INTEGER_TYPES:
            return self._if_any("integer")
        known = {"double": "double", "varchar": "text", "boolean": "boolean", "list": "array", "struct": "object"}
        return self._if_any(known[self._id]) if self._id in known else super().kind()

    def integer(self) -> str:
        """Return the column if it contains integers, else NULL."""
        return self._expression if self._id in _INTEGER_TYPES else super().integer()

    def double(self) -> str:
        """Return the column if it contains doubles, else NULL."""
        return self._expression if self._id == "double" else super().double()

    def text(self) -> str:
        """Return the column if it contains texts, else NULL."""
        return self._expression if self._id == "varchar" else super().text()

    def boolean(self) -> str:
        """Return the column if it contains booleans, else NULL."""
        return self._expression if self._id == "boolean" else super().boolean()

    def canonical(self) -> str:
        """Return SQL for the JSON text of the value, by to_json."""
        return f"CAST(to_json({self._expression}) AS VARCHAR)"

    def stored(self) -> str:
        """Return SQL for the value's JSON text. If the value is NULL and the parent object exists, the JSON text is
        null."""
        return _null_if(self._around, self.canonical())

    def is_text(self, canonical: str, plain: str) -> str:
        """Return SQL that compares the column with the text if the column contains texts, else false."""
        return f"({self._expression} = {plain})" if self._id == "varchar" else "false"

    def unguarded(self, type_: str) -> str:
        """Return the column, whose type determines the kind of its values."""
        return self._expression

    def plain(self) -> str | None:
        """Return the column if it contains integers or texts, else None."""
        return self._expression if self._id == "varchar" or self._id in _INTEGER_TYPES else None

    def may_hold(self) -> bool:
        """Return whether the column contains lists or structs."""
        return self._id in ("list", "struct")

    def items(self) -> str:
        """Return the column if it contains lists, else NULL."""
        return self._expression if self._id == "list" else super().items()

    def of_item(self, item: str) -> Value:
        """Return an item of the list; `item` is SQL for one element of `items`."""
        return typed(item, self._type_of.children[0][1]) if self._id == "list" else MissingValue()


@dataclass(frozen=True)
class _Scalar:
    """A scalar type with the same attributes as DuckDB's type objects."""

    id: str
    children: tuple[()] = ()


class ColumnValue(TypedValue):
    """A column that was computed from a value and contains values of one kind. NULL means missing."""

    tells_null = True

    def __init__(self, expression: str, kind: str) -> None:
        """`expression` is SQL for the column, and `kind` is 'text' or 'integer'."""
        super().__init__(expression, _Scalar("varchar" if kind == "text" else "bigint"))


class JsonPart(JsonValue):
    """A JSON column, or a JSON field within a column, with values of mixed kinds."""

    tells_null = False

    def __init__(self, expression: str, around: str) -> None:
        """`around` is an SQL condition that is true if the parent object exists."""
        super().__init__(expression)
        self._around = around

    def stored(self) -> str:
        """Return SQL for the value's JSON text. If the value is NULL and the parent object exists, the JSON text is
        null."""
        return _null_if(self._around, self.canonical())


def _null_if(around: str, canonical: str) -> str:
    return f"(CASE WHEN {around} THEN coalesce({canonical}, 'null') END)"


def typed(expression: str, type_: Any, around: str = "true") -> Value:
    """Return the value of a column or of a field within a column."""
    return JsonPart(expression, around) if str(type_).upper() == "JSON" else TypedValue(expression, type_, around)


class Row(MissingValue):
    """A row of a table, whose columns are the fields of a document."""

    tells_null = False

    def __init__(self, columns: dict[str, tuple[str, Any]], text: str, holds_nulls: bool) -> None:
        """`columns` maps field names to a column's expression and type. `text` is the JSON text of the whole row."""
        self._columns, self._text = columns, text
        self.holds_nulls = holds_nulls

    def kind(self) -> str:
        """Return SQL for the kind 'object', because a row is an object."""
        return "'object'"

    def canonical(self) -> str:
        """Return the JSON text of the row, in which missing fields are null."""
        return self._text

    def may_hold(self) -> bool:
        """Return True, because a row is an object."""
        return True

    def step(self, name: str) -> Any:
        """Return the column of this field. The name must be equal, including case."""
        return typed(*self._columns[name]) if name in self._columns else MissingValue()
