"""Measure statistics of a column. profiles.py has the same statistics of real columns.

Missing values are ignored in all statistics except the null ratio.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

WINDOW_ROWS = 512


@dataclass(frozen=True)
class ColumnStatistics:
    """Measured statistics of a column.

    distinct_values: number of distinct values.
    distinct_ratio: number of distinct values, divided by the number of rows.
    null_ratio: number of missing values, divided by the number of rows.
    top_value_share: number of values that equal the most frequent value, divided by the number of values.
    zipf_exponent: minus the slope of the least-squares line through (log rank, log count) of all distinct values. The
        most frequent value has rank 1. 0 for fewer than three distinct values, which define no such line.
    mean_run_length: mean number of values per run in a window of 512 rows, averaged over all windows. A run is a
        sequence of equal values. From 1 to 512.
    sortedness: |rises - falls| / (rises + falls) in the same windows, averaged over all windows. A rise is a value
        larger than the value before it. From 0 to 1; about 0.02 for values in random order, and 1 for a window with
        sorted values or a single value.
    width_bytes: mean UTF-8 bytes of a value; None for numbers.
    """

    distinct_values: int
    distinct_ratio: float
    null_ratio: float
    sortedness: float
    zipf_exponent: float
    top_value_share: float
    mean_run_length: float
    width_bytes: float | None


def column_statistics(column: pa.ChunkedArray) -> ColumnStatistics:
    """Measure a column of numbers, booleans or strings. Raises ValueError if all values are missing."""
    rows = len(column)
    values = column.drop_null()
    if not len(values):
        raise ValueError("a column without values has no statistics")
    codes = _order_preserving_codes(values)
    counts = np.sort(np.bincount(codes))[::-1]
    window = np.flatnonzero(pc.is_valid(column).to_numpy()) // WINDOW_ROWS
    run_length, sortedness = _window_statistics(codes, window)
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    return ColumnStatistics(
        distinct_values=len(counts),
        distinct_ratio=len(counts) / rows,
        null_ratio=column.null_count / rows,
        sortedness=sortedness,
        zipf_exponent=zipf_exponent(counts),
        top_value_share=float(counts[0] / counts.sum()),
        mean_run_length=run_length,
        width_bytes=pc.mean(pc.binary_length(values)).as_py() if is_text else None,
    )


def _order_preserving_codes(values: pa.ChunkedArray) -> NDArray[np.int64]:
    encoded = values.combine_chunks().dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place[encoded.indices.to_numpy()]


def zipf_exponent(counts: NDArray[np.int64] | NDArray[np.float64]) -> float:
    """Return the Zipf exponent of `counts`, which must be in descending order; 0 for fewer than three counts.

    The exponent is minus the slope of the line through (log rank, log count).
    """
    if len(counts) < 3:
        return 0.0
    log_rank = np.log(np.arange(1, len(counts) + 1))
    log_count = np.log(counts)
    deviation = log_rank - log_rank.mean()
    return float(-(deviation @ (log_count - log_count.mean())) / (deviation @ deviation))


def _window_statistics(codes: NDArray[np.int64], window: NDArray[np.int64]) -> tuple[float, float]:
    """Return mean run length and sortedness. `window` has the number of each value's window, in ascending order."""
    windows = int(window[-1]) + 1
    step = np.diff(codes)
    within = np.diff(window) == 0
    rises = np.bincount(window[1:][within & (step > 0)], minlength=windows)
    falls = np.bincount(window[1:][within & (step < 0)], minlength=windows)
    sizes = np.bincount(window, minlength=windows)
    used = sizes > 0
    changes = (rises + falls)[used]
    run_length = (sizes[used] / (changes + 1)).mean()
    sortedness = np.where(changes == 0, 1.0, np.abs(rises - falls)[used] / np.maximum(changes, 1)).mean()
    return float(run_length), float(sortedness)
