"""The PDF has the same charts as the site, and their bars end at the right positions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bench_runner.results.records import RunInfo, Sample
from reports.analysis.tables import Table, tables
from reports.pdf.charts import table_pages
from reports.site import charts
from tests.reports.factory import make_run, make_sample, with_info
from tests.reports.pdf_text import drawn, written_on

QUICK, SLOW = "feather[engine=pyarrow,codec=none]", "csv[engine=pandas]"


def table_of(*samples: Sample, **info: object) -> tuple[Table, Figure]:
    """Return a table, and the first page of charts for it."""
    run = replace(make_run(datasets=()), samples=samples, info=RunInfo(), fidelity=())
    run = with_info(run, **info)
    (table,) = tables(run)
    return table, next(iter(table_pages(run, table)))


def ends(figure: Figure, title: str) -> list[float]:
    """Return the ends of a chart's bars from top to bottom, as shares of the chart's width."""
    (axes,) = (each for each in figure.axes if each.get_title(loc="left").startswith(title))
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    return [(bar.get_x() + bar.get_width()) / axes.get_xlim()[1] for bar in bars]


@pytest.mark.parametrize(("slow_ms", "quick_end"), [(20, 10 / 20), (4_000, math.log(10 / 5) / math.log(4_000 / 5))])
def test_bars_end_at_their_medians_on_both_kinds_of_axis(slow_ms: int, quick_end: float) -> None:
    """A logarithmic axis begins at half of the smallest value."""
    samples = [
        make_sample(variant=variant, figures={"wall_ns": ms * 10**6}) for variant, ms in ((QUICK, 10), (SLOW, slow_ms))
    ]
    _, figure = table_of(*samples)
    assert ends(figure, "read time") == pytest.approx([quick_end, 1])


def test_memory_too_small_for_the_probe_has_a_bar_up_to_its_limit() -> None:
    samples = [
        make_sample(variant=variant, figures={"wall_ns": ns, "peak_private_bytes": size})
        for variant, ns, size in ((QUICK, 10**6, 10**5), (SLOW, 2 * 10**6, 8 * 10**6))
    ]
    _, figure = table_of(*samples, probe={"error_bytes": 10**6})
    assert ends(figure, "read peak memory") == pytest.approx([3 / 8, 1])


def test_rows_have_the_same_order_in_every_chart_of_a_page() -> None:
    """Only the left chart has labels, so all charts need the same order of rows, even if a chart lacks a figure."""
    figures = {"wall_ns": 10**6, "peak_private_bytes": 8 * 10**6}
    samples = [make_sample(variant=QUICK, figures={"wall_ns": 5 * 10**5}), make_sample(variant=SLOW, figures=figures)]
    _, figure = table_of(*samples)
    heights = [
        [text.get_position()[1] for told in texts for text in axes.texts if text.get_text() == told]
        for axes, texts in zip(figure.axes, (("0.500 ms", "1.00 ms"), ("not counted", "8.00 MB")), strict=False)
    ]
    assert heights[0] == heights[1]


def test_the_page_draws_the_specification_of_the_site(monkeypatch: pytest.MonkeyPatch) -> None:
    site_bars = charts.bars

    def with_a_mark() -> dict[str, Any]:
        spec = site_bars()
        spec["layer"].append({"mark": {"type": "text"}, "encoding": {"text": {"value": "planted"}}})
        return spec

    monkeypatch.setattr(charts, "bars", with_a_mark)
    _, figure = table_of(make_sample(figures={"wall_ns": 10**7}))
    assert "planted" in written_on([figure])


def test_labels_are_not_parsed_as_formulas() -> None:
    _, figure = table_of(make_sample(variant="a$b$[x=^_]", figures={"wall_ns": 10**7}))
    assert "a$b$" in drawn([figure])
