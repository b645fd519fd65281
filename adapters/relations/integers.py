"""Relations for integers and booleans, also in structs, that come back rounded or as another type."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

LARGEST_INT64 = 2**63 - 1


def integers_as_int64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return integers without nulls as int64, as a text reader infers them; None for values that need uint64."""
    import pyarrow as pa

    if not pa.types.is_integer(column.type) or column.null_count or column.type == pa.int64():
        return None
    return None if _beyond_int64(column) else column.cast(pa.int64())


def any_integers_as_int64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return integers that fit into int64 as int64, for a reader whose int64 columns can have nulls."""
    import pyarrow as pa

    if not pa.types.is_integer(column.type) or column.type == pa.int64() or _beyond_int64(column):
        return None
    return column.cast(pa.int64())


def large_integers_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return columns with values beyond int64 rounded to float64."""
    import pyarrow as pa

    return column.cast(pa.float64(), safe=False) if _beyond_int64(column) else None


def large_integers_as_decimals(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return columns with values beyond int64 as decimals of 38 digits."""
    import pyarrow as pa

    return column.cast(pa.decimal128(38, 0)) if _beyond_int64(column) else None


def integers_of_both_signs_as_decimals(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return columns with negative and other integers, or with values beyond int64, as decimals of 38 digits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_integer(column.type) or column.null_count == len(column):
        return None
    range_of = pc.min_max(column).as_py()
    both = range_of["min"] < 0 <= range_of["max"]
    return column.cast(pa.decimal128(38, 0)) if both or _beyond_int64(column) else None


def integers_as_int32_or_int64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return integers as int32 or int64, Avro's two integer types: the smaller one that holds the range of their
    type."""
    import pyarrow as pa

    if not pa.types.is_integer(column.type) or column.type in (pa.int32(), pa.int64()):
        return None
    small = (pa.int8(), pa.int16(), pa.uint8(), pa.uint16())
    return column.cast(pa.int32() if column.type in small else pa.int64())


def integers_with_nulls_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return integers with nulls rounded to float64, as in numpy."""
    import pyarrow as pa

    if not pa.types.is_integer(column.type) or not column.null_count:
        return None
    return column.cast(pa.float64(), safe=False)


def small_integers_with_nulls_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return the same as `integers_with_nulls_as_float64`, but None for columns with values beyond int64, which the
    reader turns into text if there are nulls."""
    return None if _beyond_int64(column) else integers_with_nulls_as_float64(column)


def large_integers_with_nulls(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return columns with nulls and with values beyond int64, unchanged. Use it with `parse_text`."""
    return column if column.null_count and _beyond_int64(column) else None


def _beyond_int64(column: pa.ChunkedArray) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    return column.type == pa.uint64() and (pc.max(column).as_py() or 0) > LARGEST_INT64


def integers_rounded_to_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return int64 columns without nulls, rounded to the nearest float64 as in a spreadsheet.

    Columns with values beyond +-(2^63 - 1024) are not affected."""
    return None if column.null_count else any_integers_rounded_to_float64(column)


def any_integers_rounded_to_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return the same as `integers_rounded_to_float64`, but also for columns with nulls."""
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
    """Return boolean columns with nulls, unchanged. Use it with `nulls='numpy'`."""
    import pyarrow as pa

    return column if pa.types.is_boolean(column.type) and column.null_count else None


def booleans_with_nulls_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return booleans with nulls as 1.0, 0.0 and null."""
    import pyarrow as pa

    if booleans_with_nulls(column) is None:
        return None
    return column.cast(pa.uint8()).cast(pa.float64())


def integers_in_missing_structs_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return struct columns with nulls, with their integer fields as float64, which pandas uses for missing values."""
    import pyarrow as pa

    if not pa.types.is_struct(column.type) or not column.null_count:
        return None
    fields = [field.with_type(pa.float64()) if pa.types.is_integer(field.type) else field for field in column.type]
    return None if pa.struct(fields) == column.type else column.cast(pa.struct(fields))
