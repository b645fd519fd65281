"""Draw the PDF's pages of charts over a parameter. A page has six charts. Their lines have labels, and bands show the
intervals."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bench_runner.conditions import conditions_text
from reports.analysis.sections import TITLES, Contents
from reports.analysis.varied.charts import Chart, Owner, crossover_texts
from reports.analysis.varied.crossovers import Change
from reports.analysis.words import FALLBACK
from reports.pdf.page import FAINT, above_foot, lines_of, new_page, spaced
from reports.pdf.printed import lines_spec
from reports.pdf.scene import draw_chart
from reports.site.lines import line_chart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ACROSS, DOWN = 2, 3
"""Number of charts next to each other, and below each other."""
WIDTH, HEIGHT = 0.285, 0.180
"""Width and height of one chart as shares of the page. The labels are to its right."""
LONE_WIDTH, LONE_HEIGHT = 0.70, 0.42
"""Width and height of a chart that is alone on its page."""
_LEFTS, _TOPS = (0.073, 0.550), (0.905, 0.635, 0.365)
_LABEL_GAP = 0.058
"""Distance between labels, as a share of the height of a chart of normal size."""
_SMALL_WIDTH = 33
"""Number of characters of a label that fit in small type. Longer labels take two lines."""
_TOLD_WIDTH = 78


def lines_pages(contents: Contents) -> Iterator[Figure]:
    """Yield pages with all charts over a parameter. The charts of one table share pages. Charts over the same parameter
    of data sets also share pages."""

    def about(chart: Chart) -> tuple[object, ...]:
        axis = (chart.axis.title, chart.axis.rest) if chart.axis.owner is Owner.DATA else ()
        return chart.suite, chart.dataset, chart.conditions, chart.machine, chart.axis.owner, axis

    for _, group in itertools.groupby(contents.lines, about):
        charts = list(group)
        first = charts[0]
        where = f"{first.dataset or first.axis.rest}; {conditions_text(first.conditions)}; machine {first.machine}"
        titles = ", ".join(dict.fromkeys(chart.axis.title for chart in charts))
        yield from _pages(contents, charts, f"{first.suite}: {titles}", f"{TITLES['lines']}; {where}")


def throughput_pages(contents: Contents) -> Iterator[Figure]:
    """Yield pages with charts of throughput by the share of row groups that a query reads. The networks of one data set
    share pages."""

    def about(chart: Chart) -> tuple[str, str, str]:
        return chart.suite, chart.dataset, chart.machine

    for (suite, dataset, machine), group in itertools.groupby(contents.throughput_lines, about):
        title, _, meaning = TITLES["throughput"].partition(": ")
        yield from _pages(contents, list(group), f"{suite}: {title}", f"{meaning}; {dataset}; machine {machine}")


def _pages(contents: Contents, charts: Sequence[Chart], title: str, below: str) -> Iterator[Figure]:
    for start in range(0, len(charts), ACROSS * DOWN):
        yield _page(contents, charts[start : start + ACROSS * DOWN], title, below)


def _page(contents: Contents, charts: Sequence[Chart], title: str, below: str) -> Figure:
    figure = new_page(contents.run, title, below)
    width, height = (WIDTH, HEIGHT) if len(charts) > 1 else (LONE_WIDTH, LONE_HEIGHT)
    for chart, (top, left) in zip(charts, itertools.product(_TOPS, _LEFTS), strict=False):
        _draw(figure, chart, left, top, width, height)
        told = [part for text in _told(chart) for part in textwrap.wrap(text, _TOLD_WIDTH, subsequent_indent="  ")]
        figure.text(left - 0.03, top - height - 0.036, "\n".join(told[:4]), fontsize=6, va="top", linespacing=1.35)
    few = all(chart.few_rounds for chart in charts)
    points = [each for chart in charts for line in chart.lines for each in line.points.values()]
    some = ", minimum to maximum under 5 rounds" if any(each.low is None for each in points) else ""
    band = "minimum to maximum (under 5 rounds: no verdicts)" if few else f"95 % interval of the median{some}"
    words = f"Lines: medians. Bands: {band}."
    if any(chart.raw_io for chart in charts):
        words += " Dotted: raw I/O, a plain write and read."
    if any(chart.whole for chart in charts):
        words += f" {FALLBACK} Dotted: the fastest variant that reads everything and selects, not ranked."
    if any(_changes(chart) for chart in charts):
        words += " Vertical line: where the best variant changes, with its interval."
    figure.text(
        0.05, above_foot(contents.run, 0.078), textwrap.fill(words, 150), fontsize=6.5, color=FAINT, va="bottom"
    )
    return figure


def _told(chart: Chart) -> list[str]:
    left_out = [f"not drawn: {', '.join(chart.left_out)}"] if chart.left_out else []
    return [*crossover_texts(chart), *left_out]


def _changes(chart: Chart) -> list[Change]:
    return [each for each in chart.crossovers.found if isinstance(each, Change)] if chart.crossovers else []


def _draw(figure: Figure, chart: Chart, left: float, top: float, width: float, height: float) -> None:
    spec = lines_spec(line_chart(chart, "", {}, broken=_label, gap=_LABEL_GAP * HEIGHT / height))
    axes = draw_chart(figure, spec, left, top, width, height)
    # For throughput, the title names the network, and the label of the axis names the parameter.
    over = "" if chart.axis.owner is Owner.DATA or chart.own_unit is not None else f" over {chart.axis.title}"
    title = f"{chart.figure_title}{over} ({chart.unit.name})"
    # The title starts at the same distance to the left of large and small charts.
    begins = -0.1 * WIDTH / width
    axes.set_title(title, fontsize=8 if len(title) < 52 else 6.6, fontweight="bold", loc="left", pad=5, x=begins, y=1)


def _label(label: str) -> str:
    return "\n".join(lines_of(spaced(label), _SMALL_WIDTH)[:2])
