"""Functions that convert integer and boolean columns, and integers in structs, to what a read returns if a format
rounds them or stores them as another type.

Every function returns None for columns that come back exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

LARGEST_INT64 = 2**63 - 1


def integers_as_int64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return an integer column without nulls as int64, the type that text readers infer.

    Returns None for columns with nulls, and for values too large for int64."""
    import pyarrow as pa

    if not pa.types.is_integer(column.type) or column.null_count or column.type == pa.int64():
        return None
    return None if _beyond_int64(column) else column.cast(pa.int64())


def any_integers_as_int64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return an integer column, with or without nulls, as int64; None for values too large for int64.

    Use this function for readers whose int64 columns can have nulls."""
    import pyarrow as pa

    if not pa.types.is_integer(column.type) or column.type == pa.int64() or _beyond_int64(column):
        return None
    return column.cast(pa.int64())


def large_integers_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return an integer column with values too large for int64 as float64, rounded; None for other columns."""
    import pyarrow as pa

    return column.cast(pa.float64(), safe=False) if _beyond_int64(column) else None


def large_integers_as_decimals(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return an integer column with values too large for int64 as decimals of 38 digits; None for other columns."""
    import pyarrow as pa

    return column.cast(pa.decimal128(38, 0)) if _beyond_int64(column) else None


def integers_of_both_signs_as_decimals(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return an integer column as decimals of 38 digits; None for columns of one sign that fit into int64.

    The column becomes decimals if it has negative values and also zero or positive values, or if it has values too
    large for int64. DuckDB's JSON reader returns decimals in these cases."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_integer(column.type) or column.null_count == len(column):
        return None
    range_of = pc.min_max(column).as_py()
    both = range_of["min"] < 0 <= range_of["max"]
    return column.cast(pa.decimal128(38, 0)) if both or _beyond_int64(column) else None


def integers_as_int32_or_int64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return an integer column as int32 or int64, the only integer types of Avro.

    The type is int32 if all values of the column's type fit into int32, else int64."""
    import pyarrow as pa

    if not pa.types.is_integer(column.type) or column.type in (pa.int32(), pa.int64()):
        return None
    small = (pa.int8(), pa.int16(), pa.uint8(), pa.uint16())
    return column.cast(pa.int32() if column.type in small else pa.int64())


def integers_with_nulls_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return an integer column with nulls as float64, because numpy's integers cannot be null; None for other columns.
    Integers that float64 cannot represent are rounded."""
    import pyarrow as pa

    if not pa.types.is_integer(column.type) or not column.null_count:
        return None
    return column.cast(pa.float64(), safe=False)


def small_integers_with_nulls_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return the same as `integers_with_nulls_as_float64`, but None for columns with values too large for int64.

    Use this function for readers that return a column with nulls as text if some values are too large for int64."""
    return None if _beyond_int64(column) else integers_with_nulls_as_float64(column)


def large_integers_with_nulls(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return an integer column unchanged if it has nulls and also values too large for int64; otherwise None.

    Use this function with `parse_text`, for readers that return such columns as text."""
    return column if column.null_count and _beyond_int64(column) else None


def _beyond_int64(column: pa.ChunkedArray) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    return column.type == pa.uint64() and (pc.max(column).as_py() or 0) > LARGEST_INT64


def integers_rounded_to_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return an int64 column without nulls with each value rounded to the nearest float64, as spreadsheets store it.

    Returns None if no value changes, for columns with nulls, and for values beyond +-(2^63 - 1024)."""
    return None if column.null_count else any_integers_rounded_to_float64(column)


def any_integers_rounded_to_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return the same as `integers_rounded_to_float64`, but also for columns with nulls. Nulls stay null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.type != pa.int64():
        return None
    rounded = column.cast(pa.float64(), safe=False)
    if (pc.max(pc.abs(rounded)).as_py() or 0) >= 2.0**63:
        return None
    whole = rounded.cast(pa.int64())
    return None if whole.equals(column) else whole


def booleans_with_nulls(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a boolean column with nulls unchanged; None for other columns.

    Use this function with `Relation(nulls='numpy')`, for readers that return such columns as Python objects."""
    import pyarrow as pa

    return column if pa.types.is_boolean(column.type) and column.null_count else None


def booleans_with_nulls_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a boolean column with nulls as float64: 1.0, 0.0 and null. Returns None for other columns."""
    import pyarrow as pa

    if booleans_with_nulls(column) is None:
        return None
    return column.cast(pa.uint8()).cast(pa.float64())


def integers_in_missing_structs_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a struct column with nulls, in which the integer fields are float64; None for other columns.

    pandas uses float64 for integers if some of them are missing."""
    import pyarrow as pa

    if not pa.types.is_struct(column.type) or not column.null_count:
        return None
    fields = [field.with_type(pa.float64()) if pa.types.is_integer(field.type) else field for field in column.type]
    return None if pa.struct(fields) == column.type else column.cast(pa.struct(fields))
