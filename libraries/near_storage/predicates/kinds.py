"""Which kinds of Arrow types a filter can compare, and what their values look like in Python.

It knows types alone: no columns, no rows, no wire.
"""

from __future__ import annotations

from enum import Enum

import pyarrow as pa
import pyarrow.types as pat


class TypeFamily(Enum):
    """Families of types whose values are ordered among each other."""

    BOOL = "bool"
    INTEGER = "integer"
    FLOAT = "float"
    DECIMAL = "decimal"
    TEXT = "text"
    BINARY = "binary"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    DURATION = "duration"
    NULL = "null"


UNITS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Arrow's units of time."""

SECONDS_PER_DAY = 86_400

_CHECKS = (
    (TypeFamily.BOOL, (pat.is_boolean,)),
    (TypeFamily.INTEGER, (pat.is_integer,)),
    (TypeFamily.FLOAT, (pat.is_floating,)),
    (TypeFamily.DECIMAL, (pat.is_decimal,)),
    (TypeFamily.TEXT, (pat.is_string, pat.is_large_string, pat.is_string_view)),
    (
        TypeFamily.BINARY,
        (pat.is_binary, pat.is_large_binary, pat.is_binary_view, pat.is_fixed_size_binary),
    ),
    (TypeFamily.DATE, (pat.is_date,)),
    (TypeFamily.TIME, (pat.is_time,)),
    (TypeFamily.TIMESTAMP, (pat.is_timestamp,)),
    (TypeFamily.DURATION, (pat.is_duration,)),
    (TypeFamily.NULL, (pat.is_null,)),
)

COUNTED = frozenset({TypeFamily.DATE, TypeFamily.TIME, TypeFamily.TIMESTAMP, TypeFamily.DURATION})
"""Kinds whose values are counts of a unit: `Literal.value` holds the count, evaluation compares counts."""


def kind_of(type: pa.DataType) -> TypeFamily | None:
    """The kind of a type, of its values if it is a dictionary; None for types without an order, such as lists."""
    type = value_type(type)
    return next((kind for kind, checks in _CHECKS if any(check(type) for check in checks)), None)


def value_type(type: pa.DataType) -> pa.DataType:
    """What the values of a column are: for dictionaries the type of their values."""
    return type.value_type if pat.is_dictionary(type) else type


def units_per_second(type: pa.DataType) -> tuple[int, int]:
    """`(units, seconds)`: so many units of a counted type are so many seconds, (1, 86400) for date32."""
    if pat.is_date32(type):
        return 1, SECONDS_PER_DAY
    if pat.is_date64(type):
        return 1_000, 1
    return UNITS_PER_SECOND[type.unit], 1


def integer_range(type: pa.DataType) -> tuple[int, int]:
    """Smallest and largest integer that the type stores; of counted types the smallest and largest count."""
    width = type.bit_width
    if pat.is_unsigned_integer(type):
        return 0, 2**width - 1
    return -(2 ** (width - 1)), 2 ** (width - 1) - 1


def zone_of(type: pa.DataType) -> str | None:
    """The time zone of a timestamp; None for those without and for all other types."""
    return type.tz if pat.is_timestamp(type) else None
