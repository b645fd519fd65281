"""ClickHouse's SQL expressions for values in a document that is stored with ClickHouse's type JSON.

ClickHouse stores the values at each path, such as `a.b`, in a separate column of type Dynamic, whose parts hold the
values of one type. ClickHouse stores neither nulls nor empty objects. An object is not stored as a value: it exists if
stored paths lead through it.
"""

from __future__ import annotations

from typing import ClassVar

from adapters.document_store import FieldPath
from document_stores.shared.dropped_paths import DroppedPaths
from document_stores.sql.values import NOTHING, Value

_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "`": "\\`", "\0": "\\0"})

_KINDS_OF_PARTS = {
    "Int64": "integer",
    "UInt64": "integer",
    "Float64": "double",
    "String": "text",
    "Bool": "boolean",
}
_KINDS_OF_JSON = {**_KINDS_OF_PARTS, "Null": "null", "Double": "double", "Array": "array", "Object": "object"}
_PARTS = {"BIGINT": "Int64", "DOUBLE": "Float64", "VARCHAR": "String"}


def literal(value: bool | int | float | str) -> str:
    """Return a constant in ClickHouse's SQL. Unlike standard SQL, its texts have escapes."""
    if isinstance(value, str):
        return f"'{value.translate(_ESCAPES)}'"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def quoted(path: FieldPath) -> str:
    """Return a path in SQL. Dots in names are escaped as in stored paths. Raises ValueError for a name that SQL cannot
    express."""
    for name in path:
        if not name or "\0" in name:
            raise ValueError(f"ClickHouse's SQL cannot express a field named {name!r}")
    return ".".join(f"`{name.replace('.', '%2E').translate(_ESCAPES)}`" for name in path)


def _cases(kinds: dict[str, str]) -> str:
    return " ".join(f"WHEN '{theirs}' THEN '{ours}'" for theirs, ours in kinds.items())


class ClickhouseValue(Value):
    """A value at a path within a column of type JSON."""

    def __init__(self, column: str, path: FieldPath = (), dropped: DroppedPaths | None = None) -> None:
        """If `path` is empty, the value is the whole document. `dropped` has the paths of the nulls and empty objects
        that were not stored."""
        self._column, self._path, self._dropped = column, path, dropped or DroppedPaths()
        self.tells_null = not self._dropped.hides_null(path)  # type: ignore[misc]
        self.drops_empty = self._dropped.hides_empty(path)

    def step(self, name: str) -> ClickhouseValue:
        """Return the field of this name."""
        return ClickhouseValue(self._column, (*self._path, name), self._dropped)

    def _at(self) -> str:
        return f"{self._column}.{quoted(self._path)}"

    def _object(self) -> str:
        """Return SQL for the JSON text of the value if it is an object, else NULL."""
        if not self._path:
            return f"toJSONString({self._column})"
        return f"nullIf(toJSONString({self._column}.^{quoted(self._path)}), '{{}}')"

    def _part(self, type_: str, kind: str) -> str:
        return f"{self._at()}.:{type_}" if self._path else NOTHING[kind]

    def kind(self) -> str:
        """Return SQL for the kind of the value, by dynamicType."""
        if not self._path:
            return "'object'"
        of_object = f"CASE WHEN {self._object()} IS NOT NULL THEN 'object' END"
        return (
            f"(CASE dynamicType({self._at()}) {_cases(_KINDS_OF_PARTS)} WHEN 'None' THEN {of_object} ELSE 'array' END)"
        )

    def integer(self) -> str:
        """Return SQL for the part of the column that holds integers. It is NULL for other values."""
        return self._part("Int64", "integer")

    def double(self) -> str:
        """Return SQL for the part of the column that holds doubles. It is NULL for other values."""
        return self._part("Float64", "double")

    def text(self) -> str:
        """Return SQL for the part of the column that holds texts. It is NULL for other values."""
        return self._part("String", "text")

    def boolean(self) -> str:
        """Return SQL for the part of the column that holds booleans. It is NULL for other values."""
        return self._part("Bool", "boolean")

    def canonical(self) -> str:
        """Return SQL for the value's JSON text. ClickHouse writes whole doubles without a decimal point. This method
        adds the decimal point, but not to doubles in an array or object."""
        if not self._path:
            return self._object()
        double = f"toJSONString({self.double()})"
        point = f"if(match({double}, '[.e]'), '', '.0')"
        return (
            f"(CASE dynamicType({self._at()}) WHEN 'None' THEN {self._object()}"
            f" WHEN 'Float64' THEN concat({double}, {point}) ELSE toJSONString({self._at()}) END)"
        )

    def is_text(self, canonical: str, plain: str) -> str:
        """Return SQL that compares the constant with the part of the column that holds texts."""
        return f"({self.text()} = {plain})"

    def unguarded(self, type_: str) -> str:
        """Return SQL for the part of the column that holds values of this type."""
        return f"{self._at()}.:{_PARTS[type_]}"


class JsonText(Value):
    """A JSON text in an SQL expression. NULL means missing."""

    tells_null: ClassVar[bool] = False

    def __init__(self, text: str) -> None:
        """`text` is SQL for the JSON text."""
        self._text = text

    def step(self, name: str) -> Value:
        """Raise NotImplementedError. Only results of a query are JSON texts, and plans never read a field of a
        result."""
        raise NotImplementedError("plans read no fields of results")

    def _type(self) -> str:
        return f"JSONType(ifNull({self._text}, 'null'))"

    def _extracted(self, of_json: str, type_: str) -> str:
        text = f"ifNull({self._text}, 'null')"
        return f"(CASE WHEN {self._type()} = '{of_json}' THEN JSONExtract({text}, 'Nullable({type_})') END)"

    def kind(self) -> str:
        """Return SQL for the kind of the value, by JSONType."""
        return f"(CASE WHEN {self._text} IS NOT NULL THEN CASE {self._type()} {_cases(_KINDS_OF_JSON)} END END)"

    def integer(self) -> str:
        """Return SQL for the value if it is a 64-bit integer, else NULL."""
        return self._extracted("Int64", "Int64")

    def double(self) -> str:
        """Return SQL for the value if it is a double, else NULL."""
        return self._extracted("Double", "Float64")

    def text(self) -> str:
        """Return SQL for the value if it is a text, else NULL."""
        return self._extracted("String", "String")

    def boolean(self) -> str:
        """Return SQL for the value if it is a boolean, else NULL."""
        return self._extracted("Bool", "Bool")

    def canonical(self) -> str:
        """Return the text."""
        return self._text

    def is_text(self, canonical: str, plain: str) -> str:
        """Return SQL that compares the decoded text."""
        return f"({self.text()} = {plain})"

    def unguarded(self, type_: str) -> str:
        """Return SQL that decodes the value as this type."""
        return f"JSONExtract({self._text}, 'Nullable({_PARTS[type_]})')"
