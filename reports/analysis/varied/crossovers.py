"""Find the value of a parameter at which the winner changes, with its interval.

The winner is the variant with the best figure. The winner changes if it is clearly ahead of another variant at one
value and clearly behind this other variant at a larger value. Two figures of the same round are divided, and the
interval of this ratio decides. Variants are compared at several values. Each comparison therefore has a stricter level,
so that the confidence over all values together is 95 % (Bonferroni).

In each round, linear interpolation between the measured values gives the point where the figures of both variants are
equal. The reported interval is that of the median over rounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench_runner.results.statistics import FEWEST_ROUNDS, LEVEL, Interval, median_interval, ratio_interval
from bench_runner.variants import Variant

ByRound = Mapping[int, float]


@dataclass(frozen=True)
class Point:
    """The measurements at one value of the parameter. `figures` maps variant -> round -> figure, in one unit."""

    value: float
    figures: Mapping[Variant, ByRound]


@dataclass(frozen=True)
class Change:
    """A change of the winner from `before`, which is better at smaller values, to `after`."""

    before: Variant
    after: Variant
    ahead_at: float
    """The last measured value at which `before` is clearly ahead."""
    behind_at: float
    """The first value after `ahead_at` at which `before` is clearly behind."""
    at: Interval | None
    """The value at which both variants are equal. None if fewer than five rounds have figures of both variants at all
    values from `ahead_at` to `behind_at`."""


@dataclass(frozen=True)
class Behind:
    """A change of the winner from a tie. From the value `since` on, `after` is clearly ahead of `before`. At smaller
    values, the two are tied, and no variant is clearly better than `before`."""

    before: Variant
    after: Variant
    since: float


@dataclass(frozen=True)
class Crossovers:
    """Which variant is the best along the axis, and where this changes."""

    first: Variant
    """The best variant at the first value."""
    equals: tuple[Variant, ...] = ()
    """Other variants that are never clearly behind the best. Empty if the winner changes."""
    found: tuple[Change | Behind, ...] = ()
    told: bool = True
    """Whether there are enough rounds for a verdict."""


def crossovers(points: Sequence[Point], *, logarithmic: bool) -> Crossovers | None:
    """Return where the winner changes. Only variants that have a figure at every value are compared. Return None if
    there is no such variant, or only one value.

    `logarithmic` selects the scale of the parameter's values for interpolation. The interpolation always uses the
    logarithm of the figures.
    """
    named = [name for name in points[0].figures if all(point.figures.get(name) for point in points)] if points else []
    if len(points) < 2 or not named:
        return None
    bests = [min(named, key=lambda name: (_median(point.figures[name]), name)) for point in points]
    rounds = min(len(point.figures[name]) for point, best in zip(points, bests, strict=True) for name in {best})
    if rounds < FEWEST_ROUNDS:
        return Crossovers(bests[0], told=False)
    level = 1 - (1 - LEVEL) / len(points)
    leader, since = bests[0], 0
    found: list[Change | Behind] = []
    for place, best in enumerate(bests):
        if _sure(points[place], leader, best, level) <= 0:
            continue
        ahead = [earlier for earlier in range(since, place) if _sure(points[earlier], leader, best, level) < 0]
        if ahead:
            between = points[ahead[-1] : place + 1]
            at = _crossing(between, leader, best, logarithmic)
            found.append(Change(leader, best, between[0].value, between[-1].value, at))
        elif all(_sure(point, leader, best, level) > 0 for point in points[place:]):
            found.append(Behind(leader, best, points[place].value))
        else:
            continue
        leader, since = best, place
    equals = [
        name
        for name in named
        if name != leader
        and all(_sure(point, name, best, level) <= 0 for point, best in zip(points, bests, strict=True))
    ]
    return Crossovers(bests[0], tuple(equals) if not found else (), tuple(found))


def _median(figures: ByRound) -> float:
    return median_interval(list(figures.values())).median


def _sure(point: Point, one: Variant, other: Variant, level: float) -> int:
    """Return -1 if `one` is clearly ahead of `other`, 1 if `one` is clearly behind, and 0 if the two variants are
    tied."""
    ratio = ratio_interval(point.figures[one], point.figures[other], level=level)
    if one == other or ratio is None or ratio.low is None or ratio.high is None:
        return 0
    return -1 if ratio.high < 1 else 1 if ratio.low > 1 else 0


def _crossing(points: Sequence[Point], one: Variant, other: Variant, logarithmic: bool) -> Interval | None:
    """Return the value, with its interval, at which `one` stops being ahead of `other`. This value is between the first
    and the last point. Return None if there are too few common rounds.

    Only rounds in which both variants have a figure at all points are used. In simulations with seven rounds, this
    interval contained the true value in 98 of 100 cases. The interval of a bootstrap contained it in only 88 to 94
    cases.
    """
    common = set.intersection(*(set(point.figures[name]) for point in points for name in (one, other)))
    places = [math.log(point.value) if logarithmic else point.value for point in points]
    if len(common) < FEWEST_ROUNDS:
        return None
    crossed = []
    for number in sorted(common):
        lead = [math.log(point.figures[one][number] / point.figures[other][number]) for point in points]
        crossed.append(places[0] + _length_below_zero(places, lead))
    return median_interval([math.exp(place) if logarithmic else place for place in crossed])


def _length_below_zero(places: Sequence[float], heights: Sequence[float]) -> float:
    """Return the length of the axis over which the line through these points is below zero. If the line crosses zero
    once, this length is the distance from the beginning to the crossing."""
    length = 0.0
    for start, end, left, right in zip(places, places[1:], heights, heights[1:], strict=False):
        if max(left, right) <= 0:
            length += end - start
        elif min(left, right) < 0:
            length += (end - start) * min(left, right) / (min(left, right) - max(left, right))
    return length
