"""The rule that ends cells early finds a planted change of 10 %, reports hardly any other change, and saves rounds."""

from __future__ import annotations

import math
import random

import pytest
from scipy.stats import mannwhitneyu

from bench_runner.run.side_by_side import LOOK_ROUNDS
from reports.analysis.sequential import Decision, can_show_change, decision, deviations

MOST, CELLS = 240, 12


def test_the_statistic_is_mann_and_whitney_s() -> None:
    source = random.Random(1)
    after, before = ([float(source.randrange(30)) for _ in range(count)] for count in (25, 40))
    chance = mannwhitneyu(after, before, method="asymptotic", use_continuity=False).pvalue
    assert math.erfc(abs(deviations(after, before)) / math.sqrt(2)) == pytest.approx(chance, rel=0.02)
    assert deviations([2.0] * 9, [1.0] * 9) > 0 > deviations([1.0] * 9, [2.0] * 9)


def test_no_cell_is_unchanged_before_forty_rounds_and_the_last_round_decides() -> None:
    equal = [float(number) for number in range(20)]
    assert decision(equal, equal, MOST, CELLS) is Decision.OPEN
    assert decision(2 * equal, 2 * equal, MOST, CELLS) is Decision.SAME
    assert decision(equal, equal, 20, CELLS) is Decision.SAME
    assert decision([], equal, MOST, CELLS) is Decision.OPEN


@pytest.mark.parametrize(
    ("rounds", "most_rounds", "figures", "enough"),
    [
        (6, 6, 12, False),
        (7, 7, 12, True),
        (7, 7, 500, False),
        (11, 11, 500, True),
        (38, 240, 12, False),
        (39, 240, 12, True),
    ],
)
def test_too_few_rounds_decide_nothing(rounds: int, most_rounds: int, figures: int, enough: bool) -> None:
    """With six rounds even a tenfold slowdown is below the limit, so it must not count as 'no change'."""
    before = [1 + number / 1000 for number in range(rounds)]
    after = [10 * value for value in before]
    assert can_show_change(rounds, rounds, most_rounds, figures) is enough
    expected = Decision.CHANGED if enough else Decision.OPEN
    assert decision(after, before, most_rounds, figures) is expected


def test_more_figures_need_a_clearer_change() -> None:
    before = [float(number) for number in range(40)]
    after = [value + 11 for value in before]
    assert 3.0 < deviations(after, before) < 4.0
    assert decision(after, before, 40, CELLS) is Decision.CHANGED
    assert decision(after, before, 40, 5000) is Decision.SAME


@pytest.mark.slow
def test_a_planted_tenth_is_found_and_hardly_anything_else() -> None:
    """Each pair of runs has 12 cells, one of them 10 % slower. The noise is 14 %, and one sample in twenty is slow."""
    source = random.Random(3)
    pairs = 250
    found = false = rounds = 0
    for _ in range(pairs):
        wrongly = 0
        for cell in range(CELLS):
            factor = 1.1 if cell == 0 else 1.0
            after: list[float] = []
            before: list[float] = []
            told = Decision.OPEN
            while told is Decision.OPEN:
                after += [factor * _time(source) for _ in range(LOOK_ROUNDS)]
                before += [_time(source) for _ in range(LOOK_ROUNDS)]
                told = decision(after, before, MOST, CELLS)
            rounds += len(after)
            found += told is Decision.CHANGED and cell == 0
            wrongly += told is Decision.CHANGED and cell > 0
        false += wrongly > 0
    assert found / pairs >= 0.93
    assert false / pairs <= 0.05
    assert rounds / pairs / CELLS <= 70


def _time(source: random.Random) -> float:
    return math.exp(source.gauss(0, 0.14)) * (1 + (source.expovariate(2) if source.random() < 0.05 else 0))
