"""Compute statistics of samples: medians with confidence intervals, ratios, rankings, and the drift of the machine.

Statistics are computed whenever samples are read, and never stored. Rules 13 and 15 to 17 of docs/method.md apply.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, lru_cache
from typing import Generic, TypeVar

from bench_runner.results.figures import FIGURES
from bench_runner.results.records import Cell, Failure, RunInfo, Sample, changed
from bench_runner.variants import VIEWS, Variant, variant_of

LEVEL = 0.95
"""Confidence level of intervals (rule 17)."""
_HALF_OUTSIDE = (1 - Fraction(str(LEVEL))) / 2
_MOST_EXACT = 2_500
"""Largest product of two sample sizes for which `shift_ratio` computes the limits of its interval exactly. Larger
samples use an approximation."""
FEWEST_ROUNDS = 5
"""Fewest rounds for the interval of a median. A ratio needs this many rounds for its numerator or for its denominator
(rule 17)."""
FEWEST_COMPARED = 3
"""Fewest rounds for both the numerator and the denominator of a ratio (rule 17)."""
DRIFT_LIMIT = 0.10
"""If the times of raw I/O change by more than this share over a run, the report has a warning (rule 16)."""
POSITION_LIMIT = 0.05
"""If late samples of a round differ from early samples by more than this share, the report has a warning (rule 15)."""
MEMORY_DISAGREEMENT = 0.05
"""Reports mark a variant if the peaks of private and of resident memory differ by more than this share. In this case,
part of one of the peaks is a mapped file (rule 13)."""
MISMATCH = "mismatch"
"""Kind of failure of an operation that returned other data than were stored."""
PROBE_ERRORS = 3
"""A memory figure is used if it is at least this multiple of the error of the memory probe (rule 13)."""
_FEWEST_FOR_POSITION = 20
_MOST_POLISHES = 20
_POLISHED = 1e-3
"""A median polish ends if no effect of a round changes by more than this (0.001 means 0.1 %)."""
_KEPT_SUMMARIES = 16


@dataclass(frozen=True, slots=True)
class Interval:
    """A median with its 95 % confidence interval from `low` to `high`, in the unit of the values. `low` and `high` are
    None with fewer than five values, unless the figure is exact."""

    median: float
    low: float | None
    high: float | None
    minimum: float
    maximum: float
    rounds: int

    @property
    def spread(self) -> tuple[float, float]:
        """The limits of the interval. Without an interval, the smallest and the largest value."""
        if self.low is None or self.high is None:
            return self.minimum, self.maximum
        return self.low, self.high


@dataclass(frozen=True, slots=True)
class Ratio:
    """The ratio of two figures, with its interval. `tied` is whether the interval contains 1, so that neither figure is
    clearly better. `tied`, `low` and `high` are None if there are too few rounds."""

    ratio: float
    low: float | None
    high: float | None
    rounds: int
    tied: bool | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CellSummary:
    """The summary of all samples of one cell (an operation on a data set with a variant)."""

    cell: Cell
    library: str
    figures: Mapping[str, Interval]
    """The interval of each figure, by its name in FIGURES. Intervals use the counted samples. For exact figures, such
    as sizes, they use all verified samples."""
    by_round: Mapping[str, Mapping[int, int]]
    """The values of each figure by round, as figure -> round -> value."""
    raw_io_multiple: Ratio | None
    """The time (wall_ns) as a multiple of the time of raw I/O, a plain write and read of the same bytes. None for raw
    I/O itself, and if raw I/O was not measured."""
    failures: tuple[Failure, ...]
    """The distinct failures, the most frequent first."""
    failed_rounds: int
    uncounted: int
    """Number of samples that did not fail but are ignored, because the machine was not at rest or the save was not
    verified."""
    fidelity: str | None
    fallback: str
    """Name of the replacement for a call that the library lacks, or ''. Cells with a replacement are not ranked."""
    losses: tuple[str, ...]
    codec: str | None
    warnings: tuple[str, ...]
    cached: bool = False
    """Whether the library served repeated calls from its own memory in a counted round. If so, the cell is not
    ranked."""
    wrong: bool = False
    """Whether an operation returned wrong data in a counted round. This also makes the save of that round invalid. If
    so, the cell is not ranked (rule 11)."""

    @property
    def is_ranked(self) -> bool:
        """Whether the cell takes part in rankings, if it has the figure. Not ranked are raw I/O, variants that return
        another kind of object, replacements for a missing call, calls served from a library's own memory, and cells
        with wrong data in a round."""
        variant = self.cell.variant
        return not (variant.is_raw_io or variant.is_apart or self.fallback or self.cached or self.wrong)

    @property
    def rounds(self) -> int:
        """Number of rounds with a time."""
        return len(self.by_round.get("wall_ns", {}))

    @property
    def cores_used(self) -> float | None:
        """Mean number of busy CPU cores: CPU time divided by wall time, as the median over rounds. None without
        figures."""
        cpu, wall = self.by_round.get("cpu_ns", {}), self.by_round.get("wall_ns", {})
        ratios = [cpu[number] / wall[number] for number in cpu.keys() & wall.keys() if wall[number]]
        return statistics.median(ratios) if ratios else None

    @property
    def memory_disagrees(self) -> bool:
        """Whether the peaks of private and of resident memory differ by more than MEMORY_DISAGREEMENT. Then mapped file
        pages are part of a peak."""
        private, resident = self.figures.get("peak_private_bytes"), self.figures.get("peak_rss_bytes")
        if private is None or resident is None:
            return False
        larger = max(private.median, resident.median)
        return larger > 0 and abs(private.median - resident.median) > MEMORY_DISAGREEMENT * larger


def median_interval(values: Sequence[float], *, exact: bool = False, level: float = LEVEL) -> Interval:
    """Return the median of `values` with its confidence interval of confidence level `level`.

    From six values on, each limit is interpolated between two neighbouring order statistics, so that coverage is close
    to `level` (Hettmansperger and Sheather, Confidence intervals based on interpolated order statistics, Statistics &
    Probability Letters 4, 1986). The limits equal those of `scipy.stats.mstats.median_cihs`, which is slow to import.
    With five values the interval is from minimum to maximum, which has a coverage of 93.75 %. The interval is also from
    minimum to maximum if there are too few values for `level`.

    Coverage was simulated with 12 % log-normal noise and one slow value in ten. With 7 values, it was 95.1 % at a
    half-width of 0.125 of the median. The interval of the sign test, which older versions used, had 98.7 % at a
    half-width of 0.189. Bootstrap intervals have too little coverage for so few values: with 7 values, the percentile
    and BCa methods had 86 to 88 %, and the basic method 66 to 83 %.

    With `exact` (see `Figure.exact`), equal values have an interval of width 0, even if there is only one value. Raises
    ValueError if `values` is empty.
    """
    if not values:
        raise ValueError("a median needs at least one value")
    ordered = sorted(values)
    count = len(ordered)
    low = high = None
    if exact and ordered[0] == ordered[-1]:
        low = high = ordered[0]
    elif count == FEWEST_ROUNDS:
        low, high = ordered[0], ordered[-1]
    elif count > FEWEST_ROUNDS:
        place, inner = _interpolation(count, level)
        low = inner * ordered[place] + (1 - inner) * ordered[place - 1]
        high = inner * ordered[-1 - place] + (1 - inner) * ordered[-place]
    return Interval(statistics.median(ordered), low, high, ordered[0], ordered[-1], count)


@cache
def _interpolation(count: int, level: float) -> tuple[int, float]:
    """Return (k, weight), from which both limits of the interval are computed. The lower limit is between the k-th and
    the (k+1)-th smallest value, and the upper limit between the k-th and the (k+1)-th largest value. `weight` is the
    weight of the (k+1)-th value. Probabilities are computed with integers, because a float cannot represent the
    probabilities for a thousand values."""
    half_outside, total = (1 - Fraction(str(level))) / 2, 2**count
    below = list(itertools.accumulate(math.comb(count, outside) for outside in range(count // 2 + 1)))
    outer = sum(tail <= half_outside * total for tail in below)
    if not outer:
        return 1, 0.0
    wide, narrow = (1 - 2 * Fraction(below[place], total) for place in (outer - 1, outer))
    share = float((wide - 1 + 2 * half_outside) / (wide - narrow))
    return outer, (count - outer) * share / (outer + (count - 2 * outer) * share)


def half_width(values: Sequence[float]) -> float | None:
    """Return half of the width of the confidence interval, divided by the median (0.05 means ±5 %). Return None if
    there is no interval."""
    interval = median_interval(values) if values else None
    if interval is None or interval.low is None or interval.high is None or interval.median <= 0:
        return None
    return (interval.high - interval.low) / 2 / interval.median


def ratio_interval(
    numerator: Mapping[int, float], denominator: Mapping[int, float], *, level: float = LEVEL
) -> Ratio | None:
    """Return the Ratio of `numerator` to `denominator`, which map rounds to values. The ratio is computed within each
    round, so that slow rounds cancel out, and the result is the median over rounds. Return None if no round has both
    values."""
    common = sorted(numerator.keys() & denominator.keys())
    ratios = [numerator[number] / denominator[number] for number in common if denominator[number] > 0]
    if not ratios:
        return None
    interval = median_interval(ratios, level=level)
    tied = None if interval.low is None or interval.high is None else interval.low <= 1 <= interval.high
    return Ratio(interval.median, interval.low, interval.high, interval.rounds, tied)


@dataclass(frozen=True, slots=True)
class Shift:
    """The ratio of the values of two statistical samples, with its 95 % interval from `low` to `high`. `low` and `high`
    are None unless one sample has at least five values and the other at least three."""

    ratio: float
    low: float | None
    high: float | None


def shift_ratio(after: Sequence[float], before: Sequence[float]) -> Shift | None:
    """Return the ratio of `after` to `before`, two unpaired statistical samples of positive values, as a Shift.

    The result is the median of the ratios of every value in `after` to every value in `before`. Its interval contains
    the ratios that the Mann-Whitney test does not reject (Hodges and Lehmann 1963; Conover, Practical Nonparametric
    Statistics, section 5.4), and is exact for every distribution. Zeros in `before` are ignored, because a ratio to 0
    does not exist. Return None if `after` or `before` has no value.
    """
    before = [early for early in before if early > 0]
    ratios = sorted(late / early for late in after for early in before)
    if not ratios:
        return None
    low = high = None
    outside = _ratios_outside(len(after), len(before))
    few, many = sorted((len(after), len(before)))
    if outside >= 0 and few >= FEWEST_COMPARED and many >= FEWEST_ROUNDS:
        low, high = ratios[outside], ratios[-1 - outside]
    return Shift(statistics.median(ratios), low, high)


@cache
def _ratios_outside(one: int, other: int) -> int:
    """Return how many of the sorted ratios are below the interval. The same number of ratios is above the interval.
    This is the critical value of Mann and Whitney's U for samples of `one` and `other` values, which have one * other
    ratios. For large samples the normal approximation is used. The approximation gives the same number for 50 and 50
    values or more, and 0.2 % fewer ratios for 5 and 500 values."""
    if one * other > _MOST_EXACT:
        deviation = math.sqrt(one * other * (one + other + 1) / 12)
        return math.floor(one * other / 2 - statistics.NormalDist().inv_cdf(1 - float(_HALF_OUTSIDE)) * deviation)
    allowed = _HALF_OUTSIDE * math.comb(one + other, one)
    return sum(cumulated <= allowed for cumulated in itertools.accumulate(_rank_sums(one, other))) - 1


def _rank_sums(one: int, other: int) -> list[int]:
    """Return a list: item k is the number of orderings of two samples for which U is k. These numbers are the
    coefficients of the Gaussian binomial, which is computed here factor by factor (Conover, section 5.1)."""
    counts = [1] + [0] * (one * other)
    for factor in range(1, other + 1):
        for place in range(len(counts) - 1, one + factor - 1, -1):
            counts[place] -= counts[place - one - factor]
        for place in range(factor, len(counts)):
            counts[place] += counts[place - factor]
    return counts


def summarise(samples: Iterable[Sample]) -> dict[Cell, CellSummary]:
    """Return a summary of each cell (an operation on a data set with a variant), in the order in which the cells first
    appear.

    A sample counts if the machine was at rest, the result was verified, and the sample is not from the pilot round. A
    save counts if, in the same round, an operation that reads all of the saved data passed. If a round was measured
    again after a resume, only the later measurement counts. The pilot round provides reasons for failures but no
    figures. Samples that the user did not request are ignored.
    """
    return dict(_summaries(_These(tuple(samples))))


class _These:
    """A tuple of samples that is hashed and compared by identity. Comparing the samples of a large run by value takes
    longer than summarising them."""

    def __init__(self, samples: tuple[Sample, ...]) -> None:
        self.samples = samples

    def __hash__(self) -> int:
        return id(self.samples)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _These) and self.samples is other.samples


@lru_cache(maxsize=_KEPT_SUMMARIES)
def _summaries(these: _These) -> dict[Cell, CellSummary]:
    samples = these.samples
    verified = {_chain(sample) for sample in samples if sample.saw_all and sample.failure is None}
    wrong = {_chain(sample) for sample in samples if _kind(sample) == MISMATCH}
    grouped: dict[Cell, list[Sample]] = defaultdict(list)
    for sample, cell in _with_full_rows([sample for sample in samples if not sample.in_service]):
        grouped[cell].append(sample)
    values = {cell: _by_round(group, verified) for cell, group in grouped.items()}
    yardsticks = {
        raw_io_cell(cell): figures["wall_ns"]
        for cell, figures in values.items()
        if cell.variant.is_raw_io and "wall_ns" in figures
        # In older runs, raw I/O reads everything even if an operation needs few rows. Such a time is no yardstick.
        if not any(sample.fallback for sample in grouped[cell])
    }
    return {cell: _summary(cell, group, values[cell], yardsticks, verified, wrong) for cell, group in grouped.items()}


def _summary(
    cell: Cell,
    group: Sequence[Sample],
    values: Mapping[str, Mapping[int, int]],
    yardsticks: Mapping[Cell, Mapping[int, int]],
    verified: set[tuple[object, ...]],
    wrong: set[tuple[object, ...]],
) -> CellSummary:
    rounds = [sample for sample in group if sample.round > 0]
    passed = _verified(group, verified)
    counted = [sample for sample in passed if sample.counted]
    failed = [sample for sample in rounds if sample.failure is not None]
    if not rounds:
        failed = [sample for sample in group if sample.failure is not None]
    yardstick = yardsticks.get(raw_io_cell(cell), {})
    return CellSummary(
        cell=cell,
        library=group[-1].library,
        figures={
            name: median_interval(list(numbers.values()), exact=FIGURES[name].exact) for name, numbers in values.items()
        },
        by_round=values,
        raw_io_multiple=None if cell.variant.is_raw_io else ratio_interval(values.get("wall_ns", {}), yardstick),
        failures=_most_frequent(sample.failure for sample in failed if sample.failure is not None),
        failed_rounds=len({sample.round for sample in failed}),
        uncounted=sum(sample.failure is None for sample in rounds) - len(counted),
        fidelity=_worst_fidelity(passed),
        fallback=next((sample.fallback for sample in group if sample.fallback), ""),
        losses=_distinct(loss for sample in passed for loss in sample.losses),
        codec=next((sample.codec for sample in passed if sample.codec), None),
        warnings=_distinct(warning for sample in rounds for warning in sample.warnings),
        cached=any(sample.cached for sample in counted),
        wrong=any(_chain(sample) in wrong for sample in failed if _kind(sample) in (MISMATCH, "skipped")),
    )


def _with_full_rows(samples: Sequence[Sample]) -> Iterable[tuple[Sample, Cell]]:
    """Yield each sample with its cell. Samples of a pilot round have fewer rows, but get the cell of the whole
    table."""
    full = {(sample.suite, sample.dataset, sample.machine): sample.rows for sample in samples if sample.round > 0}
    for sample in samples:
        rows = full.get((sample.suite, sample.dataset, sample.machine), sample.rows)
        yield sample, sample.cell if sample.round > 0 else replace(sample.cell, rows=rows)


def _chain(sample: Sample) -> tuple[object, ...]:
    return (sample.suite, sample.dataset, sample.rows, sample.variant, sample.conditions, sample.machine, sample.round)


def _kind(sample: Sample) -> str:
    return sample.failure.kind if sample.failure is not None else ""


def _verified(group: Sequence[Sample], verified: set[tuple[object, ...]]) -> list[Sample]:
    """Return the verified samples of counted rounds that did not fail, whether or not the machine was settled."""
    return [
        sample
        for sample in group
        if sample.round > 0 and sample.failure is None and (sample.fidelity is not None or _chain(sample) in verified)
    ]


def _by_round(group: Sequence[Sample], verified: set[tuple[object, ...]]) -> dict[str, dict[int, int]]:
    """Return the values of each figure by round. Exact figures are taken from all verified samples, other figures from
    counted samples only."""
    values: dict[str, dict[int, int]] = defaultdict(dict)
    for sample in _verified(group, verified):
        for name, value in sample.figures.items():
            if sample.counted or FIGURES[name].exact:
                values[name][sample.round] = value
    return dict(values)


def _worst_fidelity(samples: Sequence[Sample]) -> str | None:
    verdicts = {sample.fidelity for sample in samples} - {None}
    return max(verdicts, key=lambda verdict: verdict != "exact", default=None)


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def _most_frequent(failures: Iterable[Failure]) -> tuple[Failure, ...]:
    counts: dict[Failure, int] = defaultdict(int)
    for failure in failures:
        counts[failure] += 1
    return tuple(sorted(counts, key=lambda failure: -counts[failure]))


def raw_io_cell(cell: Cell) -> Cell:
    """Return the cell of raw I/O that is the yardstick of a cell.

    Raw I/O of tables always stores an Arrow table, so its cell has fixed values for the conditions `target`, `strings`
    and `track`. Images have two raw I/O variants: one returns arrays that own their memory, the other returns views.
    Most of the time for arrays that own their memory is needed to allocate this memory.
    """
    same = changed(cell.conditions, target="arrow", strings="str", track="plain")
    return replace(cell, variant=variant_of("raw-io of views" if VIEWS in cell.variant else "raw-io"), conditions=same)


def ranking(summaries: Iterable[CellSummary], figure: str, *, least: float = 0) -> dict[Cell, Ratio]:
    """Return the Ratio of each ranked cell to the cell with the best value of `figure`, best first (see `ranks`).

    Some cells are not ranked (see `CellSummary.is_ranked`). The passed cells must have the same operation, data set and
    conditions, and differ only in the variant. Values below `least`, which the memory probe cannot distinguish, are
    replaced by `least`.
    """
    values = {
        summary.cell: {number: max(value, least) for number, value in summary.by_round[figure].items()}
        for summary in summaries
        if summary.is_ranked and figure in summary.figures
    }
    return ranks(values, exact=FIGURES[figure].exact)


def ranks(values: Mapping[Key, Mapping[int, float]], *, exact: bool = False) -> dict[Key, Ratio]:
    """Return the Ratio of each key to the best key, which is first. The best key has the ratio 1 and is tied with
    itself. The others follow in the order of their medians. The arguments are those of `Ratios`.

    The best key has the lowest median, unless another key is clearly better in comparable rounds: a key may have the
    lowest median only because it was measured in fewer slow rounds.
    """
    names = sorted(
        (name for name, rounds in values.items() if rounds), key=lambda name: statistics.median(values[name].values())
    )
    if not names:
        return {}
    table = Ratios(values, exact=exact)
    best = names[0]
    # Of three keys with different rounds, each may be clearly better than the next, so no key is tried twice.
    tried = {best}
    while True:
        known = {name: ratio for name in names if (ratio := table.of(name, best)) is not None}
        better = [
            name for name, ratio in known.items() if ratio.tied is False and ratio.ratio < 1 and name not in tried
        ]
        if not better:
            break
        best = min(better, key=lambda name: known[name].ratio)
        tried.add(best)
    return {name: known[name] for name in (best, *known) if name in known}


Key = TypeVar("Key", bound=Hashable)


class Ratios(Generic[Key]):
    """Ratios between the values of one figure that were measured in the rounds of one run. The values are passed as key
    -> round -> value, where a key is a cell, for example.

    Ratios are not paired by round (see `shift_ratio`), because the values within a round hardly correlate on the
    machines examined (0 to 0.2). If whole rounds were slow, the effect of each round is estimated from the values of
    other keys, and removed if that makes the interval narrower. Without these effects, only rounds that both keys have
    are compared. In simulations of 7 rounds with 10 cells, coverage is 95 to 97 %, at most 5 % of equal cells are
    called different, and a difference by a factor of 1.3 is found in 76 % of cases. Ratios paired by round find this
    difference in 70 % of cases with the interval of `median_interval`, and in 46 % with the interval of the sign test.
    """

    FEWEST_OTHERS = 3
    """Smallest number of other keys from which the effect of a round is estimated. With fewer keys, the estimate would
    add noise."""
    LEAST_SHARE = 0.5
    """Another key takes part in the estimate if it has at least this share of the rounds of each of both keys. A key
    that has only the rounds of one of them does not show how these rounds differ from those of the other."""

    def __init__(self, values: Mapping[Key, Mapping[int, float]], *, exact: bool = False) -> None:
        """`exact` is whether the figure has no noise (see `Figure.exact`)."""
        self._values, self._exact = values, exact
        self._deviations = _deviations(values)

    def of(self, one: Key, other: Key) -> Ratio | None:
        """Return the Ratio of the key `one` to the key `other`. Return None if a key has no value, or if the median of
        `other` is 0."""
        ours, theirs = self._values[one], self._values[other]
        below = statistics.median(theirs.values() or [0])
        if not ours or below <= 0:
            return None
        common = ours.keys() & theirs.keys()
        if self._exact and len({*ours.values()}) == len({*theirs.values()}) == 1:
            ratio = statistics.median(ours.values()) / below
            return Ratio(ratio, ratio, ratio, len(common), ratio == 1)
        if one == other:
            known = len(common) >= FEWEST_ROUNDS
            return Ratio(1, 1, 1, len(common), True) if known else Ratio(1, None, None, len(common), None)
        found = [shift_ratio([ours[number] for number in common], [theirs[number] for number in common])]
        if (without := self._without_rounds(one, other)) is not None:
            found.append(shift_ratio(*without))
        intervals = [
            (each.high / each.low, each.ratio, each.low, each.high) for each in found if each and each.low and each.high
        ]
        if not intervals:
            return Ratio(statistics.median(ours.values()) / below, None, None, len(common), None)
        _, ratio, low, high = min(intervals)
        return Ratio(ratio, low, high, len(common), low <= 1 <= high)

    def _without_rounds(self, one: Key, other: Key) -> tuple[list[float], list[float]] | None:
        """Return the values of the keys `one` and `other` divided by the effects of their rounds, or None if an effect
        is unknown.

        The effect of a round is the median over other keys of how far the value in the round is from the level of the
        key. The keys `one` and `other` are excluded, so that the effects do not depend on the values to compare.
        """
        ours, theirs = self._values[one].keys(), self._values[other].keys()
        others = [
            found
            for key, found in self._deviations.items()
            if key not in (one, other)
            and all(len(found.keys() & rounds) >= self.LEAST_SHARE * len(rounds) for rounds in (ours, theirs))
        ]
        effects = {}
        for number in ours | theirs:
            told = [found[number] for found in others if number in found]
            if len(told) < self.FEWEST_OTHERS:
                return None
            effects[number] = math.exp(statistics.median(told))
        without = ([value / effects[at] for at, value in self._values[key].items()] for key in (one, other))
        return next(without), next(without)


def _deviations(values: Mapping[Key, Mapping[int, float]]) -> dict[Key, dict[int, float]]:
    """Return how far each value is from the level of its key, as a logarithm. Keys whose median is 0 are left out.

    If all keys have the same rounds, the level of a key is its median. Otherwise keys with other rounds would have
    other levels if some rounds are slow, so the levels are those of a median polish, which estimates the levels of keys
    and the effects of rounds in turn (Tukey, Exploratory Data Analysis, 1977, chapter 11).
    """
    found = {}
    for key, numbers in values.items():
        middle = statistics.median(numbers.values() or [0])
        if middle > 0:
            found[key] = {number: math.log(value / middle) for number, value in numbers.items() if value > 0}
    if len({frozenset(each) for each in found.values()}) <= 1:
        return found
    effects: dict[int, float] = {}
    for _ in range(_MOST_POLISHES):
        by_round: dict[int, list[float]] = defaultdict(list)
        for each in found.values():
            for at, deviation in each.items():
                by_round[at].append(deviation)
        before, effects = effects, {at: statistics.median(of) for at, of in by_round.items()}
        if all(abs(effects[at] - before.get(at, 0.0)) < _POLISHED for at in effects):
            break
        levels = {key: statistics.median(dev - effects[at] for at, dev in each.items()) for key, each in found.items()}
        found = {key: {at: dev - levels[key] for at, dev in each.items()} for key, each in found.items()}
    return found


def smallest_shown(info: RunInfo) -> int:
    """Return the smallest memory figure in bytes that is shown as a number. Reports show smaller figures as '< N MB'.
    The limit is three times the error of the run's memory probe, or 0 if the run did not record the error."""
    error_bytes = info.probe.error_bytes if info.probe else None
    return PROBE_ERRORS * error_bytes if error_bytes is not None else 0


@dataclass(frozen=True, slots=True)
class Effect:
    """A change of times as a share of the median. 0.1 means that later samples are 10 % slower, and -0.1 that later
    samples are 10 % faster."""

    operation: str
    machine: str
    change: float
    limit: float

    @property
    def warns(self) -> bool:
        """Whether the size of the change is above the limit."""
        return abs(self.change) > self.limit


def raw_io_drift(summaries: Iterable[CellSummary]) -> list[Effect]:
    """Return how much the times of raw I/O changed from the first to the last round, as one Effect for each operation
    and machine.

    For each raw I/O cell with at least five rounds, the change is Theil and Sen's slope, times the number of rounds
    that the cell spans, divided by the cell's median. The result is the median over the cells, so that one disturbed
    round or data set has no effect.
    """
    changes: dict[tuple[str, str], list[float]] = defaultdict(list)
    for summary in summaries:
        rounds = summary.by_round.get("wall_ns", {})
        if not summary.cell.variant.is_raw_io or len(rounds) < FEWEST_ROUNDS:
            continue
        slopes = [
            (late[1] - early[1]) / (late[0] - early[0])
            for early, late in itertools.combinations(sorted(rounds.items()), 2)
        ]
        span = max(rounds) - min(rounds)
        middle = summary.figures["wall_ns"].median
        if middle > 0:
            changes[summary.cell.operation, summary.cell.machine].append(statistics.median(slopes) * span / middle)
    return [Effect(*key, statistics.median(values), DRIFT_LIMIT) for key, values in changes.items()]


def position_effect(samples: Iterable[Sample]) -> list[Effect]:
    """Return how much late samples of a round differ from early samples, as one Effect for each operation and machine.

    Each counted time is divided by the median of its cell. A sample is late if its position in the round is greater
    than the cell's median position, and early if it is smaller. The Effect is the difference between the medians of
    late and of early samples. At least 20 late and 20 early samples are needed.
    """
    starts: dict[tuple[str, int], int] = {}
    cells: dict[Cell, list[tuple[int, int, int]]] = defaultdict(list)
    for sample in samples:
        key = (sample.machine, sample.round)
        starts[key] = min(starts.get(key, sample.position), sample.position)
        if sample.counted and "wall_ns" in sample.figures:
            cells[sample.cell].append((sample.round, sample.position, sample.figures["wall_ns"]))
    early: dict[tuple[str, str], list[float]] = defaultdict(list)
    late: dict[tuple[str, str], list[float]] = defaultdict(list)
    for cell, measured in cells.items():
        places = [place - starts[cell.machine, number] for number, place, _ in measured]
        usual_place = statistics.median(places)
        usual_time = statistics.median(time for _, _, time in measured)
        for place, (_, _, time) in zip(places, measured, strict=True):
            if place != usual_place and usual_time > 0:
                side = late if place > usual_place else early
                side[cell.operation, cell.machine].append(time / usual_time)
    return [
        Effect(*key, statistics.median(late[key]) - statistics.median(early[key]), POSITION_LIMIT)
        for key in early
        if min(len(early[key]), len(late.get(key, ()))) >= _FEWEST_FOR_POSITION
    ]


def kendall_tau(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """Return Kendall's tau-b of two rankings of the same items. It is 1 for equal rankings and -1 for reversed
    rankings. Return None with fewer than three items, or if all values of a ranking are equal."""
    if len(ours) < 3:
        return None
    from scipy.stats import kendalltau

    tau = float(kendalltau(ours, theirs).statistic)
    return None if math.isnan(tau) else tau


@dataclass(frozen=True, slots=True)
class Overall:
    """The geometric mean of each variant's ratios to the best variant, best variant first. `tables` are the tables over
    which the means are taken."""

    means: Mapping[Variant, float]
    tables: tuple[str, ...] = field(default=())


def overall(ratios: Mapping[Variant, Mapping[str, float]]) -> Overall:
    """Return the geometric mean of each variant's ratios to the best variant. `ratios` are given as variant -> table ->
    ratio.

    Only tables for which every variant has a ratio are used. Otherwise a format would profit from tables that it cannot
    store. Variants without any ratio are ignored.
    """
    present = {variant: tables for variant, tables in ratios.items() if tables}
    if not present:
        return Overall({})
    everywhere = set.intersection(*(set(tables) for tables in present.values()))
    shared = tuple(table for table in next(iter(present.values())) if table in everywhere)
    if not shared:
        return Overall({})
    means = {
        variant: statistics.geometric_mean(tables[table] for table in shared) for variant, tables in present.items()
    }
    return Overall(dict(sorted(means.items(), key=lambda item: item[1])), shared)
