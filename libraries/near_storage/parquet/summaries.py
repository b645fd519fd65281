"""What a chunk's statistics say for sure, as two codes and three bits (near storage's rules for Parquet statistics).

Whatever contradicts itself says nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from libraries.near_storage.parquet.codes import HIGHEST, LOWEST, CodeKind, Value, bound_value, code, spelled_out
from libraries.near_storage.parquet.footer import Chunk, Statistics
from libraries.near_storage.parquet.schema import Column


class Summary(NamedTuple):
    """Codes between which all values lie that are neither null nor NaN, and what else may be in the chunk.

    (LOWEST, HIGHEST) is 'unknown', (HIGHEST, LOWEST) 'there is no such value'. `exact`: both bounds are spelled out by
    their codes, and the file does not call them shortened.
    """

    minimum: int
    maximum: int
    has_nulls: bool
    may_hold_nan: bool
    exact: bool


def summarize(chunk: Chunk, column: Column, kind: CodeKind) -> Summary:
    """The summary of a chunk of this column, whose kind is `kind_of(column)`; unknown where the column is not flat."""
    statistics = chunk.statistics
    nullable = column.nulls > 0
    if statistics is None or not column.flat:
        return Summary(LOWEST, HIGHEST, nullable, kind.floating, False)
    # A missing count is not zero; of a required column it is.
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
    """Both bounds, None where not known, and whether one of them is NaN: then NaN there is, whatever the count says."""
    low, high = (
        None if data is None else bound_value(column, kind, data) for data in (statistics.minimum, statistics.maximum)
    )
    broken = (low is None) != (statistics.minimum is None) or (high is None) != (statistics.maximum is None)
    if broken or (low is not None and high is not None and low > high):  # type: ignore[operator]
        return None, None, broken and kind.floating
    return low, high, False
