"""The families of Arrow types that a filter can compare, and how Python represents their values.

This module handles types, not columns or rows.
"""

from __future__ import annotations

from enum import Enum

import pyarrow as pa
import pyarrow.types as pat


class TypeFamily(Enum):
    """Families of types whose values are ordered relative to each other."""

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
"""Arrow's unit of time -> number of units per second."""

SECONDS_PER_DAY = 86_400

_CHECKS = (
    (TypeFamily.BOOL, (pat.is_boolean,)),
    (TypeFamily.INTEGER, (pat.is_integer,)),
    (TypeFamily.FLOAT, (pat.is_floating,)),
    (TypeFamily.DECIMAL, (pat.is_decimal,)),
    (TypeFamily.TEXT, (pat.is_string, pat.is_large_string, pat.is_string_view)),
    (TypeFamily.BINARY, (pat.is_binary, pat.is_large_binary, pat.is_binary_view, pat.is_fixed_size_binary)),
    (TypeFamily.DATE, (pat.is_date,)),
    (TypeFamily.TIME, (pat.is_time,)),
    (TypeFamily.TIMESTAMP, (pat.is_timestamp,)),
    (TypeFamily.DURATION, (pat.is_duration,)),
    (TypeFamily.NULL, (pat.is_null,)),
)

COUNTED = frozenset({TypeFamily.DATE, TypeFamily.TIME, TypeFamily.TIMESTAMP, TypeFamily.DURATION})
"""Families whose values are counts of a unit. `Literal.value` holds the count, and evaluation compares counts."""


def kind_of(type: pa.DataType) -> TypeFamily | None:
    """Return the family of a type, or None for types without an order, such as lists. A dictionary type has the family
    of its values."""
    type = value_type(type)
    return next((kind for kind, checks in _CHECKS if any(check(type) for check in checks)), None)


def value_type(type: pa.DataType) -> pa.DataType:
    """Return the type of a column's values. For a dictionary type, this is the type of the dictionary's values."""
    return type.value_type if pat.is_dictionary(type) else type


def units_per_second(type: pa.DataType) -> tuple[int, int]:
    """Return `(units, seconds)`: `units` counts of a date or time type last `seconds` seconds, e.g. (1, 86400) for
    date32."""
    if pat.is_date32(type):
        return 1, SECONDS_PER_DAY
    if pat.is_date64(type):
        return 1_000, 1
    return UNITS_PER_SECOND[type.unit], 1


def integer_range(type: pa.DataType) -> tuple[int, int]:
    """Return the smallest and largest integer of the type; for dates and times, the smallest and largest count."""
    width = type.bit_width
    if pat.is_unsigned_integer(type):
        return 0, 2**width - 1
    return -(2 ** (width - 1)), 2 ** (width - 1) - 1


def zone_of(type: pa.DataType) -> str | None:
    """Return the time zone of a timestamp type. Return None for a timestamp without a zone and for other types."""
    return type.tz if pat.is_timestamp(type) else None
