"""The figures that the site's charts are drawn from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench_runner.results.records import Conditions, RunInfo
from reports.site.charts import chart_data
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


@pytest.mark.parametrize(("ratio", "text"), [(1, "1"), (1.126, "1.13"), (12.36, "12.4"), (1203.7, "1,204")])
def test_a_ratio_has_three_digits(ratio: float, text: str) -> None:
    assert ratio_text(ratio) == text
