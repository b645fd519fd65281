"""Ready-made relations: how the columns that common calls change still depend on what was stored.

Each is written once for all adapters that declare it. Pure functions of Arrow columns; a function returns None for a
column that it does not touch.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from adapters.losses import Expect

if TYPE_CHECKING:
    import pyarrow as pa

LARGEST_INT64 = 2**63 - 1

_JSON_LARGE = 1e16
"""From here on pandas' JSON writer uses exponents."""


# --- integers and booleans ---------------------------------------------------------------------------------------


def integers_as_int64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Integers without nulls as a text reader guesses them: int64, or uint64 where that is needed."""
    import pyarrow as pa

    if not pa.types.is_integer(column.type) or column.null_count or column.type == pa.int64():
        return None
    return None if _beyond_int64(column) else column.cast(pa.int64())


def any_integers_as_int64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Integers that fit, with nulls as well, in the one type that a reader which keeps nulls guesses."""
    import pyarrow as pa

    if not pa.types.is_integer(column.type) or column.type == pa.int64() or _beyond_int64(column):
        return None
    return column.cast(pa.int64())


def large_integers_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Integers of which some are beyond int64, rounded to float64."""
    import pyarrow as pa

    return column.cast(pa.float64(), safe=False) if _beyond_int64(column) else None


def large_integers_as_decimals(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Integers of which some are beyond int64, as decimals of 38 digits."""
    import pyarrow as pa

    return column.cast(pa.decimal128(38, 0)) if _beyond_int64(column) else None


def integers_of_both_signs_as_decimals(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Integers of which some are below zero and some are not, or some beyond int64, as decimals of 38 digits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_integer(column.type) or column.null_count == len(column):
        return None
    range_of = pc.min_max(column).as_py()
    both = range_of["min"] < 0 <= range_of["max"]
    return column.cast(pa.decimal128(38, 0)) if both or _beyond_int64(column) else None


def integers_as_int32_or_int64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Integers in the smaller of Avro's two that holds all of their type."""
    import pyarrow as pa

    if not pa.types.is_integer(column.type) or column.type in (pa.int32(), pa.int64()):
        return None
    small = (pa.int8(), pa.int16(), pa.uint8(), pa.uint16())
    return column.cast(pa.int32() if column.type in small else pa.int64())


def integers_with_nulls_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Integers with nulls as numpy has them: rounded to float64."""
    import pyarrow as pa

    if not pa.types.is_integer(column.type) or not column.null_count:
        return None
    return column.cast(pa.float64(), safe=False)


def small_integers_with_nulls_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """The same, for a reader that makes text of integers beyond int64 when some are missing."""
    return None if _beyond_int64(column) else integers_with_nulls_as_float64(column)


def large_integers_with_nulls(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Integers with nulls of which some are beyond int64: to be used with `parse_text`."""
    return column if column.null_count and _beyond_int64(column) else None


def _beyond_int64(column: pa.ChunkedArray) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    return column.type == pa.uint64() and (pc.max(column).as_py() or 0) > LARGEST_INT64


def integers_rounded_to_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """int64 without nulls, rounded to float64 as a spreadsheet has all numbers. Within +-(2^63 - 1024)."""
    return None if column.null_count else any_integers_rounded_to_float64(column)


def any_integers_rounded_to_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """The same for a reader that keeps nulls."""
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
    """Booleans with nulls, unchanged: to be used with `nulls='numpy'`."""
    import pyarrow as pa

    return column if pa.types.is_boolean(column.type) and column.null_count else None


def booleans_with_nulls_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Booleans with nulls as 1.0, 0.0 and missing."""
    import pyarrow as pa

    if booleans_with_nulls(column) is None:
        return None
    return column.cast(pa.uint8()).cast(pa.float64())


# --- floats and decimals -----------------------------------------------------------------------------------------


def floats(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """float64, unchanged: to be used with a tolerance."""
    import pyarrow as pa

    return column if column.type == pa.float64() else None


def floats_of_decimals(decimals: int) -> Expect:
    """Floats as pandas' JSON writer has them, to be used with a tolerance of that many decimals: from 1e16 on it
    keeps that many digits instead."""

    def expect(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
        import numpy as np
        import pyarrow as pa

        if not _is_float(column):
            return None
        values = column.to_numpy(zero_copy_only=False).astype(np.float64)
        for row in np.flatnonzero(np.isfinite(values) & (np.abs(values) >= _JSON_LARGE)):
            values[row] = float(f"{values[row]:.{decimals}g}")
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        return pa.chunked_array([pa.array(values, mask=~valid)])

    return expect


def float32_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """float32 in the type that a text reader knows."""
    import pyarrow as pa

    return column.cast(pa.float64()) if column.type == pa.float32() else None


def whole_floats_as_int64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Floats of which none has a fraction or is missing, as a reader guesses them from numbers without a point."""
    import pyarrow as pa

    if not _is_float(column) or column.null_count or not len(column):
        return None
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        return None


def any_whole_floats_as_int64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """The same of a reader that keeps nulls; NaN counts as one."""
    import pyarrow as pa

    without_nan = nan_as_null(column)
    column = column if without_nan is None else without_nan
    return None if whole_floats_as_int64(column.drop_null()) is None else column.cast(pa.int64())


def infinite_floats(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Floats of which some are infinite, unchanged: to be used with `parse_text`."""
    return None if infinite_as_null(column) is None else column


def infinite_as_null(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Floats without their infinities."""
    import pyarrow.compute as pc

    return _null_where(column, pc.is_inf(column)) if _is_float(column) else None


def nan_as_null(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Floats after a visit to pandas, where NaN and null are one."""
    import pyarrow.compute as pc

    return _null_where(column, pc.is_nan(column)) if _is_float(column) else None


def _is_float(column: pa.ChunkedArray) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_floating(column.type))


def _null_where(column: pa.ChunkedArray, where: pa.ChunkedArray) -> pa.ChunkedArray | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pc.any(where).as_py():
        return None
    return pc.if_else(where, pa.scalar(None, column.type), column)


def decimals_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Decimals as the nearest floats."""
    import pyarrow as pa

    return column.cast(pa.float64()) if pa.types.is_decimal(column.type) else None


def decimals_of_needed_precision(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Decimals whose precision was inferred from Python values: as many digits as the largest one needs."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_decimal(column.type) or column.null_count == len(column):
        return None
    largest = pc.max(pc.abs(column)).as_py()
    digits = max(len(largest.as_tuple().digits), column.type.scale, 1)
    return column.cast(pa.decimal128(digits, column.type.scale))


# --- text --------------------------------------------------------------------------------------------------------


def words_as_null(words: Iterable[str]) -> Expect:
    """Text of which some words are read as missing."""
    missing = sorted(words)

    def expect(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not _is_text(column):
            return None
        return _null_where(column, pc.is_in(column, value_set=pa.array(missing, column.type)))

    return expect


def formulas_as_null(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Text without what a spreadsheet takes for a formula."""
    import pyarrow.compute as pc

    return _null_where(column, pc.starts_with(column, "=")) if _is_text(column) else None


def numeric_text_as_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Text of which every value reads as a number: int64, with nulls or fractions float64."""
    import pyarrow as pa

    if not _is_text(column) or column.null_count == len(column):
        return None
    for number in (pa.int64(), pa.float64()):
        try:
            numbers = column.cast(number)
        except pa.ArrowInvalid:
            continue
        return numbers.cast(pa.float64(), safe=False) if numbers.null_count else numbers
    return None


def any_numeric_text_as_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """The same of a reader that keeps nulls: int64, with fractions float64."""
    numbers = numeric_text_as_numbers(column.drop_null())
    return None if numbers is None else column.cast(numbers.type)


def unpadded_numeric_text_as_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """The same of a reader that leaves text alone of which some value begins with a needless zero, as postcodes do."""
    import pyarrow.compute as pc

    if not _is_text(column) or pc.any(pc.match_substring_regex(column, r"^[+-]?0\d")).as_py():
        return None
    return any_numeric_text_as_numbers(column)


def text_cut_at(characters: int) -> Expect:
    """Text of which only the first characters are kept."""

    def expect(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
        import pyarrow.compute as pc

        if not _is_text(column) or not pc.any(pc.greater(pc.utf8_length(column), characters)).as_py():
            return None
        return pc.utf8_slice_codeunits(column, 0, characters)

    return expect


def null_as_empty_text(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Text with its nulls as empty text."""
    import pyarrow.compute as pc

    return pc.fill_null(column, "") if _is_text(column) and column.null_count else None


def dictionary_as_values(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """A dictionary's values, without the dictionary."""
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else None


def dictionary_without_order(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """An ordered dictionary as one that has no order."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type) or not column.type.ordered:
        return None
    without = pa.dictionary(column.type.index_type, column.type.value_type)
    chunks = [pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary) for chunk in column.chunks]
    return pa.chunked_array(chunks, without)


def _is_text(column: pa.ChunkedArray) -> bool:
    import pyarrow as pa

    return column.type in (pa.string(), pa.large_string(), pa.string_view())


# --- points and spans of time --------------------------------------------------------------------------------------


def timestamps_in(units: Iterable[str], to_unit: str, to_zone: str | None = None) -> Expect:
    """Timestamps of these units in another one, exactly; those with a zone in `to_zone`, if it is given."""
    changed = frozenset(units)

    def expect(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
        import pyarrow as pa

        if not pa.types.is_timestamp(column.type):
            return None
        zone = column.type.tz and (to_zone or column.type.tz)
        unit = to_unit if column.type.unit in changed else column.type.unit
        wanted = pa.timestamp(unit, zone)
        return None if wanted == column.type else column.cast(wanted)

    return expect


def timestamps_cut_to_ms(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Timestamps without what is below a millisecond, in us."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_timestamp(column.type):
        return None
    return pc.floor_temporal(column, 1, "millisecond").cast(pa.timestamp("us", column.type.tz))


def timestamps_as_ms(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Timestamps without what is below a millisecond, in ms."""
    import pyarrow as pa

    cut = timestamps_cut_to_ms(column)
    return None if cut is None or column.type.unit == "ms" else cut.cast(pa.timestamp("ms", column.type.tz))


def timestamps_cut_to_us(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Timestamps without what is below a microsecond, in us, and in UTC where they have a zone."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_timestamp(column.type):
        return None
    wanted = pa.timestamp("us", column.type.tz and "UTC")
    if column.type == wanted:
        return None
    return (pc.floor_temporal(column, 1, "microsecond") if column.type.unit == "ns" else column).cast(wanted)


def zoned_timestamps_cut_to_us(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """The same, but for those without a zone that are in ns."""
    import pyarrow as pa

    return None if column.type == pa.timestamp("ns") else timestamps_cut_to_us(column)


def timestamps_in_s_or_ns(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Timestamps as guessed from text that has a fraction only where it is needed: s, or ns where any has one; UTC
    where they have a zone."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_timestamp(column.type):
        return None
    whole = column.type.unit == "s" or pc.floor_temporal(column, 1, "second").equals(column)
    wanted = pa.timestamp("s" if whole else "ns", column.type.tz and "UTC")
    return None if column.type == wanted else column.cast(wanted)


def times_in_ns(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Times of day in ns."""
    import pyarrow as pa

    return column.cast(pa.time64("ns")) if pa.types.is_time(column.type) and column.type != pa.time64("ns") else None


def dates_as_timestamps(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Days as their midnights, in us."""
    import pyarrow as pa

    return column.cast(pa.timestamp("us")) if pa.types.is_date(column.type) else None


def times_as_ms_since_1970(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Days and points in time as whole milliseconds since 1970: int64, with nulls float64."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("ms"))
    if not pa.types.is_timestamp(column.type):
        return None
    number = pc.floor_temporal(column, 1, "millisecond").cast(pa.timestamp("ms", column.type.tz)).cast(pa.int64())
    return number.cast(pa.float64()) if number.null_count else number


def durations_as_integers(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Spans of time as the number of their units."""
    import pyarrow as pa

    return column.cast(pa.int64()) if pa.types.is_duration(column.type) else None


def durations_as_ms(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Spans of time as whole milliseconds, rounded down: int64, with nulls float64."""
    import pyarrow as pa

    if not pa.types.is_duration(column.type):
        return None
    return times_as_ms_since_1970(column.cast(pa.int64()).cast(pa.timestamp(column.type.unit)))


def durations_as_days(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Spans of time as float64 days."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_duration(column.type):
        return None
    per_day = {"s": 86_400.0, "ms": 86_400e3, "us": 86_400e6, "ns": 86_400e9}[column.type.unit]
    return pc.divide(column.cast(pa.int64()).cast(pa.float64(), safe=False), per_day)


# --- nested --------------------------------------------------------------------------------------------------------


def integers_in_missing_structs_as_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Structs of which some are missing, after a visit to pandas: their integers miss values, and are floats."""
    import pyarrow as pa

    if not pa.types.is_struct(column.type) or not column.null_count:
        return None
    fields = [
        field.with_type(pa.float64()) if pa.types.is_integer(field.type) else field for field in column.type
    ]
    return None if pa.struct(fields) == column.type else column.cast(pa.struct(fields))


# --- what comes back as text ---------------------------------------------------------------------------------------


def written_as_text(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Columns of types that a text format has no notation for, unchanged: to be used with `parse_text`."""
    import pyarrow.types as of

    kinds = (of.is_temporal, of.is_binary, of.is_large_binary, of.is_nested)
    return column if any(is_it(column.type) for is_it in kinds) else None


def of_types(*types: str) -> Expect:
    """Columns of Arrow types that begin with one of these names, unchanged: to be used with `parse_text`."""
    return lambda column: column if str(column.type).startswith(types) else None


def anything_with_nulls(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Columns other than text that miss values, NaN counted as missing: to be used with `parse_text`."""
    if _is_text(column):
        return None
    without_nan = nan_as_null(column)
    column = column if without_nan is None else without_nan
    return column if column.null_count else None


def parse_text(text: pa.ChunkedArray, arrow_type: pa.DataType) -> pa.ChunkedArray:
    """What the text that pandas writes for a value of `arrow_type` stands for; empty text is a missing value.

    Raises pyarrow.ArrowInvalid, ValueError or SyntaxError for text that stands for no such value.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.if_else(pc.equal(text, ""), pa.scalar(None, text.type), text)
    if pa.types.is_timestamp(arrow_type):
        # In us at least, because pandas may write more decimals than the unit has.
        unit = "ns" if arrow_type.unit == "ns" else "us"
        return text.cast(pa.timestamp(unit, arrow_type.tz and "UTC")).cast(arrow_type)
    if pa.types.is_time(arrow_type):
        moments = pc.binary_join_element_wise(pa.scalar("1970-01-01", text.type), text, pa.scalar(" ", text.type))
        return moments.cast(pa.timestamp("ns")).cast(arrow_type)
    if pa.types.is_duration(arrow_type):
        import pandas as pd

        spans = pd.to_timedelta(text.to_numpy(zero_copy_only=False))
        return pa.chunked_array([pa.array(spans).cast(arrow_type)])
    if pa.types.is_nested(arrow_type) or pa.types.is_binary(arrow_type) or pa.types.is_large_binary(arrow_type):
        is_list = pa.types.is_list(arrow_type)
        values = [_literal(value, is_list) for value in text.to_pylist()]
        return pa.chunked_array([pa.array(values, arrow_type)])
    return text.cast(arrow_type)


def parse_blob(text: pa.ChunkedArray, arrow_type: pa.DataType) -> pa.ChunkedArray:
    """What the text that DuckDB writes for bytes stands for: \\x00 for each that is no printable ASCII."""
    import pyarrow as pa

    def value(text: str | None) -> bytes | None:
        if text is None:
            return None
        return re.sub(rb"\\x([0-9A-F]{2})", lambda found: bytes.fromhex(found[1].decode()), text.encode())

    return pa.chunked_array([pa.array(map(value, text.to_pylist()), arrow_type)])


def _literal(text: str | None, is_list: bool) -> Any:
    if text is None:
        return None
    # numpy writes its arrays without commas.
    return ast.literal_eval(text.replace(" ", ",") if is_list and "," not in text else text)
