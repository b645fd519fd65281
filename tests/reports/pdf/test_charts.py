"""What the charts of the PDF draw, as matplotlib has it: where bars end, and where points lie."""

from __future__ import annotations

from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from bench_runner.results.records import Conditions, RunInfo, Sample
from reports.analysis.tables import Table, tables
from reports.pdf.charts import table_pages
from reports.pdf.codecs import draw
from tests.reports.factory import make_run, make_sample, with_info

QUICK, SLOW = "feather[engine=pyarrow,codec=none]", "csv[engine=pandas]"


def table_of(*samples: Sample, **info: object) -> tuple[Table, Figure]:
    """A table, and the first page of its charts."""
    run = replace(make_run(datasets=()), samples=samples, info=RunInfo(), fidelity=())
    run = with_info(run, **info)
    (table,) = tables(run)
    return table, next(iter(table_pages(run, table)))


def ends(figure: Figure, title: str) -> list[float]:
    """Where the bars of a chart end, from the top."""
    (axes,) = (each for each in figure.axes if each.get_title(loc="left").startswith(title))
    return [bar.get_x() + bar.get_width() for bar in axes.patches]


@pytest.mark.parametrize("slow_ms", [20, 4_000])
def test_bars_end_at_their_medians_on_both_kinds_of_axis(slow_ms: int) -> None:
    samples = [
        make_sample(variant=variant, figures={"wall_ns": ms * 10**6}) for variant, ms in ((QUICK, 10), (SLOW, slow_ms))
    ]
    _, figure = table_of(*samples)
    assert ends(figure, "read time") == pytest.approx([10, slow_ms])


def test_memory_that_cannot_be_told_has_a_bar_up_to_what_can() -> None:
    samples = [
        make_sample(variant=variant, figures={"wall_ns": ns, "peak_private_bytes": size})
        for variant, ns, size in ((QUICK, 10**6, 10**5), (SLOW, 2 * 10**6, 8 * 10**6))
    ]
    _, figure = table_of(*samples, probe={"error_bytes": 10**6})
    assert ends(figure, "read peak memory") == pytest.approx([3, 8])


@pytest.mark.parametrize("unit_ns", [10**6, 10**9])
def test_points_of_codecs_lie_at_megabytes_and_the_unit_of_times(unit_ns: int) -> None:
    conditions = Conditions(track="codecs")
    saved = make_sample(
        operation="save",
        variant=QUICK,
        conditions=conditions,
        figures={"wall_ns": 20 * unit_ns, "size_bytes": 5 * 10**6},
        fidelity=None,
    )
    read = make_sample(variant=QUICK, conditions=conditions, figures={"wall_ns": 7 * unit_ns})
    table, _ = table_of(saved, read)
    figure = Figure()
    draw(figure, table)
    points = [(*axes.lines[0].get_xdata(), *axes.lines[0].get_ydata()) for axes in figure.axes]
    assert points == [(5, 7), (5, 20)]
