"""From two sizes of the same data to the whole: what is fixed in a figure, what a row costs, and what all would.

The line through two sizes is a model: it is right as far as a figure grows with the rows as it did between the two, and
no further. What it cannot know (memory that runs out, a cache that no longer holds the file) it does not say. A pure
function of values by round; what they are figures of, and which data sets are two sizes of the same, others know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench_runner.results.statistics import Interval, median_interval


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure on one size of the data: `by_round` has its value in each counted round."""

    rows: int
    by_round: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Projection:
    """What a figure would be on `rows` rows, in its unit. The intervals are those of the median over the rounds; under
    five common rounds they have no ends."""

    rows: int
    fixed: Interval
    """What it would be without rows. It may be negative: where a row costs less among few than among many."""
    per_row: Interval
    value: Interval


def project(smaller: Measured, larger: Measured, rows: int) -> Projection | None:
    """The figure of `rows` rows from those of two sizes; None where the two have no round in common.

    Each round has a line of its own, through its two values, so that what slows a whole round down counts once; the
    projection is the median over the rounds. No round is projected below what it took on the larger size: more rows do
    not take less. Raises ValueError when the sizes are not in their order, or `rows` is less than the larger.
    """
    values = by_round(smaller, larger, rows)
    if not values:
        return None
    slopes = _slopes(smaller, larger)
    fixed = [smaller.by_round[number] - slope * smaller.rows for number, slope in slopes.items()]
    return Projection(
        rows,
        median_interval(fixed),
        median_interval(list(slopes.values())),
        median_interval(list(values.values())),
    )


def by_round(smaller: Measured, larger: Measured, rows: int) -> dict[int, float]:
    """The same round by round, without its median: for whoever compares figures within a round."""
    if not 0 < smaller.rows < larger.rows <= rows:
        raise ValueError(f"sizes of {smaller.rows:,} and {larger.rows:,} rows do not lead to {rows:,}")
    return {
        number: larger.by_round[number] + max(slope, 0.0) * (rows - larger.rows)
        for number, slope in _slopes(smaller, larger).items()
    }


def _slopes(smaller: Measured, larger: Measured) -> dict[int, float]:
    common = sorted(smaller.by_round.keys() & larger.by_round.keys())
    span = larger.rows - smaller.rows
    return {number: (larger.by_round[number] - smaller.by_round[number]) / span for number in common}
