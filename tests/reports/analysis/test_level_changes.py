"""Changes of a level in the history of runs: planted ones are found and dated, and chance seldom makes one."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from bench_runner.results.records import Run
from reports.analysis.level_changes import FEWEST_RUNS, LevelChange, level_changes, shifts
from tests.reports.factory import history_of_a_cell

CELLS = 400


def noisy(source: random.Random, *, step: float = 1.0, runs: int = 30) -> list[float]:
    """Return medians with 12 % of noise, one in ten slower, and those of the second half `step` times as large."""
    return [
        math.exp(source.gauss(0, 0.12))
        * (1 + (source.expovariate(2) if source.random() < 0.1 else 0))
        * (step if number >= runs // 2 else 1)
        for number in range(runs)
    ]


def test_one_cell_in_twenty_has_a_note_by_chance_and_four_of_five_changes_of_a_fifth_are_found() -> None:
    source = random.Random(1)
    false = sum(bool([*shifts(noisy(source))]) for _ in range(CELLS))
    found = sum(any(shift.ratio > 1 for _, shift in shifts(noisy(source, step=1.2))) for _ in range(CELLS))
    # Two standard errors of 400 cells are 2 % and 4 %.
    assert false / CELLS <= 0.05 + 0.02
    assert found / CELLS >= 0.80 - 0.04


def test_few_pages_of_many_equal_cells_have_a_note() -> None:
    source, pages, cells = random.Random(4), 20, 50
    noted = sum(any([*shifts(noisy(source), cells)] for _ in range(cells)) for _ in range(pages))
    assert noted <= 3


@pytest.mark.parametrize("step", [1.3, 1 / 1.3])
def test_a_clear_change_is_dated_and_its_ratio_has_an_interval(step: float) -> None:
    source = random.Random(2)
    ((place, shift),) = shifts([source.gauss(1, 0.01) * (step if number >= 7 else 1) for number in range(12)])
    assert place == 7
    assert shift.low is not None
    assert shift.high is not None
    assert shift.low < step < shift.high
    assert shift.ratio == pytest.approx(step, rel=0.03)


def test_each_of_two_changes_is_relative_to_the_level_before_it() -> None:
    values = [level + number % 3 * 0.001 for level in (1.0, 2.0, 1.0) for number in range(9)]
    assert [(place, round(shift.ratio, 1)) for place, shift in shifts(values)] == [(9, 2.0), (18, 0.5)]


@pytest.mark.parametrize(
    "values",
    [
        [1.0] * 12,
        # Beyond the interval, but no more than 5 %.
        [1 + number * 1e-4 for number in range(6)] + [1.04 + number * 1e-4 for number in range(6)],
        # A single slow run, and two.
        [*(1 + number % 4 * 0.01 for number in range(14)), 3.0],
        [*(1 + number % 4 * 0.01 for number in range(13)), 3.0, 3.1],
    ],
    ids=["equal", "small", "one outlier", "two outliers"],
)
def test_no_change(values: Sequence[float]) -> None:
    assert list(shifts(values)) == []


def changes(runs: Sequence[Run]) -> tuple[LevelChange, ...]:
    found = level_changes(runs).changes
    assert found is not None
    return found


def test_a_change_has_the_runs_around_it_and_the_versions_that_take_part_in_the_cell() -> None:
    runs = history_of_a_cell(12, slower_from=6)
    random.Random(3).shuffle(runs)
    (change,) = changes(runs)
    assert (change.before.info.commit, change.after.info.commit) == ("commit-5", "commit-6")
    assert (change.cell.operation, change.shift.ratio) == ("read", pytest.approx(1.5, rel=0.05))
    assert change.libraries == ("pyarrow 26.0.0 -> 26.1.0",)


def test_with_fewer_runs_there_is_no_note() -> None:
    few, enough = (level_changes(history_of_a_cell(count, slower_from=5)) for count in (FEWEST_RUNS - 1, FEWEST_RUNS))
    assert (few.cells, few.changes) == (0, ())
    assert enough.cells == 1
    assert len(enough.changes or ()) == 1


@pytest.mark.parametrize("other", [{"machine": "lab-2"}, {"dataset_digest": "77"}, {"rows": 5}, {"cpu": "another"}])
def test_runs_of_another_machine_or_other_data_are_another_series(other: dict[str, Any]) -> None:
    runs = history_of_a_cell(12, slower_from=6)
    moved = [*runs[:6], *history_of_a_cell(12, slower_from=6, **other)[6:]]
    assert level_changes(runs).cells == 1
    assert level_changes(moved).cells == 0


def test_without_ruptures_the_cells_are_counted_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ruptures", None)
    found = level_changes(history_of_a_cell(12, slower_from=6))
    assert (found.cells, found.changes) == (1, None)
