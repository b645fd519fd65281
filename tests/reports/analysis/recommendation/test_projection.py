"""Projection to the whole from two sizes of the same data: known lines come back, despite noise."""

from __future__ import annotations

import random

import pytest

from reports.analysis.recommendation.projection import Measured, Projection, project


def line(rows: int, fixed: float, per_row: float, rounds: int = 7, noise: float = 0.0, seed: int = 1) -> Measured:
    source = random.Random(f"{rows} {seed}")
    return Measured(
        rows,
        {number: (fixed + per_row * rows) * (1 + source.uniform(-noise, noise)) for number in range(1, rounds + 1)},
    )


def projected(smaller: Measured, larger: Measured, rows: int) -> Projection:
    found = project(smaller, larger, rows)
    assert found is not None
    return found


def test_a_line_without_noise_is_found_exactly() -> None:
    found = projected(line(250_000, 5e6, 100), line(1_000_000, 5e6, 100), 40_000_000)
    assert found.fixed.median == pytest.approx(5e6)
    assert found.per_row.median == pytest.approx(100)
    assert found.value.median == pytest.approx(5e6 + 100 * 40_000_000)
    assert found.value.low == pytest.approx(found.value.high)


def test_the_interval_holds_the_truth_despite_noise() -> None:
    truth = 2e7 + 80 * 20_000_000
    held = 0
    for seed in range(200):
        found = projected(
            line(250_000, 2e7, 80, noise=0.05, seed=seed), line(1_000_000, 2e7, 80, noise=0.05, seed=seed), 20_000_000
        )
        assert found.value.low is not None
        assert found.value.high is not None
        held += found.value.low <= truth <= found.value.high
    assert held >= 190


def test_what_slows_a_whole_round_down_counts_once() -> None:
    """Paired by round: a round twice as slow is one line twice as steep, and not a fixed part out of nowhere."""
    small, large = line(100, 0, 10), line(200, 0, 10)
    slow = Measured(100, {**small.by_round, 4: 2000}), Measured(200, {**large.by_round, 4: 4000})
    found = projected(*slow, 1000)
    assert (found.fixed.minimum, found.fixed.maximum) == (0, 0)
    assert (found.value.median, found.value.maximum) == (10_000, 20_000)


def test_under_five_common_rounds_there_is_no_interval() -> None:
    found = projected(line(100, 1, 1, rounds=7), line(200, 1, 1, rounds=4), 300)
    assert (found.value.low, found.value.high, found.value.rounds) == (None, None, 4)
    assert projected(line(100, 1, 1, rounds=5), line(200, 1, 1, rounds=7), 300).value.low is not None


def test_a_negative_fixed_part_is_kept() -> None:
    found = projected(line(100, -50, 1), line(200, -50, 1), 1000)
    assert (found.fixed.median, found.value.median) == (-50, 950)


def test_more_rows_never_take_less_than_the_larger_sample() -> None:
    found = projected(Measured(100, {1: 50.0}), Measured(200, {1: 40.0}), 10_000)
    assert found.per_row.median < 0
    assert found.value.median == 40


def test_the_larger_size_itself_is_projected_to_what_it_took() -> None:
    assert projected(line(100, 3, 2), line(200, 3, 2), 200).value.median == 403


def test_without_a_common_round_there_is_none() -> None:
    assert project(Measured(100, {1: 1.0}), Measured(200, {2: 1.0}), 300) is None


@pytest.mark.parametrize(("small", "large", "rows"), [(200, 100, 300), (100, 100, 300), (0, 100, 300), (100, 200, 150)])
def test_sizes_out_of_order_are_refused(small: int, large: int, rows: int) -> None:
    with pytest.raises(ValueError, match="do not lead to"):
        project(Measured(small, {1: 1.0}), Measured(large, {1: 1.0}), rows)
