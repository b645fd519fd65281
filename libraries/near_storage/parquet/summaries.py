"""Summarize what a chunk's Parquet statistics prove, as two codes and three bits.

Contradictory statistics are ignored.
"""

from __future__ import annotations

from typing import NamedTuple

from libraries.filters.codes import HIGHEST, LOWEST, CodeKind, Value, code, spelled_out
from libraries.near_storage.parquet.column_kinds import bound_value
from libraries.near_storage.parquet.footer import Chunk, Statistics
from libraries.near_storage.parquet.schema import Column


class Summary(NamedTuple):
    """Codes that bound a chunk's ordinary values (neither null nor NaN), and flags about its other values.

    The codes (LOWEST, HIGHEST) mean that the bounds are unknown. The codes (HIGHEST, LOWEST) mean that the chunk has no
    ordinary value. `exact` is true if the code of each bound identifies the value of the bound, and if the file does
    not mark a bound as truncated.
    """

    minimum: int
    maximum: int
    has_nulls: bool
    may_hold_nan: bool
    exact: bool


def summarize(chunk: Chunk, column: Column, kind: CodeKind) -> Summary:
    """Return the summary of a chunk. `kind` is the kind of the codes of its column. If the column is not flat, the
    bounds are unknown."""
    statistics = chunk.statistics
    nullable = column.nulls > 0
    if statistics is None or not column.flat:
        return Summary(LOWEST, HIGHEST, nullable, kind.floating, False)
    # A missing null count is not zero, unless the column is required.
    nulls = 0 if statistics.nulls is None and not nullable else statistics.nulls
    nans = statistics.nans if kind.floating else 0
    low, high, is_nan = _bounds(statistics, column, kind)
    has_nulls = nulls != 0
    if nulls is not None and nulls + (nans or 0) == chunk.values:
        has_nans = nulls < chunk.values
        if (statistics.minimum is None and statistics.maximum is None) or (is_nan and has_nans):
            return Summary(HIGHEST, LOWEST, has_nulls, has_nans, False)
        return Summary(LOWEST, HIGHEST, has_nulls, kind.floating, False)
    exact = (
        (low is not None and spelled_out(kind, low) and statistics.minimum_exact is not False)
        and (high is not None and spelled_out(kind, high))
        and statistics.maximum_exact is not False
    )
    return Summary(
        LOWEST if low is None else code(kind, -0.0 if kind.floating and low == 0 else low),
        HIGHEST if high is None else code(kind, 0.0 if kind.floating and high == 0 else high),
        has_nulls,
        nans != 0 or is_nan,
        exact,
    )


def _bounds(statistics: Statistics, column: Column, kind: CodeKind) -> tuple[Value | None, Value | None, bool]:
    """Return the lower and the upper bound (None if unknown), and whether an unusable bound suggests that the chunk
    holds NaN, whatever the NaN count states."""
    low, high = (
        None if data is None else bound_value(column, kind, data) for data in (statistics.minimum, statistics.maximum)
    )
    broken = (low is None) != (statistics.minimum is None) or (high is None) != (statistics.maximum is None)
    if broken or (low is not None and high is not None and low > high):  # type: ignore[operator]
        return None, None, broken and kind.floating
    return low, high, False
