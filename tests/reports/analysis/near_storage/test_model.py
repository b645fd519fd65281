"""A fit recovers the parameters of the throughput curve with errors.

Points that do not determine a curve are rejected.
"""

from __future__ import annotations

import random

import pytest

from reports.analysis.near_storage.model import Curve, NoFit, Point, fit

PERCENTS = (0.0, 1.0, 10.0, 25.0, 50.0, 100.0)
V1 = (112.511, 56.801, 3.151, 1.707, 1.661, 1.624)
V2 = (1655.853, 60.738, 3.354, 1.805, 1.709, 1.715)


BUSY = [Point(0, 4.349), Point(1, 0.194), Point(10, 0.191), Point(50, 0.0688), Point(100, 0.0259)]


def points(values: tuple[float, ...]) -> list[Point]:
    return [Point(percent, value) for percent, value in zip(PERCENTS, values, strict=True)]


def of(curve: Curve, percents: tuple[float, ...] = PERCENTS) -> list[Point]:
    return [Point(percent, curve(percent)) for percent in percents]


@pytest.mark.parametrize(
    ("measured", "published", "fitted", "errors"),
    [
        (
            V1,
            (1.5386, 110.9723, 1.0081, 1.8359),
            (112.5109, 56.8014, 3.1219, 1.8365, 1.6222, 1.5620),
            (0.00, 0.00, -0.92, 7.59, -2.34, -3.82),
        ),
        (
            V2,
            (1.5528, 1654.3002, 26.951, 1.5445),
            (1655.8530, 60.7384, 3.3030, 1.9782, 1.6986, 1.6028),
            (0.00, 0.00, -1.52, 9.60, -0.61, -6.54),
        ),
    ],
)
def test_table_8_3_of_the_thesis_comes_out(
    measured: tuple[float, ...], published: tuple[float, ...], fitted: tuple[float, ...], errors: tuple[float, ...]
) -> None:
    curve = fit(points(measured))
    assert (curve.a, curve.b, curve.c, curve.d) == pytest.approx(published, rel=5e-4)
    table = curve.table(points(measured))
    assert [row.fitted_gb_per_s for row in table] == pytest.approx(fitted, abs=6e-5)
    assert [100 * row.relative_error for row in table] == pytest.approx(errors, abs=6e-3)


@pytest.mark.parametrize("known", [(1.5, 110.0, 1.0, 1.8), (0.4, 20.0, 30.0, 1.2), (2.0, 3000.0, 5.0, 1.0)])
def test_the_true_parameters_are_recovered(known: tuple[float, float, float, float]) -> None:
    curve = fit(of(Curve(*known, (0, 0, 0, 0))))
    assert (curve.a, curve.b, curve.c, curve.d) == pytest.approx(known, rel=1e-3)


def test_the_errors_match_the_noise() -> None:
    """Of 60 fits to the same curve with 0.5 % noise, most find each parameter within two standard errors."""
    known, rng, inside = Curve(1.5, 110.0, 1.0, 1.8, (0, 0, 0, 0)), random.Random(7), [0, 0, 0, 0]
    percents = (0.0, 0.3, 1.0, 2.0, 3.0, 5.0, 10.0, 25.0, 50.0, 100.0)
    for _ in range(60):
        noisy = [Point(point.percent, point.gb_per_s + rng.gauss(0, 0.1)) for point in of(known, percents)]
        curve = fit(noisy)
        for place, (value, true) in enumerate(
            zip((curve.a, curve.b, curve.c, curve.d), (1.5, 110.0, 1.0, 1.8), strict=True)
        ):
            inside[place] += abs(value - true) < 2 * curve.errors[place]
    assert all(count >= 50 for count in inside)


def test_the_order_of_points_does_not_matter() -> None:
    assert fit(points(V1)[::-1]) == fit(points(V1))


def test_at_0_percent_it_is_a_plus_b_whatever_the_power() -> None:
    assert Curve(1.0, 10.0, 3.0, 0.2, (0, 0, 0, 0))(0) == 11.0


FAST = [Point(0, 103.516), Point(1, 8.5729), Point(10, 1.7661), Point(25, 0.6592), Point(50, 0.3117)]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (points(V1)[:4], r"a curve needs at least 5 different selectivities \(got 4\)"),
        ([Point(1.0, 5.0)] * 9, r"a curve needs at least 5 different selectivities \(got 1\)"),
        ([*points(V1)[:-1], Point(100, 0.0)], r"a throughput above 0 \(got 100 % with 0 GB/s\)"),
        ([*points(V1)[:-1], Point(-1, 1.0)], r"must be at least 0 .* \(got -1 % with 1 GB/s\)"),
        ([Point(percent, 1.0 + percent) for percent in PERCENTS], "no curve|not fall"),
        ([Point(percent, 2.0) for percent in PERCENTS], "no curve|not fall"),
        # FAST has few queries and none of them is slow, so the curve would fall below 0 beyond the last query. BUSY is
        # from a busy machine: its throughput falls, but does not determine four parameters.
        (FAST, r"impossible: with its parameter a=-0\.\d+, "),
        (BUSY, r"5 points .* the error of b is too large, \d+ ± "),
    ],
)
def test_points_that_determine_no_curve_are_refused(bad: list[Point], reason: str) -> None:
    with pytest.raises(NoFit, match=reason):
        fit(bad)
