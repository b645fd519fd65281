"""Which variants are measured further: from few rows to all of them, and from round to round.

Variants that may be recommended come first. Others are measured until it is clear what they would gain, and what the
user has now until it can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench_runner.results.statistics import FEWEST_ROUNDS
from bench_runner.variants import Variant
from reports.analysis.recommendation.recommend import Ranked, Recommendation

NEAR, LEAST_KEPT, MOST_KEPT = 2.5, 5, 10
"""Scores up to this multiple of the best on few rows are measured on all; so many at least, and at most."""
MOST_OF_A_STAGE = 2
"""Of each stage that is not accepted so many are measured on all rows."""


def may_win(found: Recommendation) -> list[Variant]:
    """Return, of the screening on few rows, the variants that may be the best on many: the first ones, and all that are
    near them; and the first that are near them of what is not accepted."""
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
    """Return, after some rounds, the variants that may still be the best: the first one, and those that the rounds do
    not show to be worse. Then, until they have the rounds of a verdict, what is not accepted and might gain something,
    and the baseline: if time is short it goes to those in front."""
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
