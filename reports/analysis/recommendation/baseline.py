"""What the user has now, compared with what is recommended: how much slower and larger it is, how much more memory it
needs.

That does not make it a candidate: it may lack what is needed, change the data, or be left out by a pattern.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from bench_runner.results.statistics import Ratio, ratio_interval
from reports.analysis.recommendation.candidates import Candidate

ALWAYS = ("read", "save", "size")
"""What is told of every baseline, weighed or not."""


@dataclass(frozen=True, eq=False)
class Baseline:
    """One variant as the user has it. Without a counted round it has no values and no ratios."""

    candidate: Candidate
    values: Mapping[str, float]
    """Medians of what is weighed, as those of the ranked ones."""
    score: float | None
    """As a multiple of the first ranked one's."""
    ratios: Mapping[str, Ratio]
    """How many times the first ranked one's: of what is always told, and of what else is weighed."""
    rows: int | None = None
    """On how many rows both were compared, where the others are told of more: it has no values beside them then."""


def ratios(figures: Mapping[str, Mapping[int, float]], first: Mapping[str, Mapping[int, float]]) -> dict[str, Ratio]:
    """Figure by figure how many times the first's, paired by round; without a common round, of the medians."""
    return {name: _ratio(figures[name], first[name]) for name in figures if figures[name] and first.get(name)}


def _ratio(one: Mapping[int, float], other: Mapping[int, float]) -> Ratio:
    paired = ratio_interval(one, other)
    if paired is not None:
        return paired
    return Ratio(statistics.median(one.values()) / statistics.median(other.values()), None, None, 0, None)
