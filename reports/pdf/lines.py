"""The PDF's pages of lines over a parameter: six charts a page, logarithmic, with bands and labels beside their lines.

What is drawn is reports.analysis.varied's; this module knows places and ink alone.
"""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bench_runner.conditions import conditions_text
from reports.analysis.bands import LINE_COLOURS
from reports.analysis.sections import TITLES, Contents
from reports.analysis.varied.charts import Chart, Line, Owner, crossover_texts, range_of, value_text
from reports.analysis.varied.crossovers import Change
from reports.analysis.varied.heights import heights_apart
from reports.analysis.words import FALLBACK
from reports.pdf.page import FAINT, above_foot, lines_of, new_page, spaced

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS, DOWN = 2, 3
"""Charts beside and below each other."""
WIDTH, HEIGHT = 0.285, 0.180
"""Of one chart, as shares of the page; the labels stand to its right."""
LONE_WIDTH, LONE_HEIGHT = 0.70, 0.42
"""Of a chart that has a page to itself."""
_LEFTS, _TOPS = (0.073, 0.550), (0.905, 0.635, 0.365)
CHARACTER_SHARE = 0.022
"""How wide a character of the values along the foot is at most, as a share of the chart."""
_LABEL_GAP = 0.058
"""How far apart labels stand, as a share of a chart of that height."""
_LABEL_WIDTH, _SMALL_WIDTH = 25, 33
"""Letters of a label in its usual type and in small type; longer ones take two lines."""
_TWO_LINES_SIZE = 1.3
"""How many times as high as the others such a label is."""
_TOLD_WIDTH = 78
_MARKERS = "os^DvPX*"
Dash = str | tuple[float, tuple[float, ...]]
_SOLID: Dash = "-"
_DASHED: Dash = (0, (5, 2))
_DOTTED: Dash = (0, (1, 1.5))


def lines_pages(contents: Contents) -> Iterator[Figure]:
    """The charts of a table share their pages, and so do those of which data sets are the values."""

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
    """Throughput over the share of row groups: the networks of one data set share their pages."""

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
        axes = figure.add_axes((left, top - height, width, height))
        _draw(axes, chart)
        told = [part for text in _told(chart) for part in textwrap.wrap(text, _TOLD_WIDTH, subsequent_indent="  ")]
        figure.text(left - 0.03, top - height - 0.036, "\n".join(told[:4]), fontsize=6, va="top", linespacing=1.35)
    few = all(chart.few_rounds for chart in charts)
    points = [each for chart in charts for line in chart.lines for each in line.points.values()]
    some = ", smallest to largest value under 5 rounds" if any(each.low is None for each in points) else ""
    band = "smallest to largest value (under 5 rounds: no verdicts)" if few else f"95 % interval of the median{some}"
    words = f"Lines: medians. Bands: {band}."
    if any(chart.raw_io for chart in charts):
        words += " Dotted: raw I/O, a plain write and read."
    if any(chart.whole for chart in charts):
        words += f" {FALLBACK} Dashed, grey: the fastest that reads everything and selects, not ranked."
    if any(_changes(chart) for chart in charts):
        words += " Upright: where the best changes, with its interval."
    figure.text(
        0.05, above_foot(contents.run, 0.078), textwrap.fill(words, 150), fontsize=6.5, color=FAINT, va="bottom"
    )
    return figure


def _told(chart: Chart) -> list[str]:
    left_out = [f"not drawn: {', '.join(chart.left_out)}"] if chart.left_out else []
    return [*crossover_texts(chart), *left_out]


def _changes(chart: Chart) -> list[Change]:
    return [each for each in chart.crossovers.found if isinstance(each, Change)] if chart.crossovers else []


def _draw(axes: Axes, chart: Chart) -> None:
    low, high = (end / chart.unit.scale for end in range_of(chart))
    low, high = low / 1.25, high * 1.25
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    _set_values(axes, chart)
    for line in chart.lines:
        dash = _SOLID if line.style < len(LINE_COLOURS) else _DASHED
        _line(axes, chart, line, LINE_COLOURS[line.style % len(LINE_COLOURS)], dash, _MARKERS[line.style % 8])
    for other, broken in ((chart.whole, _DASHED), (chart.raw_io, _DOTTED)):
        if other is not None:
            _line(axes, chart, other, "#999999", broken, "")
    for change in _changes(chart):
        if change.at is None:
            continue
        axes.axvline(change.at.median, color="#222222", linewidth=0.7, zorder=1)
        axes.axvspan(*change.at.spread, color="#222222", alpha=0.10, linewidth=0, zorder=0)
    _label(axes, chart, low, high)
    # Of throughput the title says what lies between, and the foot over what.
    over = "" if chart.axis.owner is Owner.DATA or chart.own_unit is not None else f" over {chart.axis.title}"
    title = f"{chart.figure_title}{over} ({chart.unit.name})"
    # As far to the left of a large chart as of a small one.
    begins = -0.1 * WIDTH / axes.get_position().width
    axes.set_title(title, fontsize=8 if len(title) < 52 else 6.6, fontweight="bold", loc="left", pad=5, x=begins)
    axes.set_xlabel(chart.axis.title, fontsize=6.5, labelpad=1.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#eeeeee", linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=6, colors=FAINT, pad=2)


def _set_values(axes: Axes, chart: Chart) -> None:
    """The measured values, and no others, are marked along the foot."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    values = chart.axis.values
    if chart.axis.linear_below is not None:
        axes.set_xscale("symlog", linthresh=chart.axis.linear_below, linscale=0.4)
        axes.set_xlim(values[0], values[-1] * 1.15)
    elif chart.axis.logarithmic:
        axes.set_xscale("log")
        margin = (values[-1] / values[0]) ** 0.03
        axes.set_xlim(values[0] / margin, values[-1] * margin)
    else:
        margin = (values[-1] - values[0]) * 0.03
        axes.set_xlim(values[0] - margin, values[-1] + margin)
    axes.xaxis.set_major_locator(FixedLocator(values))
    texts = [value_text(value) for value in values]
    places = axes.xaxis.get_transform().transform(values)
    ends = axes.xaxis.get_transform().transform(axes.get_xlim())
    shown = readable([(place - ends[0]) / (ends[1] - ends[0]) for place in places], texts)
    told = {value: text for number, (value, text) in enumerate(zip(values, texts, strict=True)) if number in shown}
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: told.get(value, "")))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def readable(places: Sequence[float], texts: Sequence[str]) -> set[int]:
    """Which of the texts centred at these shares of the foot, rising, can stand there without touching each other: the
    last one, and those before it from left to right."""
    halves = [CHARACTER_SHARE * (len(text) + 1) / 2 for text in texts]
    last = len(texts) - 1
    shown, end = {last}, -1.0
    for number in range(last):
        if places[number] - halves[number] >= end and places[number] + halves[number] <= places[last] - halves[last]:
            shown.add(number)
            end = places[number] + halves[number]
    return shown


def _line(axes: Axes, chart: Chart, line: Line, colour: str, dash: Dash, marker: str) -> None:
    values = list(line.points)
    scale, least = chart.unit.scale, max(chart.least, 1)
    medians = [max(each.median, least) / scale for each in line.points.values()]
    low, high = ([max(each.spread[end], least) / scale for each in line.points.values()] for end in (0, 1))
    thin = not marker
    axes.fill_between(values, low, high, color=colour, alpha=0.10 if thin else 0.18, linewidth=0, zorder=2)
    axes.plot(
        values,
        medians,
        color=colour,
        linestyle=dash,
        linewidth=0.9 if thin else 1.3,
        marker=marker or None,
        markersize=3.2,
        markeredgecolor="white",
        markeredgewidth=0.3,
        zorder=3 if thin else 4,
    )


def _label(axes: Axes, chart: Chart, low: float, high: float) -> None:
    """Beside the end of each line its name, joined to it by a thin one where it had to be moved."""
    shown: list[tuple[Line, str, str]] = [
        (line, line.label, LINE_COLOURS[line.style % len(LINE_COLOURS)]) for line in chart.lines
    ]
    shown += [(chart.whole, f"{chart.whole.label} {FALLBACK}", "#777777")] if chart.whole else []
    shown += [(chart.raw_io, "raw I/O", "#777777")] if chart.raw_io else []
    ends = [min(max(line.end.median / chart.unit.scale, low), high) for line, _, _ in shown]
    heights = [math.log(end / low) / math.log(high / low) for end in ends]
    # Joined where the label begins, so that no line goes through it.
    joint = {"arrowstyle": "-", "linewidth": 0.4, "shrinkA": 0, "shrinkB": 2, "relpos": (0, 0.5)}
    texts = ["\n".join(lines_of(spaced(label), _SMALL_WIDTH)[:2]) for _, label, _ in shown]
    sizes = [_TWO_LINES_SIZE if "\n" in text else 1.0 for text in texts]
    places = heights_apart(heights, _LABEL_GAP * HEIGHT / axes.get_position().height, sizes)
    for (line, _, colour), text, end, place in zip(shown, texts, ends, places, strict=True):
        axes.annotate(
            text,
            (list(line.points)[-1], end),
            xytext=(1.06, place),
            textcoords=axes.transAxes,
            fontsize=5.8 if len(text) <= _LABEL_WIDTH else 4.6,
            linespacing=1.0,
            color=colour,
            va="center",
            annotation_clip=False,
            arrowprops={**joint, "color": colour},
        )
