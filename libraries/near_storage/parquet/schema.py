"""Turn the schema of a Parquet footer, a flattened tree of SchemaElements, into leaf columns.

Ids and names come from parquet.thrift (apache/parquet-format 24102ed, August 2026).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec

from libraries.near_storage.errors import FooterError
from libraries.near_storage.parquet.thrift import BINARY, BOOLEAN, BYTE, I32, ListOf, Struct, Wanted

MOST_ELEMENTS = 100_000
"""Maximum number of elements in a schema. It limits memory, because an element of three bytes becomes an object of some
hundred bytes."""
MOST_SCHEMA_DEPTH = 64

PHYSICAL_TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
"""parquet.thrift's Type, by number."""

Order: TypeAlias = Literal["type", "ieee 754 total", "int96 timestamp", "undefined"]
"""ColumnOrder. `undefined` means that the footer has no order, or an order that is unknown or invalid for the type."""

_UNIT = Struct("TimeUnit", {1: Struct("MilliSeconds", {}), 2: Struct("MicroSeconds", {}), 3: Struct("NanoSeconds", {})})
_UNITS = {1: "ms", 2: "us", 3: "ns"}
_TEMPORAL: Mapping[int, Wanted] = {1: BOOLEAN, 2: _UNIT}
_TIME_TYPE = Struct("TimeType", _TEMPORAL, frozenset({1, 2}))
_TIMESTAMP_TYPE = Struct("TimestampType", _TEMPORAL, frozenset({1, 2}))
_INT_TYPE = Struct("IntType", {1: BYTE, 2: BOOLEAN}, frozenset({1, 2}))
_DECIMAL_TYPE = Struct("DecimalType", {1: I32, 2: I32}, frozenset({1, 2}))
_PLAIN_LOGICAL = {
    **{1: "string", 2: "map", 3: "list", 4: "enum", 6: "date", 11: "null", 12: "json", 13: "bson", 14: "uuid"},
    **{15: "float16", 16: "variant", 17: "geometry", 18: "geography", 19: "file"},
}
_LOGICAL_FIELDS: Mapping[int, Wanted] = {
    **{number: Struct(name, {}) for number, name in _PLAIN_LOGICAL.items()},
    **{5: _DECIMAL_TYPE, 7: _TIME_TYPE, 8: _TIMESTAMP_TYPE, 10: _INT_TYPE},
}
_LOGICAL_TYPE = Struct("LogicalType", _LOGICAL_FIELDS)
SCHEMA_ELEMENT = Struct(
    "SchemaElement",
    {1: I32, 2: I32, 3: I32, 4: BINARY, 5: I32, 6: I32, 7: I32, 8: I32, 10: _LOGICAL_TYPE},
    required=frozenset({4}),
)
SCHEMA = ListOf(SCHEMA_ELEMENT, MOST_ELEMENTS)
COLUMN_ORDERS = ListOf(
    Struct(
        "ColumnOrder",
        {1: Struct("TypeDefinedOrder", {}), 2: Struct("IEEE754TotalOrder", {}), 3: Struct("Int96TimestampOrder", {})},
    ),
    MOST_ELEMENTS,
)
_ORDERS: Mapping[int, Order] = {1: "type", 2: "ieee 754 total", 3: "int96 timestamp"}


class Logical(msgspec.Struct, frozen=True):
    """The meaning of a leaf's values, from the leaf's LogicalType, or from its ConvertedType if it has no LogicalType.

    `name` is the name of the LogicalType in lower case, 'interval' (which exists only as ConvertedType), or 'unknown'.
    `bits` and `signed` are set for integer, `unit` and `utc` for time and timestamp, `precision` and `scale` for
    decimal.
    """

    name: str
    bits: int = 0
    signed: bool = True
    unit: str = ""
    utc: bool = False
    precision: int = 0
    scale: int = 0


_CONVERTED: Mapping[int, Logical] = {
    0: Logical("string"),
    1: Logical("map"),
    2: Logical("map"),
    3: Logical("list"),
    4: Logical("enum"),
    6: Logical("date"),
    7: Logical("time", unit="ms", utc=True),
    8: Logical("time", unit="us", utc=True),
    9: Logical("timestamp", unit="ms", utc=True),
    10: Logical("timestamp", unit="us", utc=True),
    **{11 + power: Logical("integer", bits=8 << power, signed=False) for power in range(4)},
    **{15 + power: Logical("integer", bits=8 << power, signed=True) for power in range(4)},
    19: Logical("json"),
    20: Logical("bson"),
    21: Logical("interval"),
}
"""parquet.thrift's ConvertedType, by number; 5 is DECIMAL, whose digits are in the SchemaElement."""


class Column(msgspec.Struct, frozen=True):
    """A leaf of the schema.

    `length` is the length of a FIXED_LEN_BYTE_ARRAY in bytes; it is 0 for other types. `nulls` and `repeats` are the
    leaf's maximum definition and repetition level. A column is flat if the path has one name and the column does not
    repeat.
    """

    path: tuple[str, ...]
    physical: str
    length: int
    logical: Logical | None
    order: Order
    nulls: int
    repeats: int

    @property
    def flat(self) -> bool:
        """Whether each row has one value or null."""
        return len(self.path) == 1 and self.repeats == 0


@dataclass
class _Group:
    """A group of the schema whose children have not all been read: number of remaining children, path and levels."""

    to_come: int
    path: tuple[str, ...]
    nulls: int
    repeats: int


def leaves(elements: list[dict[int, Any]], orders: list[dict[int, Any]] | None) -> tuple[Column, ...]:
    """Return the leaf columns of a schema in order, from SchemaElements and ColumnOrders as `read_struct` gives them.

    Raises FooterError if the elements are not a tree, if a leaf has an unknown type, or if the number of orders differs
    from the number of leaves.
    """
    if not elements:
        raise FooterError("Parquet schema: no root element")
    found: list[Column] = []
    open_groups = [_Group(_children(elements[0]), (), 0, 0)]
    for index, element in enumerate(elements[1:], start=1):
        while open_groups and not open_groups[-1].to_come:
            open_groups.pop()
        if not open_groups:
            raise FooterError(f"Parquet schema: element {index} of {len(elements)} belongs to no group")
        holder = open_groups[-1]
        holder.to_come -= 1
        repetition = _known(element.get(3, 0), ("required", "optional", "repeated"), "repetition", index)
        path = (*holder.path, _text(element[4], index))
        nulls = holder.nulls + (repetition != "required")
        repeats = holder.repeats + (repetition == "repeated")
        if 1 in element:
            found.append(_leaf(element, index, path, nulls, repeats))
        else:
            open_groups.append(_Group(_children(element), path, nulls, repeats))
            if len(open_groups) > MOST_SCHEMA_DEPTH:
                raise FooterError(
                    f"Parquet schema: element {index} is nested more than {MOST_SCHEMA_DEPTH} levels deep"
                )
    missing = sum(group.to_come for group in open_groups)
    if missing:
        raise FooterError(f"Parquet schema: the groups declare {missing} more elements than exist")
    if orders is None:
        return tuple(found)
    if len(orders) != len(found):
        raise FooterError(f"Parquet footer: {len(orders)} column orders for {len(found)} columns")
    return tuple(
        _ordered(index, column, order) for index, (column, order) in enumerate(zip(found, orders, strict=True))
    )


def schema_hash(elements: list[dict[int, Any]]) -> str:
    """Return a digest (blake2b, 16 bytes as hex) of names, types and nesting. The digest is equal for all files of a
    table."""
    # Skip the root, whose name the writer chooses freely.
    shape = [_sorted(element) for element in elements[1:]]
    return hashlib.blake2b(msgspec.msgpack.encode(shape), digest_size=16).hexdigest()


def _sorted(value: Any) -> Any:
    """Sort the fields of a struct, because writers may give them in any order."""
    return sorted((key, _sorted(item)) for key, item in value.items()) if isinstance(value, dict) else value


def _leaf(element: dict[int, Any], index: int, path: tuple[str, ...], nulls: int, repeats: int) -> Column:
    physical = _known(element[1], PHYSICAL_TYPES, "type", index)
    if element.get(5):
        raise FooterError(
            f"Parquet schema: element {index} has both a type and {element[5]} children; a leaf has no children"
        )
    length = element.get(2, 0) if physical == "FIXED_LEN_BYTE_ARRAY" else 0
    if length < 0:
        raise FooterError(f"Parquet schema: element {index} has values of a negative length, {length} bytes")
    return Column(path, physical, length, _logical(element, index), "undefined", nulls, repeats)


def _logical(element: dict[int, Any], index: int) -> Logical | None:
    if 10 not in element:
        if element.get(6) == 5:
            return Logical("decimal", precision=element.get(8, 0), scale=element.get(7, 0))
        return _CONVERTED.get(element[6], Logical("unknown")) if 6 in element else None
    union = element[10]
    if len(union) > 1:
        raise FooterError(f"Parquet schema: element {index} has {len(union)} logical types; at most one is allowed")
    for number, fields in union.items():
        if number == 5:
            return Logical("decimal", scale=fields[1], precision=fields[2])
        if number == 10:
            return Logical("integer", bits=fields[1], signed=fields[2])
        if number in (7, 8):
            unit = next((_UNITS[unit] for unit in fields[2]), "")
            return Logical("time" if number == 7 else "timestamp", unit=unit, utc=fields[1])
        return Logical(_PLAIN_LOGICAL[number])
    return Logical("unknown")


def _ordered(index: int, column: Column, union: dict[int, Any]) -> Column:
    if len(union) > 1:
        raise FooterError(f"Parquet footer: column {index} has {len(union)} column orders; at most one is allowed")
    order: Order = next((_ORDERS[number] for number in union), "undefined")
    floating = column.physical in ("FLOAT", "DOUBLE") or (
        column.logical is not None and column.logical.name == "float16"
    )
    if order == "ieee 754 total" and not floating:
        order = "undefined"
    # INT96 columns must have the INT96 order, and no other columns (parquet.thrift, note (+) of ColumnOrder).
    if (order == "int96 timestamp") != (column.physical == "INT96"):
        order = "undefined"
    return msgspec.structs.replace(column, order=order)


def _children(element: dict[int, Any]) -> int:
    count = element.get(5, 0)
    if count < 0:
        raise FooterError(f"Parquet schema: a group declares {count} children")
    return count


def _known(number: int, names: tuple[str, ...], what: str, index: int) -> str:
    if not 0 <= number < len(names):
        raise FooterError(f"Parquet schema: element {index} has the unknown {what} {number}")
    return names[number]


def _text(name: bytes, index: int) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise FooterError(f"Parquet schema: the name of element {index} is not UTF-8") from error
