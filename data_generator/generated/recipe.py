"""Recipe: the numbers that define one column of a realistic table.

realistic.py makes columns from recipes. recipes.py contains the recipes, which calibrate.py has found.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """Parameters for making one column. Shares are from 0 to 1.

    `top_share` is the share of the most frequent value. A column is made in windows of 512 rows: `constant_share` is
    the share of windows with a single value, and `sorted_share` is the share of windows with sorted values.
    """

    name: str
    kind: str
    """Type of the column: float64, int64 or string."""
    distinct_ratio: float
    """Number of distinct values, divided by the number of rows. There are at least `distinct_least` distinct values."""
    distinct_least: int
    exponent: float
    """Exponent of a power law: the k-th most frequent value has the weight k ** -exponent. The most frequent values
    deviate from this law if `top_share` requires it."""
    top_share: float
    constant_share: float
    sorted_share: float
    boundary: float
    """Probability that a row begins a new sequence of equal values, in windows with more than one value."""
    null_ratio: float
    width_bytes: float = 0.0

    def distinct(self, rows: int) -> int:
        """Return the number of distinct values in `rows` rows. The column may have fewer, if equal values form long
        runs."""
        return min(rows, max(round(self.distinct_ratio * rows), self.distinct_least))
