"""Rank variants by a user's weights. Compute how certain the ranking is, and where the best variant changes.

A score is the weighted geometric mean of a variant's figures. The ratio of two scores therefore does not depend on
other variants, and with equal weights, half the size makes up for twice the time. The total time per day of a user's
operations can be one of the figures. Uncertainty is estimated only from the rounds, by a bootstrap and by the intervals
of ratios.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench_runner.results.statistics import FEWEST_ROUNDS, Interval, Ratio, Ratios, median_interval
from bench_runner.variants import Variant
from reports.analysis.recommendation.baseline import ALWAYS, Baseline, ratios
from reports.analysis.recommendation.candidates import FIGURES, OPENING, Candidate, is_cold
from reports.analysis.recommendation.daily_time import time_a_day
from reports.analysis.recommendation.preferences import USE, Preferences
from reports.analysis.recommendation.round_effect import without_round_effect

DRAWS = 4_000
"""Number of bootstrap draws. The standard error of a probability is at most 0.008."""
CONTENDS = 2.0
"""Variants whose score is at most this multiple of the best score are contenders. Probabilities are reported only if
all contenders have enough rounds."""
FEWEST_READS, MOST_READS = 0.01, 1_000.0
"""Break-evens over the number of reads per save are reported within this range."""
SLOWEST, FASTEST = 1e6, 1e10
"""Break-evens over the bandwidth in bytes per second are reported within this range, from a distant server to local
NVMe."""
WHOLE_TIMES = ("read", "save")
MOST_OF_TIED = 0.975
"""Largest reported probability that the first variant is the best, if another variant is tied with it. A tie means that
the 95 % interval leaves at least 2.5 % for the other variant. A larger probability would contradict this."""
TIME = "time"
"""Name of the figure for the time of one save and its reads, if the user gives the number of reads."""


@dataclass(frozen=True, eq=False)
class Ranked:
    """One ranked variant."""

    candidate: Candidate
    values: Mapping[str, float]
    """Medians of the figures that have a weight, in ns or bytes."""
    ratios: Mapping[str, float]
    """The figures of `values` as multiples of the best figure among the variants of the comparison, normally those that
    may be recommended."""
    score: float
    """The score as a multiple of the first variant's score."""
    against_first: Ratio | None
    """Ratio of the score to the first variant's score, with an interval. The two variants are tied if the interval
    contains 1."""
    probability: float | None
    """Probability that this variant is the best one that may be recommended, from bootstrap draws of rounds. None if
    there are too few rounds, and for variants that may not be recommended."""
    on_frontier: bool
    """Whether the variant is on the Pareto frontier: no other variant is at least as good in every figure with a weight
    and better in one."""


@dataclass(frozen=True)
class BreakEven:
    """The number of reads per save, or the bandwidth, at which the fastest variant changes from `first` to `then`.
    Fastest means the shortest time for a save and its reads."""

    of: str
    """'reads' per save, or 'bandwidth' in bytes per second."""
    first: Variant
    """The fastest variant from `since` to this point."""
    then: Variant
    """The fastest variant from this point to `until`."""
    at: Interval
    since: float | None = None
    """Where `first` becomes the fastest, in the unit of `at`. None if no variant is faster at smaller values."""
    until: float | None = None
    """Where another variant becomes faster than `then`. None if no variant does."""


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The variants that were ranked and those that were left out. `ranked` is empty if no variant of an accepted
    maturity meets the user's needs."""

    preferences: Preferences
    ranked: tuple[Ranked, ...]
    """Variants that may be recommended, best first."""
    dropped: tuple[tuple[Variant, str], ...]
    """Variants that were left out, each with the reason."""
    break_evens: tuple[BreakEven, ...]
    """Break-evens between the ranked variants."""
    not_accepted: tuple[Ranked, ...] = ()
    """Variants that have everything the user requires except an accepted maturity, best first. Their scores are
    multiples of the score of the first ranked variant. If no variant is ranked, they are multiples of the first score
    in this tuple."""
    baseline: Baseline | None = None
    """The user's current variant, if it was measured."""

    @property
    def tied(self) -> tuple[Ranked, ...]:
        """The first variant, and those tied with it."""
        return tuple(
            each
            for place, each in enumerate(self.ranked)
            if place == 0 or (each.against_first is not None and each.against_first.tied)
        )


def weighed(candidate: Candidate, preferences: Preferences) -> dict[str, dict[int, float]]:
    """Return the figures that have a weight, by round. If the user gives a bandwidth, the times of save and read
    include the transfer. If the user gives the number of reads per save, save and reads are one figure."""
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
    """Return all figures by round. If the user gives a bandwidth, the times of save and read include the transfer of
    the stored bytes."""
    figures = {name: dict(values) for name, values in candidate.figures.items()}
    if preferences.bandwidth_bytes_per_s is not None:
        transfer_ns = statistics.median(figures["size"].values()) / preferences.bandwidth_bytes_per_s * 1e9
        for name in WHOLE_TIMES:
            figures[name] = {number: value + transfer_ns for number, value in figures[name].items()}
    return figures


def weights(preferences: Preferences) -> dict[str, float]:
    """Return the positive weights, divided by their sum. With `reads_per_save`, the weights of read and save are added
    up as the weight of TIME."""
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
    """Rank the eligible candidates. Candidates that may be recommended are ranked separately from the others.

    `baseline` is the user's current variant, which may be one of the candidates.
    """
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


def against(candidates: Sequence[Candidate], rival: Candidate, preferences: Preferences) -> tuple[Ranked, ...]:
    """Return the candidates, best first, with figures and scores relative to those of `rival`."""
    return _ranked(candidates, [rival], preferences, {})


def _ranked(
    candidates: Sequence[Candidate],
    among: Sequence[Candidate],
    preferences: Preferences,
    probabilities: Mapping[Variant, float],
) -> tuple[Ranked, ...]:
    """Return the candidates, best first. Figures are relative to the best figure of `among`, and scores to the best
    score of `among`."""
    if not candidates:
        return ()
    shares = weights(preferences)
    figures = {candidate.variant: weighed(candidate, preferences) for candidate in (*among, *candidates)}
    values = {variant: _medians(own) for variant, own in figures.items()}
    scores = {variant: _score(own, shares) for variant, own in values.items()}
    rivals = [candidate.variant for candidate in among]
    first = min(rivals, key=lambda variant: (scores[variant], variant))
    best = {name: min(values[variant][name] for variant in rivals) for name in shares}
    by_round = {variant: _scores_by_round(own, shares) for variant, own in figures.items()}
    relative = Ratios(by_round, exact={*shares} == {"size"})
    return tuple(
        Ranked(
            candidate=candidate,
            values=values[candidate.variant],
            ratios={name: values[candidate.variant][name] / best[name] for name in shares},
            score=scores[candidate.variant] / scores[first],
            against_first=relative.of(candidate.variant, first),
            probability=probabilities.get(candidate.variant),
            on_frontier=not any(
                _dominates(values[other], values[candidate.variant]) for other in rivals if other != candidate.variant
            ),
        )
        for candidate in sorted(candidates, key=lambda candidate: (scores[candidate.variant], candidate.variant))
    )


def _without_contradiction(ranked: tuple[Ranked, ...]) -> tuple[Ranked, ...]:
    """Limit the probability of the first variant to MOST_OF_TIED if another variant is tied with the first."""
    first = next(iter(ranked), None)
    tied = any(each.against_first is not None and each.against_first.tied for each in ranked[1:])
    if first is None or first.probability is None or not tied:
        return ranked
    return (replace(first, probability=min(first.probability, MOST_OF_TIED)), *ranked[1:])


def compared(candidate: Candidate, first: Candidate | None, preferences: Preferences) -> Baseline:
    """Return the user's current variant, compared with the first ranked variant."""
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
    """Return the candidates with times corrected for the speed of each round, so that candidates with different rounds
    can be compared. Sizes and memory are unchanged, because they do not depend on the speed of a round."""
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
    """Return the share of bootstrap draws in which each variant has the best score.

    A draw takes rounds with replacement. All variants use the same rounds of a draw. If a variant was not measured in
    some of them, only its measured rounds are used. Return an empty result if a contender has too few rounds.
    """
    if not figures:
        return {}
    rounds = sorted({number for own in figures.values() for by_round in own.values() for number in by_round})
    medians = {variant: _score(_medians(own), shares) for variant, own in figures.items()}
    contenders = [variant for variant, score in medians.items() if score <= CONTENDS * min(medians.values())]
    if not all(_is_known(*item) for variant in contenders for item in figures[variant].items()):
        return {}
    generator = np.random.default_rng(0)
    drawn = generator.integers(0, len(rounds), (DRAWS, len(rounds)))
    scores = np.stack([_drawn_scores(own, shares, rounds, drawn) for own in figures.values()])
    wins = np.bincount(scores.argmin(axis=0), minlength=len(figures)) / DRAWS
    return dict(zip(figures, wins.tolist(), strict=True))


def _is_known(name: str, by_round: Mapping[int, float]) -> bool:
    return len(by_round) >= FEWEST_ROUNDS or (name == "size" and len({*by_round.values()}) == 1)


def _drawn_scores(
    figures: Mapping[str, Mapping[int, float]], shares: Mapping[str, float], rounds: Sequence[int], drawn: np.ndarray
) -> np.ndarray:
    """Return the logarithm of a variant's score in each draw of rounds. If the variant was measured in none of the
    drawn rounds, its median is used."""
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
    """Return the same as `np.nanmedian(values, axis=1)`, but five times as fast. The speed matters, because every round
    calls this function."""
    ordered = np.sort(values, axis=1)
    counts = (~np.isnan(values)).sum(axis=1, keepdims=True)
    middle = np.concatenate([(counts - 1) // 2, counts // 2], axis=1)
    return np.asarray(np.take_along_axis(ordered, middle, axis=1).mean(axis=1))


# --- where the best variant changes ------------------------------------------------------------------------------


def _break_evens(kept: Sequence[Candidate], preferences: Preferences) -> list[BreakEven]:
    """Return the points at which the fastest variant changes, for two quantities: the number of reads per save, and the
    bandwidth of the storage. Weights are not used.

    Return an empty list if operations other than saving and reading everything have a weight. Cold reads have no
    break-evens over the bandwidth, because their times already include the device.
    """
    if preferences.uses or preferences.weighed_parts:
        return []
    transfer = preferences.bandwidth_bytes_per_s
    per_byte = 0.0 if transfer is None else 1e9 / transfer
    by_reads = {
        candidate.variant: {
            number: (_line_of(candidate, number, per_byte, "save"), _line_of(candidate, number, per_byte, "read"))
            for number in _counted_in_full(candidate)
        }
        for candidate in kept
    }
    found = [
        BreakEven("reads", first, then, at, since or None, until)
        for first, then, at, since, until in _envelope(by_reads)
        if FEWEST_READS <= at.median <= MOST_READS and _is_between(at.median, since, until)
    ]
    if any(is_cold(cell.cell.conditions) for candidate in kept for cell in candidate.cells.values()):
        return found
    reads = preferences.reads_per_save or 1.0
    by_slowness = {
        candidate.variant: {
            number: (
                candidate.figures["save"][number] + reads * candidate.figures["read"][number],
                (1 + reads) * candidate.figures["size"][number],
            )
            for number in _counted_in_full(candidate)
        }
        for candidate in kept
    }
    for first, then, at, since, until in _envelope(by_slowness):
        # The lines are functions of ns per byte, that is of the inverse of the bandwidth. The order of the two variants
        # is therefore reversed.
        bandwidth = _inverted(at)
        if SLOWEST <= bandwidth.median <= FASTEST and _is_between(at.median, since, until):
            slowest, fastest = (_flipped(place) if place else None for place in (until, since))
            found.append(BreakEven("bandwidth", then, first, bandwidth, slowest, fastest))
    return found


def _is_between(place: float, since: float | None, until: float | None) -> bool:
    """Return whether a crossing is between its neighbours. Crossings are medians over rounds, so noise can change their
    order."""
    return (since is None or since < place) and (until is None or place < until)


def _counted_in_full(candidate: Candidate) -> frozenset[int]:
    return frozenset.intersection(*(frozenset(candidate.figures[name]) for name in (*WHOLE_TIMES, "size")))


def _line_of(candidate: Candidate, number: int, per_byte_ns: float, name: str) -> float:
    return candidate.figures[name][number] + per_byte_ns * candidate.figures["size"][number]


def _inverted(at: Interval) -> Interval:
    """Convert an interval from ns per byte to bytes per second. Minimum and maximum change places."""
    low, high = (None if end is None else _flipped(end) for end in (at.high, at.low))
    return Interval(_flipped(at.median), low, high, _flipped(at.maximum), _flipped(at.minimum), at.rounds)


def _flipped(value: float) -> float:
    return math.inf if value == 0 else 1e9 / value


_Step = tuple[Variant, Variant, Interval, float | None, float | None]


def _envelope(lines: Mapping[Variant, Mapping[int, tuple[float, float]]]) -> list[_Step]:
    """Return each point at which another line becomes the lowest, as (variant before, variant after, x, previous x,
    next x). The previous x is None for the first point, the next x for the last. Only x >= 0 is searched.

    For each variant and round, `lines` has the line's value at 0 and its slope. Medians over rounds decide which line
    is lowest. The x of a crossing is computed in each round that both variants have.
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
    changes: list[tuple[Variant, Variant, float, Interval | None]] = []
    while True:
        crossings = [
            (_crossing(medians[current], medians[name]), medians[name][1], name)
            for name in medians
            if medians[name][1] < medians[current][1]
        ]
        ahead = [crossing for crossing in crossings if crossing[0] >= place]
        if not ahead:
            break
        place, _, following = min(ahead)
        common = lines[current].keys() & lines[following].keys()
        crossed = [
            _crossing(lines[current][number], lines[following][number])
            for number in sorted(common)
            if lines[following][number][1] < lines[current][number][1]
        ]
        # A crossing is reported only if the lines cross in most rounds.
        most = 2 * len(crossed) > len(common)
        at = median_interval([max(value, 0.0) for value in crossed]) if most else None
        changes.append((current, following, place if at is None else at.median, at))
        current = following
    ends = [None, *(x for _, _, x, _ in changes), None]
    return [
        (before, after, at, ends[number], ends[number + 2])
        for number, (before, after, _, at) in enumerate(changes)
        if at is not None
    ]


def _crossing(one: tuple[float, float], other: tuple[float, float]) -> float:
    return (other[0] - one[0]) / (one[1] - other[1])
