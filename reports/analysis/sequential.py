"""Decide, while two versions are measured in turn, whether a figure changed. Figures that do not differ then need fewer
rounds.

At each interim comparison, called a look, the values of both versions are compared by Mann and Whitney's test. A change
is reported early only if the statistic of the test exceeds the limit of O'Brien and Fleming (A multiple testing
procedure for clinical trials, Biometrics 35, 1979). With this limit, all looks together report a false change as seldom
as a single test. Figures that are plainly equal are also decided early.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from enum import Enum

CHANGED_DEVIATIONS = 3.0
"""Number of standard deviations above which the test's statistic shows a change at the last look (interim comparison).
Earlier looks need more, and so do more than about 20 figures (see FALSE_CHANGES). In a simulation of 12 figures with a
scatter of 14 % and a look every 10 rounds up to 240, 2 % of comparisons reported a false change."""
FALSE_CHANGES = 0.05
"""Allowed probability that a comparison of two equal versions reports any change. The more figures are compared, the
more standard deviations a change needs (Bonferroni)."""
FEWEST_EQUAL_ROUNDS = 40
"""Before the last look (interim comparison), a figure can count as unchanged only from this number of rounds on."""
EQUAL_DEVIATIONS = (0.8, 2.8)
"""A figure counts as unchanged if the test's statistic is below this many standard deviations. The first value applies
at FEWEST_EQUAL_ROUNDS, the second at the last look. Limits between them are interpolated."""


class Decision(Enum):
    """The result of a look (interim comparison) for one figure. OPEN means that more rounds are needed."""

    CHANGED = "changed"
    SAME = "same"
    OPEN = "open"


def deviations(after: Sequence[float], before: Sequence[float]) -> float:
    """Return how far Mann and Whitney's statistic is from its value for equal samples, in standard deviations.

    The result is above 0 if `after` is larger. A tie of two values counts half.
    """
    many, few = len(after), len(before)
    ordered = sorted([(value, 0) for value in before] + [(value, 1) for value in after])
    ranks = 0.0
    place = 0
    while place < len(ordered):
        end = place
        while end < len(ordered) and ordered[end][0] == ordered[place][0]:
            end += 1
        ranks += (place + 1 + end) / 2 * sum(side for _, side in ordered[place:end])
        place = end
    larger = ranks - many * (many + 1) / 2
    return (larger - many * few / 2) / math.sqrt(many * few * (many + few + 1) / 12)


def can_show_change(after: int, before: int, most_rounds: int, figures: int) -> bool:
    """Return whether `after` and `before` values can show a change, however large. Each version will have at most
    `most_rounds` values, and `figures` figures are compared."""
    rounds = min(after, before)
    # The statistic if every value of one version is larger than all values of the other.
    largest = math.sqrt(3 * after * before / (after + before + 1))
    return rounds > 0 and largest > _changed_from(rounds, most_rounds, figures)


def _changed_from(rounds: int, most_rounds: int, figures: int) -> float:
    """Return the number of standard deviations above which the test's statistic shows a change."""
    last = max(CHANGED_DEVIATIONS, statistics.NormalDist().inv_cdf(1 - FALSE_CHANGES / 2 / max(figures, 1)))
    return last * math.sqrt(max(most_rounds / rounds, 1))


def decision(after: Sequence[float], before: Sequence[float], most_rounds: int, figures: int) -> Decision:
    """Return whether the values of two versions show a change. Each version will have at most `most_rounds` values, and
    `figures` figures are compared. The decision stays open if there are too few values to show any change."""
    rounds = min(len(after), len(before))
    if not can_show_change(len(after), len(before), most_rounds, figures):
        return Decision.OPEN
    found = abs(deviations(after, before))
    if found > _changed_from(rounds, most_rounds, figures):
        return Decision.CHANGED
    if rounds >= most_rounds:
        return Decision.SAME
    first, last = EQUAL_DEVIATIONS
    share = (rounds - FEWEST_EQUAL_ROUNDS) / max(most_rounds - FEWEST_EQUAL_ROUNDS, 1)
    return Decision.SAME if share >= 0 and found < first + (last - first) * share else Decision.OPEN
