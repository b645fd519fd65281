"""Which variant is best for a user's weights, how sure that is, and where the answer changes.

A score is the weighted geometric mean of the figures: the ratio of two scores does not depend on who else is there,
and a variant that is half as large and twice as slow at equal weights is as good. What a user does with a table is one
of these figures: the time of all of it a day. Uncertainty comes from the rounds alone (bootstrap over rounds, ratios
paired by round).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench_runner.results.statistics import FEWEST_ROUNDS, Interval, Ratio, median_interval, ratio_interval
from bench_runner.variants import Variant
from reports.analysis.recommendation.baseline import ALWAYS, Baseline, ratios
from reports.analysis.recommendation.candidates import FIGURES, OPENING, Candidate
from reports.analysis.recommendation.daily_time import time_a_day
from reports.analysis.recommendation.preferences import USE, Preferences
from reports.analysis.recommendation.round_effect import without_round_effect

DRAWS = 4_000
"""Bootstrap draws: the standard error of a probability is at most 0.008."""
CONTENDS = 2.0
"""A score over this multiple of the best is not near it, however few its rounds."""
FEWEST_READS, MOST_READS = 0.01, 1_000.0
"""Reads for each save between which a break-even is told."""
SLOWEST, FASTEST = 1e6, 1e10
"""Bytes a second between which a break-even is told: a distant server to local NVMe."""
WHOLE_TIMES = ("read", "save")
MOST_OF_TIED = 0.975
"""P(best) of the first is told up to this where another cannot be told from it: the interval of 95 % that says so
leaves 2.5 % on the other's side, so a larger one would contradict it."""
TIME = "time"
"""One save and the reads that go with it, where the user says how many."""


@dataclass(frozen=True, eq=False)
class Ranked:
    """One variant in its place."""

    candidate: Candidate
    values: Mapping[str, float]
    """Medians of what is weighed, in ns or bytes."""
    ratios: Mapping[str, float]
    """The same as multiples of the best of the ranked variants."""
    score: float
    """As a multiple of the first one's."""
    against_first: Ratio | None
    """The same paired by round, with its interval; tied where that holds 1."""
    probability: float | None
    """Of being the best of those that may be recommended, over bootstrap draws of rounds; None where there are too few
    rounds, and for all others."""
    on_frontier: bool
    """Whether no other is at least as good in everything that is weighed, and better in something."""


@dataclass(frozen=True)
class BreakEven:
    """Where the fastest in one save and the reads after it changes: from `first` to `then`."""

    of: str
    """'reads' for each save, or 'bandwidth' in bytes a second."""
    first: Variant
    """The variant that wins below."""
    then: Variant
    at: Interval


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The answer, with every figure that it comes from. `ranked` is empty where nothing that may be recommended
    satisfies the needs."""

    preferences: Preferences
    ranked: tuple[Ranked, ...]
    """Those that may be recommended."""
    dropped: tuple[tuple[Variant, str], ...]
    """(variant, reason)."""
    break_evens: tuple[BreakEven, ...]
    """Among the ranked ones."""
    not_accepted: tuple[Ranked, ...] = ()
    """What satisfies the needs and may not be recommended, because its format has not come so far; best first, beside
    the first ranked one (where there is none, beside the first of them)."""
    baseline: Baseline | None = None
    """What the user has now, where it was measured."""

    @property
    def tied(self) -> tuple[Ranked, ...]:
        """The first, and those that cannot be told from it."""
        return tuple(
            each
            for place, each in enumerate(self.ranked)
            if place == 0 or (each.against_first is not None and each.against_first.tied)
        )


def weighed(candidate: Candidate, preferences: Preferences) -> dict[str, dict[int, float]]:
    """What decides, by round: the figures that have a weight, transfer added, save and reads joined where asked."""
    figures = _as_paid(candidate, preferences)
    if preferences.uses:
        figures[USE] = time_a_day(figures, preferences.uses)
    names = [name for name in weights(preferences) if name in figures]
    if preferences.reads_per_save is not None:
        common = figures["save"].keys() & figures["read"].keys()
        reads = preferences.reads_per_save
        figures[TIME] = {number: figures["save"][number] + reads * figures["read"][number] for number in common}
        names = [name for name in (TIME, *names) if name in weights(preferences)]
    return {name: figures[name] for name in names}


def _as_paid(candidate: Candidate, preferences: Preferences) -> dict[str, dict[int, float]]:
    """All figures, the transfer added to the times."""
    figures = {name: dict(values) for name, values in candidate.figures.items()}
    if preferences.bandwidth_bytes_per_s is not None:
        transfer_ns = statistics.median(figures["size"].values()) / preferences.bandwidth_bytes_per_s * 1e9
        for name in WHOLE_TIMES:
            figures[name] = {number: value + transfer_ns for number, value in figures[name].items()}
    return figures


def weights(preferences: Preferences) -> dict[str, float]:
    """The weights that are more than 0, as shares of 1; with reads_per_save those of read and save are one."""
    given = dict(preferences.weights)
    if preferences.reads_per_save is not None:
        given[TIME] = given.pop("read", 0.0) + given.pop("save", 0.0)
    total = sum(given.values())
    return {name: weight / total for name, weight in given.items() if weight > 0}


def recommend(
    kept: Sequence[Candidate],
    dropped: Sequence[tuple[Variant, str]],
    preferences: Preferences,
    baseline: Candidate | None = None,
) -> Recommendation:
    """Rank the eligible candidates, those that may be recommended by themselves. `baseline` is what the user has now;
    it may be one of them."""
    with_baseline = {candidate.variant: candidate for candidate in kept}
    if baseline is not None and baseline.rounds:
        with_baseline.setdefault(baseline.variant, baseline)
    corrected = {each.variant: each for each in _without_round_effects([*with_baseline.values()], preferences)}
    accepted = [corrected[candidate.variant] for candidate in kept if preferences.accepts(candidate.stage)]
    others = [corrected[candidate.variant] for candidate in kept if not preferences.accepts(candidate.stage)]
    figures = {candidate.variant: weighed(candidate, preferences) for candidate in accepted}
    ranked = _without_contradiction(
        _ranked(accepted, accepted, preferences, _probabilities(figures, weights(preferences)))
    )
    first = ranked[0].candidate if ranked else None
    now = None if baseline is None else compared(corrected.get(baseline.variant, baseline), first, preferences)
    return Recommendation(
        preferences=preferences,
        ranked=ranked,
        dropped=tuple(dropped),
        break_evens=tuple(_break_evens(accepted, preferences)),
        not_accepted=_ranked(others, accepted or others, preferences, {}),
        baseline=now,
    )


def _ranked(
    candidates: Sequence[Candidate],
    among: Sequence[Candidate],
    preferences: Preferences,
    probabilities: Mapping[Variant, float],
) -> tuple[Ranked, ...]:
    """The candidates, best first, beside the best of those `among` which they are."""
    if not candidates:
        return ()
    shares = weights(preferences)
    figures = {candidate.variant: weighed(candidate, preferences) for candidate in (*among, *candidates)}
    values = {variant: _medians(own) for variant, own in figures.items()}
    scores = {variant: _score(own, shares) for variant, own in values.items()}
    rivals = [candidate.variant for candidate in among]
    first = min(rivals, key=lambda variant: (scores[variant], variant))
    best = {name: min(values[variant][name] for variant in rivals) for name in shares}
    return tuple(
        Ranked(
            candidate=candidate,
            values=values[candidate.variant],
            ratios={name: values[candidate.variant][name] / best[name] for name in shares},
            score=scores[candidate.variant] / scores[first],
            against_first=ratio_interval(
                _scores_by_round(figures[candidate.variant], shares), _scores_by_round(figures[first], shares)
            ),
            probability=probabilities.get(candidate.variant),
            on_frontier=not any(
                _dominates(values[other], values[candidate.variant]) for other in rivals if other != candidate.variant
            ),
        )
        for candidate in sorted(candidates, key=lambda candidate: (scores[candidate.variant], candidate.variant))
    )


def _without_contradiction(ranked: tuple[Ranked, ...]) -> tuple[Ranked, ...]:
    """What cannot be told from others is not told to be the best for certain."""
    first = next(iter(ranked), None)
    tied = any(each.against_first is not None and each.against_first.tied for each in ranked[1:])
    if first is None or first.probability is None or not tied:
        return ranked
    return (replace(first, probability=min(first.probability, MOST_OF_TIED)), *ranked[1:])


def compared(candidate: Candidate, first: Candidate | None, preferences: Preferences) -> Baseline:
    """What the user has now, as a multiple of the first ranked one."""
    if not candidate.rounds or any(candidate.lacks(operation) for operation in preferences.operations):
        return Baseline(candidate, {}, None, {})
    shares = weights(preferences)
    values = _medians(weighed(candidate, preferences))
    if first is None:
        return Baseline(candidate, values, None, {})
    told = [USE] if preferences.uses else []
    told += [name for name in FIGURES if name in ALWAYS or name in shares]
    told += preferences.weighed_parts
    own, others = ({**_as_paid(each, preferences), **weighed(each, preferences)} for each in (candidate, first))
    return Baseline(
        candidate,
        values,
        _score(values, shares) / _score(_medians(weighed(first, preferences)), shares),
        ratios({name: own[name] for name in told}, others),
    )


def _without_round_effects(kept: Sequence[Candidate], preferences: Preferences) -> list[Candidate]:
    """Return the candidates with times that can be compared although they have other rounds. Sizes and memory do not
    depend on how fast a round was."""
    names = dict.fromkeys((*WHOLE_TIMES, *preferences.operations, *map(OPENING.__add__, preferences.operations)))
    times = {name: {each.variant: each.figures.get(name, {}) for each in kept} for name in names}
    by_time = {name: without_round_effect(figures) for name, figures in times.items()}
    return [
        replace(
            candidate,
            figures={
                name: by_time[name][candidate.variant] if name in by_time else values
                for name, values in candidate.figures.items()
            },
        )
        for candidate in kept
    ]


def _medians(figures: Mapping[str, Mapping[int, float]]) -> dict[str, float]:
    return {name: statistics.median(by_round.values()) for name, by_round in figures.items()}


def _score(values: Mapping[str, float], shares: Mapping[str, float]) -> float:
    return math.exp(sum(share * math.log(values[name]) for name, share in shares.items()))


def _scores_by_round(figures: Mapping[str, Mapping[int, float]], shares: Mapping[str, float]) -> dict[int, float]:
    common = set.intersection(*(set(figures[name]) for name in shares))
    return {number: _score({name: figures[name][number] for name in shares}, shares) for number in sorted(common)}


def _dominates(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    return all(one[name] <= other[name] for name in one) and any(one[name] < other[name] for name in one)


def _probabilities(
    figures: Mapping[Variant, Mapping[str, Mapping[int, float]]], shares: Mapping[str, float]
) -> dict[Variant, float]:
    """Over draws of rounds with replacement, the same for all variants: how often each has the best score.

    A variant with fewer rounds than others takes part with those it has. Nothing where one that is near the best has
    too few.
    """
    if not figures:
        return {}
    rounds = sorted({number for own in figures.values() for by_round in own.values() for number in by_round})
    medians = {variant: _score(_medians(own), shares) for variant, own in figures.items()}
    contenders = [variant for variant, score in medians.items() if score <= CONTENDS * min(medians.values())]
    if any(len(by_round) < FEWEST_ROUNDS for variant in contenders for by_round in figures[variant].values()):
        return {}
    generator = np.random.default_rng(0)
    drawn = generator.integers(0, len(rounds), (DRAWS, len(rounds)))
    scores = np.stack([_drawn_scores(own, shares, rounds, drawn) for own in figures.values()])
    wins = np.bincount(scores.argmin(axis=0), minlength=len(figures)) / DRAWS
    return dict(zip(figures, wins.tolist(), strict=True))


def _drawn_scores(
    figures: Mapping[str, Mapping[int, float]],
    shares: Mapping[str, float],
    rounds: Sequence[int],
    drawn: np.ndarray,
) -> np.ndarray:
    """The logarithm of the score in each draw; a draw that holds none of the variant's rounds gives its median."""
    total = np.zeros(len(drawn))
    for name, share in shares.items():
        by_round = figures[name]
        logs = np.array([math.log(by_round[number]) if number in by_round else np.nan for number in rounds])
        taken = logs[drawn]
        missing = np.isnan(taken).all(axis=1)
        taken[missing] = np.nanmedian(logs)
        total += share * _medians_of_rows(taken)
    return total


def _medians_of_rows(values: np.ndarray) -> np.ndarray:
    """Like `np.nanmedian(values, axis=1)`, five times as quick: it is asked after every round of a race."""
    ordered = np.sort(values, axis=1)
    counts = (~np.isnan(values)).sum(axis=1, keepdims=True)
    middle = np.concatenate([(counts - 1) // 2, counts // 2], axis=1)
    return np.asarray(np.take_along_axis(ordered, middle, axis=1).mean(axis=1))


# --- where the answer changes ------------------------------------------------------------------------------------


def _break_evens(kept: Sequence[Candidate], preferences: Preferences) -> list[BreakEven]:
    """In time alone, which every user pays: by the number of reads for each save, and by the storage's bandwidth. None
    where more is done than saving and reading all."""
    if preferences.uses or preferences.weighed_parts:
        return []
    transfer = preferences.bandwidth_bytes_per_s
    per_byte = 0.0 if transfer is None else 1e9 / transfer
    by_reads = {
        candidate.variant: {
            number: (_line_of(candidate, number, per_byte, "save"), _line_of(candidate, number, per_byte, "read"))
            for number in candidate.rounds
        }
        for candidate in kept
    }
    found = [
        BreakEven("reads", first, then, at)
        for first, then, at in _envelope(by_reads)
        if FEWEST_READS <= at.median <= MOST_READS
    ]
    reads = preferences.reads_per_save or 1.0
    by_slowness = {
        candidate.variant: {
            number: (
                candidate.figures["save"][number] + reads * candidate.figures["read"][number],
                (1 + reads) * candidate.figures["size"][number],
            )
            for number in candidate.rounds
        }
        for candidate in kept
    }
    for first, then, at in _envelope(by_slowness):
        # The lines run over ns a byte: what comes later on them wins on slower storage.
        bandwidth = _inverted(at)
        if SLOWEST <= bandwidth.median <= FASTEST:
            found.append(BreakEven("bandwidth", then, first, bandwidth))
    return found


def _line_of(candidate: Candidate, number: int, per_byte_ns: float, name: str) -> float:
    return candidate.figures[name][number] + per_byte_ns * candidate.figures["size"][number]


def _inverted(at: Interval) -> Interval:
    """ns a byte as bytes a second; smallest and largest change places."""

    def flip(value: float) -> float:
        return math.inf if value == 0 else 1e9 / value

    low, high = (None if end is None else flip(end) for end in (at.high, at.low))
    return Interval(flip(at.median), low, high, flip(at.maximum), flip(at.minimum), at.rounds)


def _envelope(lines: Mapping[Variant, Mapping[int, tuple[float, float]]]) -> list[tuple[Variant, Variant, Interval]]:
    """Who is lowest along x >= 0, of lines (value at 0, slope) by round: each change as (before, after, where).

    Which lines take part is told by their medians; where they cross by the rounds that both have.
    """
    medians = {
        name: (
            statistics.median(line[0] for line in by_round.values()),
            statistics.median(line[1] for line in by_round.values()),
        )
        for name, by_round in lines.items()
        if by_round
    }
    if not medians:
        return []
    current = min(medians, key=lambda name: (medians[name], name))
    place = 0.0
    changes: list[tuple[Variant, Variant, Interval]] = []
    while True:
        crossings = [
            (_crossing(medians[current], medians[name]), medians[name][1], name)
            for name in medians
            if medians[name][1] < medians[current][1]
        ]
        ahead = [crossing for crossing in crossings if crossing[0] >= place]
        if not ahead:
            return changes
        place, _, following = min(ahead)
        common = lines[current].keys() & lines[following].keys()
        crossed = [
            _crossing(lines[current][number], lines[following][number])
            for number in sorted(common)
            if lines[following][number][1] < lines[current][number][1]
        ]
        # Where most rounds see no crossing, there is none to tell of.
        if 2 * len(crossed) > len(common):
            changes.append((current, following, median_interval([max(value, 0.0) for value in crossed])))
        current = following


def _crossing(one: tuple[float, float], other: tuple[float, float]) -> float:
    return (other[0] - one[0]) / (one[1] - other[1])
