"""Encode types and literals as JSON. Types are names of Arrow types, values are exact text.

    {"type": "timestamp[us, UTC]", "value": "1600000000000000"}

Integers, dates, times and decimals are decimal text. Floats are Python's repr: the shortest text that reads back the
same, 'nan', 'inf' or '-inf'. Bytes are base64. Text, booleans and null are JSON values.
"""

from __future__ import annotations

import base64
import binascii
import re
from decimal import Decimal

import pyarrow as pa
import pyarrow.types as pat

from libraries.filters.kinds import COUNTED, TypeFamily, kind_of, zone_of
from libraries.filters.limits import MOST_LITERAL_BYTES
from libraries.filters.tree import Literal
from libraries.filters.values import checked
from libraries.near_storage.errors import RequestError

_PLAIN = {
    "null": pa.null(),
    "bool": pa.bool_(),
    **{f"{sign}int{bits}": getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float16": pa.float16(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "string_view": pa.string_view(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "binary_view": pa.binary_view(),
    "date32": pa.date32(),
    "date64": pa.date64(),
    "time32[s]": pa.time32("s"),
    "time32[ms]": pa.time32("ms"),
    "time64[us]": pa.time64("us"),
    "time64[ns]": pa.time64("ns"),
    **{f"timestamp[{unit}]": pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")},
    **{f"duration[{unit}]": pa.duration(unit) for unit in ("s", "ms", "us", "ns")},
}
_NAMES = {type: name for name, type in _PLAIN.items()}
_ZONED = re.compile(r"timestamp\[(s|ms|us|ns), ([A-Za-z0-9_+:/-]{1,64})\]", re.ASCII)
_DECIMAL = re.compile(r"decimal(32|64|128|256)\((\d{1,2}), (-?\d{1,2})\)", re.ASCII)
_FIXED = re.compile(r"fixed_size_binary\[(\d{1,5})\]", re.ASCII)
_DECIMALS = {"32": pa.decimal32, "64": pa.decimal64, "128": pa.decimal128, "256": pa.decimal256}

_INTEGER = re.compile(r"-?\d{1,20}", re.ASCII)
_DECIMAL_VALUE = re.compile(r"(-?)(\d{1,200})(?:\.(\d{1,200}))?", re.ASCII)
_FLOAT = re.compile(r"nan|-?inf|-?\d{1,20}(\.\d{1,20})?(e[+-]?\d{1,3})?", re.ASCII)


def type_name(type: pa.DataType) -> str:
    """Return the name of a type in messages. Raises RequestError for a type that no literal can have."""
    if type in _NAMES:
        return _NAMES[type]
    if zone_of(type) is not None:
        name = f"timestamp[{type.unit}, {type.tz}]"
        if _ZONED.fullmatch(name):
            return name
    if pat.is_decimal(type):
        return f"decimal{type.bit_width}({type.precision}, {type.scale})"
    if pat.is_fixed_size_binary(type):
        return f"fixed_size_binary[{type.byte_width}]"
    raise RequestError(f"literals of type {str(type)[:60]} cannot be sent: filter on the client")


def type_of(name: object) -> pa.DataType:
    """Return the type with this name in messages. Raises RequestError for an unknown name."""
    if isinstance(name, str) and name in _PLAIN:
        return _PLAIN[name]
    text = name if isinstance(name, str) else ""
    if found := _ZONED.fullmatch(text):
        return pa.timestamp(found[1], found[2])
    if (found := _FIXED.fullmatch(text)) and int(found[1]) <= MOST_LITERAL_BYTES:
        return pa.binary(int(found[1]))
    if found := _DECIMAL.fullmatch(text):
        try:
            return _DECIMALS[found[1]](int(found[2]), int(found[3]))
        except (ValueError, pa.ArrowInvalid):
            pass
    raise RequestError(f"{repr(name)[:60]} is not a type that a literal can have")


def literal_to_json(literal: Literal) -> dict[str, object]:
    """Return `{"type": ..., "value": ...}`. Raises RequestError for a value that does not fit its type."""
    return {"type": type_name(literal.type), "value": _value_to_json(checked(literal))}


def literal_from_json(message: dict[str, object]) -> Literal:
    """Return the literal of a message with the keys type and value. Raises RequestError if they are invalid."""
    type = type_of(message["type"])
    value = message["value"]
    return Literal(None, type) if value is None else checked(Literal(_value_from_json(value, type), type))


def _value_to_json(literal: Literal) -> object:
    match literal.value:
        case None | bool() | str():
            return literal.value
        case bytes():
            return base64.b64encode(literal.value).decode("ascii")
        case Decimal():
            return format(literal.value, "f")
        case value:
            return repr(value)


def _value_from_json(value: object, type: pa.DataType) -> object:
    kind = kind_of(type)
    if kind is TypeFamily.BOOL and isinstance(value, bool):
        return value
    if isinstance(value, str):
        if kind is TypeFamily.TEXT:
            return value
        if kind is TypeFamily.INTEGER or kind in COUNTED:
            return int(_matched(_INTEGER, value, type))
        if kind is TypeFamily.FLOAT:
            return float(_matched(_FLOAT, value, type))
        if kind is TypeFamily.DECIMAL:
            return Decimal(_matched(_DECIMAL_VALUE, value, type))
        if kind is TypeFamily.BINARY:
            return _from_base64(value)
    raise RequestError(f"{repr(value)[:60]} does not encode a value of type {type}")


def _matched(pattern: re.Pattern[str], value: str, type: pa.DataType) -> str:
    if not pattern.fullmatch(value):
        raise RequestError(f"{value[:60]!r} does not encode a value of type {type}")
    return value


def _from_base64(value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise RequestError(f"a binary literal must be valid base64 (got {value[:60]!r})") from None
