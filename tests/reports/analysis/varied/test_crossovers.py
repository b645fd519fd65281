"""The value at which the fastest variant changes is found where the data cross, and nowhere else."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import pytest

from reports.analysis.varied.crossovers import Behind, Change, Crossovers, Point, crossovers

VALUES = (1, 10, 100, 1_000, 10_000)
Lines = Mapping[str, Callable[[float], float]]
PLANTED: Lines = {
    "steep": lambda value: 100 * value**0.9,
    "flat": lambda value: 1_000 * value**0.4,
    "slow": lambda value: 9_000 * value**0.4,
}
"""Return points whose first two variants cross at 100."""


def points(lines: Lines, *, seed: int = 1, rounds: int = 7, noise: float = 0.05) -> list[Point]:
    source = random.Random(seed)
    return [
        Point(
            value,
            {
                name: {number: line(value) * source.lognormvariate(0, noise) for number in range(1, rounds + 1)}
                for name, line in lines.items()
            },
        )
        for value in VALUES
    ]


def of(measured: list[Point]) -> Crossovers:
    found = crossovers(measured, logarithmic=True)
    assert found is not None
    return found


def test_a_planted_crossing_is_found_with_an_interval_that_holds_it() -> None:
    holds = 0
    for seed in range(60):
        (change,) = of(points(PLANTED, seed=seed)).found
        assert isinstance(change, Change)
        assert (change.before, change.after) == ("steep", "flat")
        # The result is the last value at which the variant was clearly ahead, not the first.
        assert change.ahead_at == 10
        assert change.behind_at >= 1_000
        assert change.at is not None
        assert change.at.low is not None
        assert change.at.high is not None
        assert change.ahead_at <= change.at.low < change.at.median < change.at.high <= change.behind_at
        assert change.at.median == pytest.approx(100, rel=0.5)
        holds += change.at.low <= 100 <= change.at.high
    assert holds >= 54


def test_equal_lines_cross_nowhere() -> None:
    equal = {f"v{number}": PLANTED["flat"] for number in range(6)}
    found = [of(points(equal, seed=seed)) for seed in range(100)]
    assert sum(any(isinstance(each, Change) for each in one.found) for one in found) <= 2
    assert sum(any(isinstance(each, Behind) for each in one.found) for one in found) <= 10
    assert sum(len(one.equals) >= 4 for one in found) >= 80


def test_one_that_is_always_ahead_is_the_winner_everywhere() -> None:
    found = of(points({"flat": PLANTED["flat"], "slow": PLANTED["slow"]}))
    assert found == Crossovers("flat")


def test_two_crossings_are_found_one_after_the_other() -> None:
    lines = {**PLANTED, "flattest": lambda value: 20_000 * value**0.02}
    first, second = of(points(lines, noise=0.02)).found
    assert isinstance(first, Change)
    assert isinstance(second, Change)
    assert (first.after, second.before, second.after) == ("flat", "flat", "flattest")
    assert second.at is not None
    assert second.at.median == pytest.approx(20 ** (1 / 0.38), rel=0.2)


def test_a_variant_that_was_never_clearly_ahead_has_no_crossing() -> None:
    ratios = (0.98, 1.01, 0.99, 1.02, 0.97, 0.99, 1.01)
    measured = [
        Point(
            value,
            {
                "bends": {number: 100 * ratio * (3 if value > 500 else 1) for number, ratio in enumerate(ratios)},
                "flat": dict.fromkeys(range(len(ratios)), 100.0),
            },
        )
        for value in VALUES
    ]
    assert of(measured) == Crossovers("bends", found=(Behind("bends", "flat", 1_000),))


def test_under_five_rounds_there_is_no_verdict() -> None:
    found = of(points(PLANTED, rounds=4))
    assert (found.told, found.found) == (False, ())


def test_variants_without_a_figure_at_one_value_take_no_part() -> None:
    measured = points(PLANTED)
    del measured[3].figures["flat"]  # type: ignore[attr-defined]
    assert "flat" not in str(of(measured).found)
    for point in measured:
        point.figures.clear()  # type: ignore[attr-defined]
    assert crossovers(measured, logarithmic=True) is None


def test_too_few_common_rounds_give_the_values_between_alone() -> None:
    measured = points(PLANTED)
    for place, point in enumerate(measured):
        moved = {number + 5 * (place > 1): value for number, value in point.figures["steep"].items()}
        point.figures["steep"] = moved  # type: ignore[index]
        point.figures["flat"] = {number + 5 * (place > 1): value for number, value in point.figures["flat"].items()}  # type: ignore[index]
    (change,) = of(measured).found
    assert isinstance(change, Change)
    assert change.at is None
    assert change.ahead_at < 100 < change.behind_at


def test_values_with_a_zero_use_a_linear_scale() -> None:
    measured = [
        Point(value, {name: dict.fromkeys(range(7), 100 * 10 ** (sign * (value - 0.25))) for name, sign in signs})
        for value in (0.0, 0.5, 1.0)
        for signs in [(("rising", 1), ("falling", -1))]
    ]
    found = crossovers(measured, logarithmic=False)
    assert found is not None
    (change,) = found.found
    assert isinstance(change, Change)
    assert change.at is not None
    assert change.at.median == pytest.approx(0.25)
