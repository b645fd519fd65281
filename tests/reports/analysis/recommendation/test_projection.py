"""Projection to the whole data from samples of two sizes. Known straight lines are recovered, despite noise."""

from __future__ import annotations

import random

import pytest

from bench_runner.results.statistics import median_interval
from reports.analysis.recommendation.projection import projected


def line(
    rows: int, fixed: float, per_row: float, rounds: int = 7, noise: float = 0.0, seed: int = 1
) -> dict[int, float]:
    source = random.Random(f"{rows} {seed}")
    return {number: (fixed + per_row * rows) * (1 + source.uniform(-noise, noise)) for number in range(1, rounds + 1)}


def test_a_line_without_noise_is_found_exactly() -> None:
    found = projected(line(250_000, 5e6, 100), line(1_000_000, 5e6, 100), (250_000, 1_000_000, 40_000_000))
    assert list(found.values()) == pytest.approx([5e6 + 100 * 40_000_000] * 7)


def test_the_interval_holds_the_truth_despite_noise() -> None:
    truth = 2e7 + 80 * 20_000_000
    held = 0
    for seed in range(200):
        smaller, larger = (line(rows, 2e7, 80, noise=0.05, seed=seed) for rows in (250_000, 1_000_000))
        found = median_interval(list(projected(smaller, larger, (250_000, 1_000_000, 20_000_000)).values()))
        assert found.low is not None
        assert found.high is not None
        held += found.low <= truth <= found.high
    # For 200 repetitions at 95 %, two standard errors are 3 %.
    assert held >= 184


def test_a_slow_round_counts_once() -> None:
    """Sizes are paired by round. A round that is twice as slow gives a line that is twice as steep, not a higher fixed
    cost."""
    smaller, larger = {**line(100, 0, 10), 4: 2000}, {**line(200, 0, 10), 4: 4000}
    assert projected(smaller, larger, (100, 200, 1000)) == {**dict.fromkeys(range(1, 8), 10_000), 4: 20_000}


def test_rounds_that_one_size_lacks_are_left_out() -> None:
    assert list(projected(line(100, 1, 1, rounds=7), line(200, 1, 1, rounds=4), (100, 200, 300))) == [1, 2, 3, 4]
    assert projected({1: 1.0}, {2: 1.0}, (100, 200, 300)) == {}


def test_a_fixed_part_may_be_negative() -> None:
    assert set(projected(line(100, -50, 1), line(200, -50, 1), (100, 200, 1000)).values()) == {950}


def test_more_rows_never_take_less_than_the_larger_sample() -> None:
    assert projected({1: 50.0}, {1: 40.0}, (100, 200, 10_000)) == {1: 40}


def test_the_larger_size_itself_is_projected_to_what_it_took() -> None:
    assert set(projected(line(100, 3, 2), line(200, 3, 2), (100, 200, 200)).values()) == {403}


@pytest.mark.parametrize("sizes", [(200, 100, 300), (100, 100, 300), (0, 100, 300), (100, 200, 150)])
def test_sizes_out_of_order_are_refused(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="must be above 0 and ascend"):
        projected({1: 1.0}, {1: 1.0}, sizes)
