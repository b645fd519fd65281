"""Compare the user's current variant with the recommended one: time, size and memory.

The current variant need not be a candidate for the recommendation. It may lack a required ability, it may change the
data, or the user may have excluded it by a pattern.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from bench_runner.results.statistics import Ratio, ratio_interval
from reports.analysis.recommendation.candidates import Candidate

ALWAYS = ("read", "save", "size")
"""Figures that are always compared, even if they have no weight."""


@dataclass(frozen=True, eq=False)
class Baseline:
    """The user's current variant. If no round was counted, or a weighted operation has no time, there are no values and
    no ratios."""

    candidate: Candidate
    values: Mapping[str, float]
    """Medians of the figures that have a weight, in ns or bytes."""
    score: float | None
    """The score as a multiple of the first ranked variant's score."""
    ratios: Mapping[str, Ratio]
    """Ratio of each figure to the same figure of the first ranked variant, for the figures of ALWAYS and all figures
    that have a weight."""
    rows: int | None = None
    """Number of rows on which the current variant was compared with the first ranked variant. It is set only if the
    ranking used more rows. `values` is then empty."""


def ratios(figures: Mapping[str, Mapping[int, float]], first: Mapping[str, Mapping[int, float]]) -> dict[str, Ratio]:
    """Return the ratio of each figure to the same figure of the first variant. Values of the same round are compared.
    If the two variants have no common round, their medians are compared."""
    return {name: _ratio(figures[name], first[name]) for name in figures if figures[name] and first.get(name)}


def _ratio(one: Mapping[int, float], other: Mapping[int, float]) -> Ratio:
    paired = ratio_interval(one, other)
    if paired is not None:
        return paired
    return Ratio(statistics.median(one.values()) / statistics.median(other.values()), None, None, 0, None)
