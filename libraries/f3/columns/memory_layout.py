"""Memory layout of flat (not nested) Arrow types, as the C kernels need it: the kind of layout, and the width of a
value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from libraries.f3.errors import F3Error

FIXED, BITS, TEXT = 0, 1, 2
"""Kinds of layout: values of a fixed width; booleans as a bitmap; strings and binaries."""


@dataclass(frozen=True)
class Shape:
    """Kind of layout, bytes per value, and whether strings must be UTF-8.

    For strings and binaries, `width_bytes` is the width of an offset; for booleans it is 0.
    """

    kind: int
    width_bytes: int
    utf8: bool = False


@lru_cache(maxsize=256)
def shape_of(arrow_type: pa.DataType) -> Shape:
    """Return the shape of a flat type that F3 can store (specification 3.2). Raises F3Error for other types."""
    types = pa.types
    if types.is_boolean(arrow_type):
        return Shape(BITS, 0)
    if types.is_string(arrow_type) or types.is_binary(arrow_type):
        return Shape(TEXT, 4, types.is_string(arrow_type))
    if types.is_large_string(arrow_type) or types.is_large_binary(arrow_type):
        return Shape(TEXT, 8, types.is_large_string(arrow_type))
    plain = types.is_integer(arrow_type) or types.is_floating(arrow_type) or types.is_temporal(arrow_type)
    if plain or types.is_decimal128(arrow_type) or types.is_decimal256(arrow_type):
        return Shape(FIXED, arrow_type.bit_width // 8)
    raise F3Error(
        f"values of type {arrow_type} cannot be stored as one EncUnit, which can hold booleans, numbers, decimals "
        "(128 or 256 bits), dates, times, strings or binaries"
    )
