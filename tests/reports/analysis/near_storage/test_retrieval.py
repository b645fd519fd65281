"""Retrieval rates match table 8.2 of the thesis, for each kind of mean."""

from __future__ import annotations

import pytest

from reports.analysis.near_storage.model import Curve
from reports.analysis.near_storage.retrieval import Band, buckets, expected, rate_per_month

SNOWSET = (
    *(Band(0, 0, 1.93), Band(0, 1, 91.11), Band(1, 2, 1.81), Band(2, 3, 0.93), Band(3, 4, 0.44)),
    *(Band(4, 5, 0.27), Band(5, 100, 3.51)),
)
THESIOS = (Band(0, 1, 99.99), Band(1, 100, 0.01))
V1 = Curve(1.5386, 110.9723, 1.0081, 1.8359, (0, 0, 0, 0))
V2 = Curve(1.5528, 1654.3002, 26.951, 1.5445, (0, 0, 0, 0))
CAPACITY_GB = 111_840


@pytest.mark.parametrize(
    ("curve", "bands", "gb_per_s", "per_month"),
    [
        (V1, SNOWSET, 54.673, 1284.70),
        (V2, SNOWSET, 88.011, 2068.08),
        (V1, THESIOS, 56.791, 1334.46),
        (V2, THESIOS, 60.727, 1426.95),
    ],
)
def test_table_8_2_of_the_thesis_comes_out(
    curve: Curve, bands: tuple[Band, ...], gb_per_s: float, per_month: float
) -> None:
    """The tolerance is 0.1 %, because the thesis prints only the sum of the queries above 5 %."""
    found = expected(curve, bands)
    assert found.mean == pytest.approx(gb_per_s, rel=1e-3)
    assert rate_per_month(found.mean, CAPACITY_GB) == pytest.approx(per_month, rel=1e-3)


def test_a_disk_that_is_read_whole() -> None:
    """This is R_disk of section 8.2. The thesis's formula lacks the factor of 12 months, but its result includes it."""
    assert rate_per_month(2.147484, CAPACITY_GB) == pytest.approx(50.46, abs=0.01)


def test_slow_queries_take_most_of_the_time_of_a_mix() -> None:
    """Half of the queries run at 1 GB/s, half at 99 GB/s. One query of each kind, 2 GB together, takes 1.0101 s."""
    found = expected(lambda percent: 99.0 if percent == 0 else 1.0, (Band(0, 0, 50), Band(99, 100, 50)))
    assert found.mean == 50
    assert found.sustained == pytest.approx(2 / (1 + 1 / 99))


def test_bands_become_whole_percents() -> None:
    found = buckets((Band(0, 0, 2), Band(0, 1, 90), Band(5, 9, 8)))
    assert found == {0: 2, 1: 90, 6: 2, 7: 2, 8: 2, 9: 2}
    assert sum(buckets(SNOWSET).values()) == pytest.approx(100)


def test_bands_that_are_not_all_queries_are_refused() -> None:
    with pytest.raises(ValueError, match=r"91\.11 %"):
        expected(V1, SNOWSET[1:2])
