"""Map Parquet columns to kinds of codes (64-bit numbers that keep the order of values), and decode bounds in Parquet's
plain encoding."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Literal as OneOf
from typing import cast

from libraries.filters.codes import SIGN, UNORDERED, CodeKind, KindName, Value
from libraries.near_storage.parquet.schema import Column

_NANOSECONDS_A_DAY = 86_400_000_000_000
_JULIAN_DAY_OF_1970 = 2_440_588


def kind_of(column: Column) -> CodeKind:
    """Return the kind of a leaf column's codes; UNORDERED if Parquet defines no order for the column or if the order is
    not supported."""
    logical = column.logical
    if logical is None:
        return _PHYSICAL.get(column.physical) or CodeKind("fixed", bytes=column.length)
    match logical.name, column.physical:
        case ("string" | "enum" | "json", "BYTE_ARRAY"):
            return CodeKind("text")
        case ("bson", "BYTE_ARRAY"):
            return CodeKind("binary")
        case ("uuid", "FIXED_LEN_BYTE_ARRAY") if column.length == 16:
            return CodeKind("fixed", bytes=16)
        case ("float16", "FIXED_LEN_BYTE_ARRAY") if column.length == 2:
            return CodeKind("float16")
        case ("decimal", "INT32" | "INT64" | "BYTE_ARRAY" | "FIXED_LEN_BYTE_ARRAY"):
            return CodeKind("decimal", scale=logical.scale)
        case ("date", "INT32"):
            return CodeKind("date")
        case ("time", "INT32" | "INT64") | ("timestamp", "INT64"):
            return CodeKind(cast(KindName, logical.name), unit=logical.unit) if logical.unit else UNORDERED
        case ("integer", "INT32" | "INT64") if logical.bits in (8, 16, 32, 64):
            return CodeKind("signed" if logical.signed else "unsigned", bits=logical.bits)
    return UNORDERED


_PHYSICAL: Mapping[str, CodeKind] = {
    "BOOLEAN": CodeKind("boolean"),
    "INT32": CodeKind("signed", bits=32),
    "INT64": CodeKind("signed", bits=64),
    "INT96": CodeKind("int96"),
    "FLOAT": CodeKind("float32"),
    "DOUBLE": CodeKind("float64"),
    "BYTE_ARRAY": CodeKind("binary"),
}
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}


def bound_value(column: Column, kind: CodeKind, data: bytes) -> Value | None:
    """Decode a bound in Parquet's plain encoding. Return None for NaN, and for bytes that are not a value of the
    column's type or cannot be ordered."""
    width = column.length or _WIDTHS.get(column.physical)
    if width is not None and len(data) != width:
        return None
    match kind.name:
        case "text" | "binary" | "fixed":
            return data
        case "float16" | "float32" | "float64":
            (number,) = struct.unpack(_FLOATS[kind.name], data)
            return None if math.isnan(number) else cast(float, number)
        case "decimal":
            order: OneOf["big", "little"] = "big" if "BYTE_ARRAY" in column.physical else "little"
            return int.from_bytes(data, order, signed=True) if data else None
        case "boolean":
            return data[0] if data[0] < 2 else None
        case "int96":
            return _nanoseconds(data)
        case "unordered":
            return None
        case "unsigned":
            number = int.from_bytes(data, "little")
            return number if number >> kind.bits == 0 else None
    number = int.from_bytes(data, "little", signed=True)
    # Arrow truncates a number to the bits of its type, which loses the order.
    fits = kind.name != "signed" or -(1 << kind.bits - 1) <= number < 1 << kind.bits - 1
    return number if fits else None


_FLOATS = {"float16": "<e", "float32": "<f", "float64": "<d"}


def _nanoseconds(data: bytes) -> int | None:
    """Return an INT96 timestamp as nanoseconds since 1970. Return None if the time of day is invalid, or if the result
    would overflow Arrow's 64 bits."""
    of_day, julian_day = struct.unpack("<qi", data)
    if not 0 <= of_day < _NANOSECONDS_A_DAY:
        return None
    since = (julian_day - _JULIAN_DAY_OF_1970) * _NANOSECONDS_A_DAY + of_day
    return since if -SIGN <= since < SIGN else None
