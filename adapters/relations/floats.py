"""Functions that convert float and decimal columns to what a read returns if a format rounds them, stores them as
another type, or loses values.

Every function returns None for columns that come back exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.losses import Expect
from adapters.relations.columns import null_where

if TYPE_CHECKING:
    import pyarrow as pa

_JSON_LARGE = 1e16
"""Smallest value that pandas' JSON writer writes with an exponent."""


def any_floats(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a float64 column unchanged; None for columns of other types or of nulls only.

    Use this function with a tolerance, which says how far the values that are read may differ."""
    import pyarrow as pa

    return column if column.type == pa.float64() and column.null_count < len(column) else None


def floats_of_decimals(decimals: int) -> Expect:
    """Return a function that changes float columns as pandas' JSON writer does if it writes `decimals` decimals.

    The function rounds only values from 1e16 on, because the writer keeps only `decimals` significant digits of such
    values. Use it with a tolerance that covers the rounding of smaller values to `decimals` decimals."""

    def expect(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
        import numpy as np
        import pyarrow as pa

        if not _is_float(column) or column.null_count == len(column):
            return None
        values = column.to_numpy(zero_copy_only=False).astype(np.float64)
        for row in np.flatnonzero(np.isfinite(values) & (np.abs(values) >= _JSON_LARGE)):
            values[row] = float(f"{values[row]:.{decimals}g}")
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        return pa.chunked_array([pa.array(values, mask=~valid)])

    return expect


def float32_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a float32 column as float64, because readers of text formats return all floats as float64; None for other
    types."""
    import pyarrow as pa

    return column.cast(pa.float64()) if column.type == pa.float32() else None


def float16_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a float16 column as float64, because readers of text formats return all floats as float64; None for other
    types."""
    import pyarrow as pa

    return column.cast(pa.float64()) if column.type == pa.float16() else None


def float16_as_float32(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a float16 column as float32, the smallest float type of some readers; None for other types."""
    import pyarrow as pa

    return column.cast(pa.float32()) if column.type == pa.float16() else None


def whole_floats_as_int64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a column of whole floats as int64, which readers infer from text without a decimal point.

    Returns None for columns with nulls or fractions."""
    import pyarrow as pa

    if not _is_float(column) or column.null_count or not len(column):
        return None
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        return None


def any_whole_floats_as_int64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a column of whole floats, with or without nulls, as int64; None for columns with fractions.

    Use this function for readers whose int64 columns can have nulls. NaN becomes null."""
    import pyarrow as pa

    without_nan = nan_as_null(column)
    column = column if without_nan is None else without_nan
    return None if whole_floats_as_int64(column.drop_null()) is None else column.cast(pa.int64())


def infinite_floats(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a float column with infinite values unchanged; None for other columns.

    Use this function with `parse_text`, for formats that return such columns as text."""
    return None if infinite_as_null(column) is None else column


def infinite_as_null(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a float column with nulls in place of infinite values; None if no value is infinite."""
    import pyarrow.compute as pc

    return null_where(column, pc.is_inf(column)) if _is_float(column) else None


def nan_as_null(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a float column with nulls in place of NaN, because pandas treats NaN as null; None if no value is NaN."""
    import pyarrow.compute as pc

    return null_where(column, pc.is_nan(column)) if _is_float(column) else None


def without_minus_zero(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a float column with 0.0 in place of -0.0; None if no value is -0.0."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if not _is_float(column):
        return None
    values = column.to_numpy(zero_copy_only=False)
    minus = pa.chunked_array([pa.array((values == 0) & np.signbit(values))])
    return pc.if_else(minus, pa.scalar(0.0, column.type), column) if pc.any(minus).as_py() else None


def _is_float(column: pa.ChunkedArray) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_floating(column.type))


def decimals_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a decimal column as the nearest float64 values; None for other types."""
    import pyarrow as pa

    return column.cast(pa.float64()) if pa.types.is_decimal(column.type) else None


def decimals_of_needed_precision(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a decimal column with the precision that pyarrow infers from Python values: the digits of the largest
    value. Returns None for other types and for columns of nulls only."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_decimal(column.type) or column.null_count == len(column):
        return None
    largest = pc.max(pc.abs(column)).as_py()
    digits = max(len(largest.as_tuple().digits), column.type.scale, 1)
    return column.cast(pa.decimal128(digits, column.type.scale))
