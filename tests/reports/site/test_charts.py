"""Figures for the site's charts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench_runner.results.records import Conditions, RunInfo
from reports.site.charts import chart_data, powers
from reports.site.views import places, ratio_text
from tests.reports.factory import make_run, make_sample


@pytest.mark.parametrize(("unit", "scale"), [("ms", 1e6), ("s", 1e9)])
def test_the_line_of_raw_io_is_in_the_unit_of_its_bars(unit: str, scale: float) -> None:
    times = {"csv[engine=pandas]": 2 * scale, "raw-io": scale}
    samples = tuple(
        make_sample(
            variant=variant,
            conditions=Conditions(target="arrow" if variant == "raw-io" else "pandas"),
            figures={"wall_ns": int(wall_ns)},
        )
        for variant, wall_ns in times.items()
    )
    (place,) = places([replace(make_run(datasets=()), samples=samples, info=RunInfo(), fidelity=())])
    (bars,) = chart_data(place.tables[0])["bars"]
    assert (bars["unit"], bars["raw_io"], bars["rows"][0]["value"]) == (unit, 1, 2)


@pytest.mark.parametrize("unit_ns", [10**6, 10**9])
def test_points_of_codecs_lie_at_megabytes_and_the_unit_of_times(unit_ns: int) -> None:
    saved = make_sample(operation="save", figures={"wall_ns": 20 * unit_ns, "size_bytes": 5 * 10**6}, fidelity=None)
    read = make_sample(figures={"wall_ns": 7 * unit_ns})
    (place,) = places([replace(make_run(datasets=()), samples=(saved, read), info=RunInfo(), fidelity=())])
    found = [(row["size"], row["time"]) for each in chart_data(place.tables[0])["scatters"] for row in each["rows"]]
    assert found == [(5, 7), (5, 20)]


def test_a_logarithmic_axis_has_powers_of_ten_or_more_where_there_are_few() -> None:
    assert powers(2, 90) == [2, 5, 10, 20, 50]
    assert powers(0.003, 12) == [0.01, 0.1, 1, 10]


@pytest.mark.parametrize(("ratio", "text"), [(1, "1"), (1.126, "1.13"), (12.36, "12.4"), (1203.7, "1,204")])
def test_a_ratio_has_three_digits(ratio: float, text: str) -> None:
    assert ratio_text(ratio) == text
