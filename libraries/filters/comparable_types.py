"""Convert Arrow arrays to types that all Arrow kernels support, and back, for filters and aggregates.

Order, equality and nulls are preserved.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from libraries.filters.kinds import COUNTED, kind_of


def comparable(array: pa.Array) -> pa.Array:
    """Convert an array to a type that all Arrow kernels support. Dictionary arrays are unchanged.

    Dates and times become integers, float16 becomes float32, string and binary views become large strings and binaries,
    fixed-size binary becomes plain binary. Decimals get at least 128 bits and a non-negative scale, because their
    digits are compared.
    """
    type = array.type
    if kind_of(type) in COUNTED and not pat.is_dictionary(type):
        return array.view(pa.int32() if type.bit_width == 32 else pa.int64())
    target = comparable_type(type)
    if target == type:
        return array
    if pat.is_decimal(type) and type.scale < 0:
        return _widened(array).view(target)
    return array.cast(target)


def comparable_type(type: pa.DataType) -> pa.DataType:
    """Return the type of the arrays that `comparable` returns for arrays of this type. A dictionary type is
    unchanged."""
    if pat.is_float16(type):
        return pa.float32()
    if pat.is_string_view(type):
        return pa.large_string()
    if pat.is_binary_view(type):
        return pa.large_binary()
    if pat.is_fixed_size_binary(type):
        return pa.binary()
    if pat.is_decimal(type):
        make = pa.decimal256 if pat.is_decimal256(type) else pa.decimal128
        return make(type.precision, max(type.scale, 0))
    if kind_of(type) in COUNTED and not pat.is_dictionary(type):
        return pa.int32() if type.bit_width == 32 else pa.int64()
    return type


def restored(array: pa.Array, type: pa.DataType) -> pa.Array:
    """Convert an array back from the type that `comparable` uses to the original type `type`."""
    if kind_of(type) in COUNTED:
        return array.view(type)
    if pat.is_decimal(type) and type.scale < 0:
        wide = pa.decimal256 if pat.is_decimal256(type) else pa.decimal128
        return array.view(wide(type.precision, type.scale)).cast(type)
    return array.cast(type)


def is_null(column: pa.Array) -> pa.BooleanArray:
    """Return where values are null (bool). A dictionary array is also null where its index refers to a null entry."""
    if pat.is_dictionary(column.type):
        return pc.fill_null(is_null(column.dictionary).take(column.indices), True)
    return pc.is_null(column)


def _widened(array: pa.Array) -> pa.Array:
    type = array.type
    return array if type.bit_width >= 128 else array.cast(pa.decimal128(type.precision, type.scale))
