"""Project a figure from two sample sizes to all rows of a table.

The model is a straight line through the figures of both samples. It is valid if the figure keeps growing with the
number of rows as it did between the samples. It cannot predict that memory runs out, or that a file no longer fits into
the page cache.
"""

from __future__ import annotations

from collections.abc import Mapping


def projected(
    smaller: Mapping[int, float], larger: Mapping[int, float], sizes: tuple[int, int, int]
) -> dict[int, float]:
    """Return the projected figure for all rows, for each round that both samples have. `sizes` are three numbers of
    rows: of `smaller`, of `larger`, and of the whole table.

    A line is fitted for each round, so that a slow round affects only its own value. The projection is never below the
    value for the larger sample, because more rows do not take less time or space. Raises ValueError if `sizes` are not
    in ascending order.
    """
    few, many, rows = sizes
    if not 0 < few < many <= rows:
        raise ValueError(f"the numbers of rows must be above 0 and ascend (got {few:,}, {many:,} and {rows:,})")
    slopes = {number: (larger[number] - smaller[number]) / (many - few) for number in smaller.keys() & larger.keys()}
    return {number: larger[number] + max(slopes[number], 0.0) * (rows - many) for number in sorted(slopes)}
