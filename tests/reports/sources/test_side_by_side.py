"""Tables of our figures next to published ones."""

from __future__ import annotations

import pytest

from bench_runner.results.records import Conditions, cell_of
from bench_runner.results.statistics import Interval
from reports.sources.side_by_side import measured

CELL = cell_of("documents", "read", "cell", 10, "json-lines", Conditions(), "lab")


@pytest.mark.parametrize(
    ("interval", "told"),
    [
        (Interval(median=100, low=None, high=None, minimum=100, maximum=100, rounds=1), "1.00 n=1"),
        (Interval(median=100, low=None, high=None, minimum=90, maximum=120, rounds=3), "1.00 -10+20% n=3"),
        (Interval(median=100, low=95, high=105, minimum=90, maximum=120, rounds=7), "1.00 ±5%"),
    ],
)
def test_few_rounds_are_shown_with_a_figure(interval: Interval, told: str) -> None:
    entry = measured("1.00", interval, CELL)
    assert (entry.text, entry.cell) == (told, CELL)
