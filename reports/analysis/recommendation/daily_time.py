"""What a day of a user's uses takes: the times of what is done, each as often as it is done, summed round by round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reports.analysis.recommendation.candidates import OPENING, Candidate
from reports.analysis.recommendation.preferences import Preferences, Use


def time_a_day(figures: Mapping[str, Mapping[int, float]], uses: Sequence[Use]) -> dict[int, float]:
    """ns a day by round, of the rounds that all of these uses have. A copy that stays open is opened once a day."""
    each = [use_a_day(figures, use) for use in uses]
    common = frozenset.intersection(*(frozenset(by_round) for by_round in each))
    return {number: sum(by_round[number] for by_round in each) for number in sorted(common)}


def use_a_day(figures: Mapping[str, Mapping[int, float]], use: Use) -> dict[int, float]:
    """ns a day by round of one use. Without a time of it there is no round."""
    opening = figures.get(OPENING + use.operation, {})
    return {
        number: use.per_day * value + opening.get(number, 0.0)
        for number, value in figures.get(use.operation, {}).items()
    }


def read_whole(candidate: Candidate, preferences: Preferences) -> list[str]:
    """The operations, for people, for which a variant has no call: it does what its users must do instead."""
    return [preferences.title(operation) for operation in preferences.operations if candidate.stands_in(operation)]
