"""The value at which the fastest variant changes is found where the data cross, and nowhere else."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import pytest

from bench_runner.results.statistics import ranks
from reports.analysis.varied.crossovers import Change, Crossovers, Point, Unclear, crossovers, wins_of

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
        point(
            value,
            {
                name: {number: line(value) * source.lognormvariate(0, noise) for number in range(1, rounds + 1)}
                for name, line in lines.items()
            },
        )
        for value in VALUES
    ]


def point(value: float, figures: Mapping[str, Mapping[int, float]]) -> Point:
    return Point(value, figures, wins_of(ranks(figures)))  # type: ignore[arg-type]


def changed(measured: list[Point], place: int, name: str, figures: Mapping[int, float]) -> None:
    """Replace the figures of a variant at one value. Empty figures remove the variant there."""
    of_point = {**measured[place].figures, name: figures}
    measured[place] = point(measured[place].value, {each: found for each, found in of_point.items() if found})  # type: ignore[misc]


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


def test_rounds_of_values_before_the_last_lead_do_not_matter() -> None:
    """At the first value, other rounds were counted than at all others."""
    measured = points(PLANTED)
    first = measured[0]
    later = {name: {number + 20: value for number, value in found.items()} for name, found in first.figures.items()}
    (change,) = of([point(first.value, later), *measured[1:]]).found
    assert isinstance(change, Change)
    assert change.at is not None
    assert change.at.median == pytest.approx(100, rel=0.5)


def test_equal_lines_cross_nowhere() -> None:
    equal = {f"v{number}": PLANTED["flat"] for number in range(6)}
    found = [of(points(equal, seed=seed)) for seed in range(100)]
    assert sum(any(isinstance(each, Change) for each in one.found) for one in found) <= 2
    assert sum(bool(one.winners) for one in found) >= 80


def test_one_that_is_always_ahead_is_the_winner_everywhere() -> None:
    found = of(points({"flat": PLANTED["flat"], "slow": PLANTED["slow"]}))
    assert found == Crossovers(best="flat", winners=("flat",))


def test_two_crossings_are_found_one_after_the_other() -> None:
    lines = {**PLANTED, "flattest": lambda value: 20_000 * value**0.02}
    first, second = of(points(lines, noise=0.02)).found
    assert isinstance(first, Change)
    assert isinstance(second, Change)
    assert (first.after, second.before, second.after) == ("flat", "flat", "flattest")
    assert second.at is not None
    assert second.at.median == pytest.approx(20 ** (1 / 0.38), rel=0.2)


def test_a_variant_that_was_never_clearly_ahead_has_no_crossing() -> None:
    """It is tied at smaller values with the variant that wins at every value."""
    ratios = (0.98, 1.01, 0.99, 1.02, 0.97, 0.99, 1.01)
    measured = [
        point(
            value,
            {
                "bends": {number: 100 * ratio * (3 if value > 500 else 1) for number, ratio in enumerate(ratios)},
                "flat": dict.fromkeys(range(len(ratios)), 100.0),
            },
        )
        for value in VALUES
    ]
    found = of(measured)
    assert (found.found, found.winners) == ((), ("flat",))


def test_under_five_rounds_there_is_no_verdict() -> None:
    assert of(points(PLANTED, rounds=4)) == Crossovers(undecided=VALUES)
    measured = points(PLANTED)
    for name in PLANTED:
        changed(measured, 3, name, dict(list(measured[3].figures[name].items())[:4]))
    assert of(measured) == Crossovers(undecided=(1_000,))


def test_a_variant_with_too_few_rounds_is_not_tied() -> None:
    lines = {"flat": PLANTED["flat"], "slow": PLANTED["slow"]}
    measured = points(lines)
    for place in (1, 4):
        changed(measured, place, "slow", dict(list(measured[place].figures["slow"].items())[:2]))
    assert of(measured) == Crossovers(best="flat", winners=("flat",), few_rounds={"slow": (10, 10_000)})
    for place in range(len(VALUES)):
        changed(measured, place, "slow", {1: 1e9})
    assert of(measured) == Crossovers(best="flat", winners=("flat",), few_rounds={"slow": VALUES})


def test_the_fastest_at_some_value_ends_the_range_of_another_although_it_lacks_a_figure_elsewhere() -> None:
    measured = points(PLANTED)
    changed(measured, 0, "flat", {})
    found = of(measured)
    (change,) = found.found
    assert isinstance(change, Change)
    assert (change.before, change.after) == ("steep", "flat")
    assert found.missing == {"flat": (1,)}
    changed(measured, 1, "flat", {})
    (unclear,) = of(measured).found
    assert unclear == Unclear("steep", (1, 10, 100), "flat", (1_000, 10_000))


def test_without_figures_or_competitors_there_is_no_winner() -> None:
    nothing = [Point(value, {}, {}) for value in VALUES]
    assert crossovers(nothing, logarithmic=True) is None
    assert crossovers([], logarithmic=True) is None
    assert crossovers(points({"flat": PLANTED["flat"]}), logarithmic=True) is None


def test_a_winner_is_never_clearly_behind_at_a_value_of_its_range() -> None:
    """Reports mark the best variant and those that are tied with it at each value."""
    equal = {f"v{number}": PLANTED["flat"] for number in range(6)}
    for lines in (equal, {**equal, **PLANTED}):
        for seed in range(100):
            measured = points(lines, seed=seed)
            found = of(measured)
            for winner in found.winners:
                assert all(each.wins[winner] for each in measured)  # type: ignore[index]
            for change in found.found:
                for each in measured:
                    if isinstance(change, Unclear):
                        winner = change.before if each.value in change.of_before else change.after
                        assert each.wins[winner] or each.value not in (*change.of_before, *change.of_after)  # type: ignore[index]
                    elif each.value in (change.ahead_at, change.behind_at):
                        assert each.wins[change.before if each.value == change.ahead_at else change.after]  # type: ignore[index]


def test_too_few_common_rounds_give_the_values_between_alone() -> None:
    measured = points(PLANTED)
    for place in (2, 3, 4):
        for name in PLANTED:
            figures = measured[place].figures[name]  # type: ignore[index]
            changed(measured, place, name, {number + 5: value for number, value in figures.items()})
    (change,) = of(measured).found
    assert isinstance(change, Change)
    assert change.at is None
    assert change.ahead_at < 100 < change.behind_at


def test_values_with_a_zero_use_a_linear_scale() -> None:
    measured = [
        point(value, {name: dict.fromkeys(range(7), 100 * 10 ** (sign * (value - 0.25))) for name, sign in signs})
        for value in (0.0, 0.5, 1.0)
        for signs in [(("rising", 1), ("falling", -1))]
    ]
    found = crossovers(measured, logarithmic=False)
    assert found is not None
    (change,) = found.found
    assert isinstance(change, Change)
    assert change.at is not None
    assert change.at.median == pytest.approx(0.25)
