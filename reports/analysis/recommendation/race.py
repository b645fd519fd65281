"""Choose which variants to measure further. The first measurement, on few rows, is the screening. The race then
measures the remaining variants on all rows, round by round. This module chooses again after each round.

Variants that may be recommended come first. Variants whose maturity the user does not accept are measured until it is
clear how much better they would be. The user's current variant is measured until it can be compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from bench_runner.results.statistics import FEWEST_ROUNDS
from bench_runner.variants import Variant
from reports.analysis.recommendation.recommend import Ranked, Recommendation

NEAR, LEAST_KEPT, MOST_KEPT = 2.5, 5, 10
"""A variant enters the race (the measurement on all rows) if its score is at most NEAR times the best score of the
screening. At least LEAST_KEPT and at most MOST_KEPT variants enter."""
MOST_OF_A_STAGE = 2
"""Largest number of additional variants that enter the race for each maturity that the user does not accept."""
BEHIND, NOT_ACCEPTED, ONLY_SCREENED = "behind", "not accepted", "only screened"
"""First words of the reasons why a variant of the screening was not measured in the race. A colon and details
follow."""


def may_win(found: Recommendation) -> list[Variant]:
    """Return the variants that may be the best on all rows, judged by the screening (the first measurement, on few
    rows).

    These are the LEAST_KEPT best variants, and others whose score is near the best. Variants whose maturity (stage) the
    user does not accept follow, if their score is near the best: up to MOST_OF_A_STAGE of each stage. They are measured
    so that the answer can state how much better they would be.
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


def not_raced(screened: Recommendation, measured: Collection[Variant], rows: int) -> Iterator[tuple[Variant, str]]:
    """Yield each variant that the screening ranked but the race did not measure, with the reason.

    `measured` are the variants of the race, and `rows` is the number of rows of the screening.
    """
    chosen = {*may_win(screened)}
    for each in (*screened.ranked, *screened.not_accepted):
        variant, stage = each.candidate.variant, each.candidate.stage
        score = f"score {each.score:.1f} times the best's at {rows:,} rows"
        if variant in measured:
            continue
        if variant in chosen:
            # The race was for other preferences, for example.
            yield variant, f"{ONLY_SCREENED}: {score}; the run did not measure it on more rows"
        elif screened.preferences.accepts(stage) or each.score > NEAR:
            yield variant, f"{BEHIND}: {score}"
        else:
            limit = f"at most {MOST_OF_A_STAGE} variants are measured on more rows"
            yield variant, f"{NOT_ACCEPTED}: {stage}, {score}; of each maturity that is not accepted, {limit}"


def contending(found: Recommendation) -> list[Variant]:
    """Return the variants that may still be the best: the first variant, and variants that are not clearly worse after
    the rounds so far.

    Variants whose maturity the user does not accept follow if they may be better. The user's current variant comes
    last. Both kinds are included only until they have enough rounds for a verdict. If time is short, only the first
    variants of the list are measured.
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
