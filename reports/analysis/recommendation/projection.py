"""Project a figure to all rows of a table from two sample sizes.

The model is a straight line through the figures of both samples. It is valid as long as a figure keeps growing with the
rows as it did between the samples. It cannot predict that memory runs out, or that a file no longer fits into the page
cache.
"""

from __future__ import annotations

from collections.abc import Mapping


def projected(
    smaller: Mapping[int, float], larger: Mapping[int, float], sizes: tuple[int, int, int]
) -> dict[int, float]:
    """Return a figure for all rows, for each round that both samples have. `sizes` are the numbers of rows of
    `smaller`, of `larger`, and of the whole table.

    Each round has its own line, so that a slow round counts only once. No round is projected below its value for the
    larger sample, because more rows do not take less. Raises ValueError if `sizes` are not in ascending order.
    """
    few, many, rows = sizes
    if not 0 < few < many <= rows:
        raise ValueError(f"sizes of {few:,} and {many:,} rows do not lead to {rows:,}")
    slopes = {number: (larger[number] - smaller[number]) / (many - few) for number in smaller.keys() & larger.keys()}
    return {number: larger[number] + max(slopes[number], 0.0) * (rows - many) for number in sorted(slopes)}
