"""Compute the time per day of a user's uses: the time of each use times its number per day, summed by round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reports.analysis.recommendation.candidates import OPENING, Candidate
from reports.analysis.recommendation.preferences import Preferences, Use


def time_a_day(figures: Mapping[str, Mapping[int, float]], uses: Sequence[Use]) -> dict[int, float]:
    """Return ns per day by round, for rounds in which all uses were measured. A copy that stays open is opened once a
    day."""
    each = [use_a_day(figures, use) for use in uses]
    common = frozenset.intersection(*(frozenset(by_round) for by_round in each))
    return {number: sum(by_round[number] for by_round in each) for number in sorted(common)}


def use_a_day(figures: Mapping[str, Mapping[int, float]], use: Use) -> dict[int, float]:
    """Return ns per day by round for one use; empty if it has no time."""
    opening = figures.get(OPENING + use.operation, {})
    return {
        number: use.per_day * value + opening.get(number, 0.0)
        for number, value in figures.get(use.operation, {}).items()
    }


def read_whole(candidate: Candidate, preferences: Preferences) -> list[str]:
    """Return titles of the operations for which a variant reads or rewrites everything, because it has no call."""
    return [preferences.title(operation) for operation in preferences.operations if candidate.stands_in(operation)]
