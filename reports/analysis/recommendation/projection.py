"""Projects a figure to all rows of a table from two sizes of a sample.

The line through two sizes is a model: it is right as long as a figure grows with the rows as it did between the two. It
does not foresee that memory runs out or that a file no longer fits into the page cache.
"""

from __future__ import annotations

from collections.abc import Mapping


def projected(
    smaller: Mapping[int, float], larger: Mapping[int, float], sizes: tuple[int, int, int]
) -> dict[int, float]:
    """Return a figure of all rows, in each round that both sizes have. `sizes` are the rows of `smaller`, of `larger`,
    and all rows.

    Each round has its own line, so that what slows a whole round down counts once. No round is projected below what it
    took on the larger size: more rows do not take less. Raises ValueError when the sizes are not in their order.
    """
    few, many, rows = sizes
    if not 0 < few < many <= rows:
        raise ValueError(f"sizes of {few:,} and {many:,} rows do not lead to {rows:,}")
    slopes = {number: (larger[number] - smaller[number]) / (many - few) for number in smaller.keys() & larger.keys()}
    return {number: larger[number] + max(slopes[number], 0.0) * (rows - many) for number in sorted(slopes)}
