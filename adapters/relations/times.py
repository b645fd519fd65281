"""Functions that convert columns of timestamps, dates, times and durations to what a read returns if a format changes
their unit, time zone or type, or cuts fractions of a second.

Every function, or the function that it returns, returns None for columns that come back exactly, except
`timestamps_cut_to_ms`: it returns all columns of timestamps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from adapters.losses import Expect

if TYPE_CHECKING:
    import pyarrow as pa


def timestamps_in(units: Iterable[str], to_unit: str, to_zone: str | None = None) -> Expect:
    """Return a function that converts a timestamp column to `to_unit` if the column's unit is among `units`.

    If `to_zone` is given, the function also converts timestamps with a time zone to this zone."""
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


def zones_as_utc(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a timestamp column with a time zone converted to UTC; None for other columns."""
    import pyarrow as pa

    if not pa.types.is_timestamp(column.type) or column.type.tz in (None, "UTC"):
        return None
    return column.cast(pa.timestamp(column.type.unit, "UTC"))


def zoned_in_us_or_ns_of_utc(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a timestamp column with a time zone converted to UTC and to microseconds; None for other columns.

    Columns in nanoseconds keep their unit."""
    import pyarrow as pa

    if not pa.types.is_timestamp(column.type) or column.type.tz is None:
        return None
    as_type = pa.timestamp("ns" if column.type.unit == "ns" else "us", "UTC")
    return None if column.type == as_type else column.cast(as_type)


def timestamps_cut_to_ms(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a timestamp column in microseconds, with fractions of a millisecond cut off; None for other types."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_timestamp(column.type):
        return None
    return pc.floor_temporal(column, 1, "millisecond").cast(pa.timestamp("us", column.type.tz))


def timestamps_as_ms(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a timestamp column cut to whole milliseconds, with the unit ms; None for other columns."""
    import pyarrow as pa

    cut = timestamps_cut_to_ms(column)
    return None if cut is None or column.type.unit == "ms" else cut.cast(pa.timestamp("ms", column.type.tz))


def timestamps_cut_to_us(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a timestamp column cut to whole microseconds, with the unit us; None for other columns.

    Timestamps with a time zone are converted to UTC."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_timestamp(column.type):
        return None
    wanted = pa.timestamp("us", column.type.tz and "UTC")
    if column.type == wanted:
        return None
    return (pc.floor_temporal(column, 1, "microsecond") if column.type.unit == "ns" else column).cast(wanted)


def zoned_timestamps_cut_to_us(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return None for timestamps in ns without a time zone, and for other columns what `timestamps_cut_to_us`
    returns."""
    import pyarrow as pa

    return None if column.type == pa.timestamp("ns") else timestamps_cut_to_us(column)


def timestamps_in_s_or_ns(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a timestamp column with the unit s, or with the unit ns if any value has a fraction of a second.

    Timestamps with a time zone are converted to UTC. The stored text has decimals only for values with a fraction of a
    second, and readers infer these units from this text. Returns None for columns that are already in this form, and
    for other types."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_timestamp(column.type):
        return None
    whole = column.type.unit == "s" or pc.floor_temporal(column, 1, "second").equals(column)
    wanted = pa.timestamp("s" if whole else "ns", column.type.tz and "UTC")
    return None if column.type == wanted else column.cast(wanted)


def times_in_ns(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a column of times of day with the unit ns; None for other columns."""
    import pyarrow as pa

    return column.cast(pa.time64("ns")) if pa.types.is_time(column.type) and column.type != pa.time64("ns") else None


def dates_as_timestamps(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a date column as timestamps at midnight, with the unit us; None for other types."""
    import pyarrow as pa

    return column.cast(pa.timestamp("us")) if pa.types.is_date(column.type) else None


def dates_as_timestamps_in_ms(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a date column as timestamps at midnight, with the unit ms; None for other types."""
    import pyarrow as pa

    return column.cast(pa.timestamp("ms")) if pa.types.is_date(column.type) else None


def times_as_ms_since_1970(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a date or timestamp column as whole milliseconds since 1970; None for other types.

    The result is int64, or float64 if the column has nulls."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("ms"))
    if not pa.types.is_timestamp(column.type):
        return None
    number = pc.floor_temporal(column, 1, "millisecond").cast(pa.timestamp("ms", column.type.tz)).cast(pa.int64())
    return number.cast(pa.float64()) if number.null_count else number


def durations_as_integers(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a duration column as int64, in the same unit; None for other types."""
    import pyarrow as pa

    return column.cast(pa.int64()) if pa.types.is_duration(column.type) else None


def durations_as_ms(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a duration column as whole milliseconds, rounded down; None for other types.

    The result is int64, or float64 if the column has nulls."""
    import pyarrow as pa

    if not pa.types.is_duration(column.type):
        return None
    return times_as_ms_since_1970(column.cast(pa.int64()).cast(pa.timestamp(column.type.unit)))


def durations_as_days(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a duration column as a number of days in float64; None for other types."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_duration(column.type):
        return None
    per_day = {"s": 86_400.0, "ms": 86_400e3, "us": 86_400e6, "ns": 86_400e9}[column.type.unit]
    return pc.divide(column.cast(pa.int64()).cast(pa.float64(), safe=False), per_day)
