"""Recipe: the numbers that define one column of a realistic table.

realistic.py makes columns from recipes; recipes.py has those that calibrate.py found.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """How one column is made. Shares are of the windows or of the values, from 0 to 1."""

    name: str
    kind: str
    """float64, int64 or string."""
    distinct_ratio: float
    """Distinct values / rows, where that gives more than `distinct_least`."""
    distinct_least: int
    exponent: float
    """The value of rank k has the weight k ** -exponent, as far as `top_share` allows."""
    top_share: float
    constant_share: float
    sorted_share: float
    boundary: float
    """Chance that a row starts a slot, in windows that are not constant."""
    null_ratio: float
    width_bytes: float = 0.0

    def distinct(self, rows: int) -> int:
        """Return how many values a table (or batch) of `rows` rows has, if it has enough slots."""
        return min(rows, max(round(self.distinct_ratio * rows), self.distinct_least))
