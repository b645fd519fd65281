"""What lies in a document, in DuckDB's SQL: in a JSON text, in a VARIANT, and in columns of their own types."""

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
    """By a JSON pointer (RFC 6901) within an expression of type JSON: any name can be written in it."""

    def __init__(self, document: str, pointer: str = "", item: bool = False) -> None:
        """`item`: of an array, whose nulls DuckDB gives as NULL; so a value that is NULL is there, and null."""
        self._document, self._pointer, self._item = document, pointer, item

    def step(self, name: str) -> JsonValue:
        """A number or '-' would name an item where the value is an array, so then it must be an object."""
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
        """By json_type."""
        cases = " ".join(f"WHEN '{theirs}' THEN '{ours}'" for theirs, ours in _KINDS_OF_JSON.items())
        kind = f"CASE {self._type()} {cases} END"
        return f"coalesce({kind}, 'null')" if self._item else f"({kind})"

    def integer(self) -> str:
        """By a cast of what is one."""
        return f"(CASE WHEN {self._type()} IN ('UBIGINT', 'BIGINT') THEN TRY_CAST({self._json()} AS BIGINT) END)"

    def double(self) -> str:
        """By a cast of what is one."""
        return f"(CASE WHEN {self._type()} = 'DOUBLE' THEN TRY_CAST({self._json()} AS DOUBLE) END)"

    def text(self) -> str:
        """Without its quotes."""
        return f"(CASE WHEN {self._type()} = 'VARCHAR' THEN json_extract_string({self._json()}, '$') END)"

    def boolean(self) -> str:
        """By a cast of what is one."""
        return f"(CASE WHEN {self._type()} = 'BOOLEAN' THEN TRY_CAST({self._json()} AS BOOLEAN) END)"

    def canonical(self) -> str:
        """DuckDB writes what it extracts anew, without blanks and needless escapes."""
        return (
            f"coalesce(CAST({self._json()} AS VARCHAR), 'null')" if self._item else f"CAST({self._json()} AS VARCHAR)"
        )

    def is_text(self, canonical: str, plain: str) -> str:
        """One extraction, compared as JSON that DuckDB has written itself: others write some characters otherwise."""
        return f"(CAST({self._json()} AS VARCHAR) = CAST(to_json(CAST({plain} AS VARCHAR)) AS VARCHAR))"

    def unguarded(self, type_: str) -> str:
        """By json_extract_string, or a cast of it."""
        path = Quoted.text(self._pointer or "$")
        text = f"json_extract_string({self._document}, {path})"
        return text if type_ == "VARCHAR" else f"CAST({text} AS {type_})"

    def items(self) -> str:
        """A list of JSON, or NULL for what is no array."""
        return f"(CASE WHEN {self._type()} = 'ARRAY' THEN CAST({self._json()} AS JSON[]) END)"

    def of_item(self, item: str) -> Value:
        """One item of `items`."""
        return JsonValue(item, item=True)


class VariantValue(Value):
    """By variant_extract, a name at a time, within an expression of type VARIANT."""

    def __init__(self, variant: str, exists: str = "true") -> None:
        """`exists` says of a value that is null whether it is there."""
        self._variant, self._exists = variant, exists

    def step(self, name: str) -> VariantValue:
        """A name never names an item of an array here."""
        quoted = Quoted.text(name)
        exists = f"variant_exists({self._variant}, {quoted})"
        if not name:
            # To variant_exists no name is the value itself.
            exists = f"coalesce(list_contains(variant_keys({self._variant}), ''), false)"
        return VariantValue(f"variant_extract({self._variant}, {quoted})", exists)

    def _type(self) -> str:
        return f"variant_type({self._variant})"

    def kind(self) -> str:
        """By variant_type, which is NULL for what is null or missing."""
        return (
            f"(CASE WHEN {self._type()} IS NULL THEN CASE WHEN {self._exists} THEN 'null' END"
            f" WHEN {self._type()} IN ({_one_of(_INTEGERS_OF_VARIANT)}) THEN 'integer'"
            f" WHEN {self._type()} IN ('DOUBLE', 'FLOAT') THEN 'double'"
            f" WHEN {self._type()} = 'VARCHAR' THEN 'text'"
            f" WHEN {self._type()} LIKE 'BOOL%' THEN 'boolean'"
            f" ELSE lower({self._type()}) END)"
        )

    def integer(self) -> str:
        """By a cast of what is one."""
        of_kind = f"{self._type()} IN ({_one_of(_INTEGERS_OF_VARIANT)})"
        return f"(CASE WHEN {of_kind} THEN TRY_CAST({self._variant} AS BIGINT) END)"

    def double(self) -> str:
        """By a cast of what is one."""
        return f"(CASE WHEN {self._type()} IN ('DOUBLE', 'FLOAT') THEN TRY_CAST({self._variant} AS DOUBLE) END)"

    def text(self) -> str:
        """By a cast of what is one."""
        return f"(CASE WHEN {self._type()} = 'VARCHAR' THEN TRY_CAST({self._variant} AS VARCHAR) END)"

    def boolean(self) -> str:
        """By a cast of what is one."""
        return f"(CASE WHEN {self._type()} LIKE 'BOOL%' THEN TRY_CAST({self._variant} AS BOOLEAN) END)"

    def canonical(self) -> str:
        """By to_json, which gives NULL for null."""
        of_null = f"CASE WHEN {self._exists} THEN 'null' END"
        return f"coalesce(CAST(to_json({self._variant}) AS VARCHAR), {of_null})"

    def is_text(self, canonical: str, plain: str) -> str:
        """The cast gives a text for other kinds too, so the kind is asked where that could be the same."""
        return f"(TRY_CAST({self._variant} AS VARCHAR) = {plain} AND {self._type()} = 'VARCHAR')"

    def unguarded(self, type_: str) -> str:
        """By a cast."""
        return f"CAST({self._variant} AS {type_})"

    def items(self) -> str:
        """A list of JSON, or NULL for what is no array: DuckDB 2.0 takes much longer to make a list of VARIANT."""
        return f"(CASE WHEN {self._type()} = 'ARRAY' THEN CAST(to_json({self._variant}) AS JSON[]) END)"

    def of_item(self, item: str) -> Value:
        """One item of `items`."""
        return JsonValue(item, item=True)


class MissingValue(Value):
    """Nothing, whatever is asked."""

    def step(self, name: str) -> MissingValue:
        """Nothing either."""
        return self

    def kind(self) -> str:
        """NULL."""
        return "CAST(NULL AS VARCHAR)"

    def integer(self) -> str:
        """NULL."""
        return "CAST(NULL AS BIGINT)"

    def double(self) -> str:
        """NULL."""
        return "CAST(NULL AS DOUBLE)"

    def text(self) -> str:
        """NULL."""
        return "CAST(NULL AS VARCHAR)"

    def boolean(self) -> str:
        """NULL."""
        return "CAST(NULL AS BOOLEAN)"

    def canonical(self) -> str:
        """NULL."""
        return "CAST(NULL AS VARCHAR)"

    def is_text(self, canonical: str, plain: str) -> str:
        """Never."""
        return "false"

    def unguarded(self, type_: str) -> str:
        """NULL."""
        return f"CAST(NULL AS {type_})"

    def plain(self) -> str | None:
        """NULL."""
        return "CAST(NULL AS VARCHAR)"

    def may_hold(self) -> bool:
        """Never."""
        return False

    def items(self) -> str:
        """NULL."""
        return "CAST(NULL AS VARCHAR[])"

    def of_item(self, item: str) -> Value:
        """Nothing."""
        return self


_INTEGER_TYPES = frozenset({"tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint"})


class TypedValue(MissingValue):
    """A column of its own type, or what lies within. NULL stands for missing and for null, and is taken for missing."""

    tells_null = False

    def __init__(self, expression: str, type_: Any, around: str = "true") -> None:
        """`type_` is DuckDB's own, with `id` and `children`; `around` says whether what it lies in is there."""
        self._expression, self._type_of, self._around = expression, type_, around

    @property
    def _id(self) -> str:
        return str(self._type_of.id)

    def step(self, name: str) -> Any:
        """A field of a struct by its exact name (DuckDB itself takes names that differ by case for one)."""
        for theirs, type_ in self._type_of.children if self._id == "struct" else ():
            if theirs == name:
                inside = f"struct_extract({self._expression}, {Quoted.text(name)})"
                return typed(inside, type_, f"{self._expression} IS NOT NULL")
        return MissingValue()

    def _if_any(self, kind: str) -> str:
        return f"(CASE WHEN {self._expression} IS NOT NULL THEN '{kind}' END)"

    def kind(self) -> str:
        """By the column's type."""
        if self._id in _INTEGER_TYPES:
            return self._if_any("integer")
        known = {"double": "double", "varchar": "text", "boolean": "boolean", "list": "array", "struct": "object"}
        return self._if_any(known[self._id]) if self._id in known else super().kind()

    def integer(self) -> str:
        """The column, if it is of integers."""
        return self._expression if self._id in _INTEGER_TYPES else super().integer()

    def double(self) -> str:
        """The column, if it is of doubles."""
        return self._expression if self._id == "double" else super().double()

    def text(self) -> str:
        """The column, if it is of texts."""
        return self._expression if self._id == "varchar" else super().text()

    def boolean(self) -> str:
        """The column, if it is of booleans."""
        return self._expression if self._id == "boolean" else super().boolean()

    def canonical(self) -> str:
        """By to_json."""
        return f"CAST(to_json({self._expression}) AS VARCHAR)"

    def stored(self) -> str:
        """NULL is null, in what is there."""
        return _null_if(self._around, self.canonical())

    def is_text(self, canonical: str, plain: str) -> str:
        """A comparison, if the column is of texts."""
        return f"({self._expression} = {plain})" if self._id == "varchar" else "false"

    def unguarded(self, type_: str) -> str:
        """The column."""
        return self._expression

    def plain(self) -> str | None:
        """The column, if it is of integers or texts."""
        return self._expression if self._id == "varchar" or self._id in _INTEGER_TYPES else None

    def may_hold(self) -> bool:
        """If it is of lists or structs."""
        return self._id in ("list", "struct")

    def items(self) -> str:
        """The column, if it is of lists."""
        return self._expression if self._id == "list" else super().items()

    def of_item(self, item: str) -> Value:
        """One item of the list."""
        return typed(item, self._type_of.children[0][1]) if self._id == "list" else MissingValue()


@dataclass(frozen=True)
class _Scalar:
    """As DuckDB's own types have it."""

    id: str
    children: tuple[()] = ()


class ColumnValue(TypedValue):
    """A column that was made of a value of one kind; NULL is missing."""

    tells_null = True

    def __init__(self, expression: str, kind: str) -> None:
        """`kind` is 'text' or 'integer'."""
        super().__init__(expression, _Scalar("varchar" if kind == "text" else "bigint"))


class JsonPart(JsonValue):
    """A column of JSON, or such a part of one: values of mixed kinds."""

    tells_null = False

    def __init__(self, expression: str, around: str) -> None:
        """`around` says whether what it lies in is there."""
        super().__init__(expression)
        self._around = around

    def stored(self) -> str:
        """NULL is null, in what is there."""
        return _null_if(self._around, self.canonical())


def _null_if(around: str, canonical: str) -> str:
    return f"(CASE WHEN {around} THEN coalesce({canonical}, 'null') END)"


def typed(expression: str, type_: Any, around: str = "true") -> Value:
    """A value of a column, or of a part of one."""
    return JsonPart(expression, around) if str(type_).upper() == "JSON" else TypedValue(expression, type_, around)


class Row(MissingValue):
    """All columns of a table as one document."""

    tells_null = False

    def __init__(self, columns: dict[str, tuple[str, Any]], text: str, holds_nulls: bool) -> None:
        """Field name -> the column's expression and its type; `text` is the JSON text of all."""
        self._columns, self._text = columns, text
        self.holds_nulls = holds_nulls

    def kind(self) -> str:
        """Of every document."""
        return "'object'"

    def canonical(self) -> str:
        """With a null for whatever is missing."""
        return self._text

    def may_hold(self) -> bool:
        """Always."""
        return True

    def step(self, name: str) -> Any:
        """A column by its exact name."""
        return typed(*self._columns[name]) if name in self._columns else MissingValue()
