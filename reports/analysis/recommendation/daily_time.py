"""Compute the time per day of everything that a user does with a table.

The time of each operation is multiplied by the number of calls per day. The products are then summed within each round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reports.analysis.recommendation.candidates import OPENING, Candidate
from reports.analysis.recommendation.preferences import Preferences, Use


def time_a_day(figures: Mapping[str, Mapping[int, float]], uses: Sequence[Use]) -> dict[int, float]:
    """Return the total time per day in ns for each round in which all operations of `uses` were measured."""
    each = [use_a_day(figures, use) for use in uses]
    common = frozenset.intersection(*(frozenset(by_round) for by_round in each))
    return {number: sum(by_round[number] for by_round in each) for number in sorted(common)}


def use_a_day(figures: Mapping[str, Mapping[int, float]], use: Use) -> dict[int, float]:
    """Return the time per day in ns of one operation, for each round. The result is empty if the operation was not
    measured.

    If the operation keeps its copy open, the copy is opened once on each day with at least one call.
    """
    opening = figures.get(OPENING + use.operation, {})
    opened_per_day = min(use.per_day, 1.0)
    return {
        number: use.per_day * value + opened_per_day * opening.get(number, 0.0)
        for number, value in figures.get(use.operation, {}).items()
    }


def read_whole(candidate: Candidate, preferences: Preferences) -> list[str]:
    """Return the titles of the operations for which a variant reads or rewrites everything, because its library has no
    call for the operation."""
    return [preferences.title(operation) for operation in preferences.operations if candidate.stands_in(operation)]
