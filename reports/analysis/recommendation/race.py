"""Choose which variants to measure further: after the screening on few rows, and after each round of the race.

Variants that may be recommended come first. Variants of a maturity that is not accepted are measured until it is clear
how much better they would be, and the user's current variant until it can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench_runner.results.statistics import FEWEST_ROUNDS
from bench_runner.variants import Variant
from reports.analysis.recommendation.recommend import Ranked, Recommendation

NEAR, LEAST_KEPT, MOST_KEPT = 2.5, 5, 10
"""Variants with scores up to NEAR times the best score of the screening enter the race, at least LEAST_KEPT and at most
MOST_KEPT."""
MOST_OF_A_STAGE = 2
"""Most variants that enter the race for each maturity that is not accepted."""


def may_win(found: Recommendation) -> list[Variant]:
    """Return the variants of the screening that may be the best on all rows.

    These are the best LEAST_KEPT and others near the best, and the first variants near the best whose maturity is not
    accepted.
    """
    near = [each for place, each in enumerate(found.ranked) if place < LEAST_KEPT or each.score <= NEAR]
    return [*_variants(near[:MOST_KEPT]), *_variants(_beside(found.not_accepted))]


def _beside(not_accepted: Sequence[Ranked]) -> Iterable[Ranked]:
    taken: dict[str, int] = {}
    for each in not_accepted:
        stage = each.candidate.stage
        if each.score <= NEAR and taken.get(stage, 0) < MOST_OF_A_STAGE:
            taken[stage] = taken.get(stage, 0) + 1
            yield each


def contending(found: Recommendation) -> list[Variant]:
    """Return the variants that may still be the best: the first, and those that the rounds do not show to be worse.

    Variants whose maturity is not accepted but which may be better follow, then the baseline, both only until they have
    enough rounds for a verdict. If time is short, only the first variants of the list are measured.
    """
    young = [each for each in found.not_accepted if len(each.candidate.rounds) < FEWEST_ROUNDS]
    now = found.baseline.candidate if found.baseline is not None else None
    short = [now.variant] if now is not None and 0 < len(now.rounds) < FEWEST_ROUNDS else []
    return list(dict.fromkeys([*_variants(_not_worse(found.ranked)), *_variants(_not_worse(young)), *short]))


def _not_worse(ranked: Iterable[Ranked]) -> list[Ranked]:
    return [
        each
        for each in ranked
        if each.against_first is None or each.against_first.low is None or each.against_first.low <= 1
    ]


def _variants(ranked: Iterable[Ranked]) -> list[Variant]:
    return [each.candidate.variant for each in ranked]
