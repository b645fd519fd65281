"""Build charts over a parameter as Vega-Lite: one specification without data, and the data of each chart.

A browser draws the charts on the site, and reports.pdf prints them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench_runner.conditions import conditions_text
from bench_runner.results.records import Cell
from reports.analysis.bands import LINE_COLOURS
from reports.analysis.varied.charts import Chart, Line, Owner, crossover_texts, range_of, value_text
from reports.analysis.varied.crossovers import Change
from reports.analysis.varied.heights import heights_apart
from reports.analysis.words import FALLBACK
from reports.site.addresses import Slugs
from reports.site.charts import powers
from reports.site.views import Place

STYLES = tuple(range(len(LINE_COLOURS)))
"""Numbers of the line styles. The page's style sheet gives each style a colour: `line-0` and so on."""
HEIGHT = 300
"""Height of a chart in pixels."""
LABELS_FROM = 8
"""Distance in pixels between the right edge of the chart and its labels. Thin lines connect labels with the ends of
their lines."""
_LABEL_PIXELS = 14
_TWO_LINES = 1.3
"""Height of a label with two lines, as a multiple of the height of a label with one line."""
BESIDE_EACH_OTHER = ("network", "service", "cache", "track", "threads")
"""A reader's choices that have no effect on throughput charts. A group of throughput charts always shows all values of
these choices, to compare them."""
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"


@dataclass(frozen=True, eq=False)
class LineGroup:
    """The charts of one axis, which are shown or hidden together."""

    id: str
    title: str
    conditions: str
    facets: Mapping[str, str]
    charts: tuple[dict[str, Any], ...]
    formats: tuple[str, ...]


def specification() -> dict[str, Any]:
    """Return the specification of a chart with lines, bands for intervals, points, crossings and labels. The script
    adds rows, scales and colours."""
    x = {"field": "x", "type": "quantitative", "title": None}
    y = {"field": "y", "type": "quantitative", "title": None}
    colour = {"field": "colour", "type": "nominal", "scale": {"domain": STYLES}, "legend": None}
    series = {"field": "label", "type": "nominal"}
    dash = {"condition": {"test": "datum.dashed", "value": [6, 3]}, "value": [1, 0]}
    label = {"type": "text", "align": "left", "baseline": "middle", "dx": LABELS_FROM, "fontSize": 11, "aria": False}
    tooltip = [
        {"field": "label", "title": "variant"},
        {"field": "at", "title": "at"},
        {"field": "text", "title": "median"},
        {"field": "between", "title": "between"},
        {"field": "rounds", "title": "rounds"},
    ]
    return {
        "$schema": _SCHEMA,
        "width": "container",
        "height": HEIGHT,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"name": "rows", "values": []},
        "encoding": {"x": x},
        "layer": [
            {
                "name": "crossing_bands",
                "data": {"name": "crossings", "values": []},
                "mark": {"type": "rect", "opacity": 0.12, "aria": False},
                "encoding": {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}},
            },
            {
                "name": "crossings",
                "data": {"name": "crossings", "values": []},
                "mark": {"type": "rule", "strokeWidth": 1},
                "encoding": {
                    "x": {"field": "at", "type": "quantitative"},
                    "tooltip": [{"field": "words", "title": "the winner changes"}],
                    "description": {"field": "words"},
                },
            },
            {
                "name": "others",
                "data": {"name": "others", "values": []},
                "mark": {"type": "line", "clip": True, "strokeWidth": 1, "strokeDash": [2, 3], "aria": False},
                "encoding": {"y": y, "detail": series},
            },
            {
                "name": "bands",
                "mark": {"type": "area", "opacity": 0.18, "aria": False},
                "encoding": {
                    "y": {"field": "low", "type": "quantitative"},
                    "y2": {"field": "high"},
                    "color": colour,
                    "detail": series,
                },
            },
            {
                "name": "lines",
                "mark": {"type": "line", "strokeWidth": 1.8, "aria": False},
                "encoding": {"y": y, "color": colour, "detail": series, "strokeDash": dash},
            },
            {
                "name": "points",
                "mark": {"type": "point", "filled": True, "size": 42, "cursor": "pointer", "opacity": 1},
                "encoding": {
                    "y": y,
                    "color": colour,
                    "tooltip": tooltip,
                    "href": {"field": "address"},
                    "description": {"field": "words"},
                },
            },
            {
                "name": "joints",
                "data": {"name": "joints", "values": []},
                "mark": {"type": "rule", "strokeWidth": 0.5, "aria": False},
                "encoding": {
                    "x": {"field": "last", "type": "quantitative"},
                    "x2": {"value": {"expr": f"width + {LABELS_FROM - 2}"}},
                    "y": {"field": "end", "type": "quantitative"},
                    "y2": {"field": "y"},
                    "color": colour,
                },
            },
            {
                "name": "labels",
                "data": {"name": "labels", "values": []},
                "mark": label,
                "encoding": {
                    "x": {"value": {"expr": "width"}},
                    "y": {"field": "y", "type": "quantitative"},
                    "text": {"field": "label"},
                    "color": colour,
                },
            },
            {
                "name": "other_labels",
                "data": {"name": "other_labels", "values": []},
                "mark": label,
                "encoding": {
                    "x": {"value": {"expr": "width"}},
                    "y": {"field": "y", "type": "quantitative"},
                    "text": {"field": "label"},
                },
            },
        ],
    }


def groups_of(place: Place, suite: str, addresses: Mapping[Cell, str]) -> list[LineGroup]:
    """Return the charts over a parameter for one suite of a run. `addresses` has the address of each cell's samples."""

    def about(chart: Chart) -> tuple[object, ...]:
        return chart.dataset, chart.axis.title, chart.axis.rest, chart.conditions, chart.machine

    slugs, found = Slugs(), []
    of_suite = [chart for chart in place.contents.lines if chart.suite == suite]
    for _, group in itertools.groupby(of_suite, about):
        charts = list(group)
        first = charts[0]
        title = f"{first.dataset or first.axis.rest} over {first.axis.title}"
        if first.axis.owner is Owner.OPERATION and first.axis.rest:
            title += f" ({first.axis.rest})"
        name = f"{place.slug}-lines-{slugs.of(f'{title} {first.conditions.track} {first.conditions.threads}')}"
        found.append(
            LineGroup(
                name,
                title,
                conditions_text(first.conditions),
                _facets(place, first),
                tuple(line_chart(chart, f"{name}-{number}", addresses) for number, chart in enumerate(charts, 1)),
                tuple(sorted({line.variant.format_name for chart in charts for line in chart.lines})),
            )
        )
    return found


def throughput_groups_of(place: Place, suite: str, addresses: Mapping[Cell, str]) -> list[LineGroup]:
    """Return the throughput charts of one suite of a run. Charts that differ only in their network are in one group."""
    slugs, found = Slugs(), []
    of_suite = [chart for chart in place.contents.throughput_lines if chart.suite == suite]
    for (dataset, machine), group in itertools.groupby(of_suite, lambda chart: (chart.dataset, chart.machine)):
        charts = list(group)
        name = f"{place.slug}-throughput-{slugs.of(dataset)}"
        kept = {key: value for key, value in _facets(place, charts[0]).items() if key not in BESIDE_EACH_OTHER}
        found.append(
            LineGroup(
                name,
                f"{dataset} over {charts[0].axis.title}",
                f"machine {machine}",
                kept,
                tuple(line_chart(chart, f"{name}-{number}", addresses) for number, chart in enumerate(charts, 1)),
                tuple(sorted({line.variant.format_name for chart in charts for line in chart.lines})),
            )
        )
    return found


def _facets(place: Place, chart: Chart) -> dict[str, str]:
    """Return the values by which a reader selects the chart on the page. They are the values of the table that contains
    the chart's points. If the points come from several data sets, data set and amount are left out."""
    for view in place.tables:
        same = (view.table.suite, view.table.conditions, view.table.machine)
        if same == (chart.suite, chart.conditions, chart.machine) and view.table.dataset in (
            chart.dataset or view.table.dataset,
        ):
            return {
                key: value for key, value in view.facets.items() if chart.dataset or key not in ("dataset", "amount")
            }
    raise AssertionError("a chart is made from tables")


def line_chart(
    chart: Chart,
    name: str,
    addresses: Mapping[Cell, str],
    *,
    broken: Callable[[str], str] = str,
    gap: float = _LABEL_PIXELS / HEIGHT,
) -> dict[str, Any]:
    """Return the data of one chart, and the sentences below the chart.

    The function `broken` breaks a label into lines. The distance between labels is at least `gap`, as a share of the
    height.
    """
    scale = chart.unit.scale
    low, high = (end / scale for end in range_of(chart))
    low, high = low / 1.25, high * 1.25
    values = chart.axis.values
    others = [
        (line, label)
        for line, label in (
            (chart.whole, f"{chart.whole.label} {FALLBACK}" if chart.whole else ""),
            (chart.raw_io, "raw I/O"),
        )
        if line is not None
    ]
    labels = [(line, broken(label)) for line, label in (*((line, line.label) for line in chart.lines), *others)]
    ends = [min(max(line.end.median / scale, low), high) for line, _ in labels]
    shares = [math.log(end / low) / math.log(high / low) for end in ends]
    sizes = [_TWO_LINES if "\n" in label else 1.0 for _, label in labels]
    heights = [low * (high / low) ** share for share in heights_apart(shares, gap, sizes)]
    placed = [
        {
            "label": label,
            "y": height,
            "end": end,
            "last": list(line.points)[-1],
            "colour": line.style % len(STYLES),
            "format": line.variant.format_name,
        }
        for (line, label), height, end in zip(labels, heights, ends, strict=True)
    ]
    margin = (values[-1] / values[0]) ** 0.02 if chart.axis.logarithmic else (values[-1] - values[0]) * 0.02
    ends_x = [values[0] / margin, values[-1] * margin] if chart.axis.logarithmic else [values[0], values[-1] + margin]
    return {
        "id": name,
        "kind": "lines",
        "metric": chart.figure_title,
        "over": chart.axis.title,
        "unit": chart.unit.name,
        "title": f"{chart.figure_title} over {chart.axis.title}, in {chart.unit.name}",
        "x": _foot(chart, ends_x),
        "y": {
            "scale": {"type": "log", "domain": [low, high], "nice": False},
            "axis": {"values": powers(low, high), "format": ",~r"},
        },
        "rows": [row for line in chart.lines for row in _rows(chart, line, addresses)],
        "others": [
            {"label": label, "x": value, "y": interval.median / scale}
            for line, label in others
            for value, interval in line.points.items()
            if interval.median > 0
        ],
        "labels": placed[: len(chart.lines)],
        "other_labels": placed[len(chart.lines) :],
        "crossings": list(_crossings(chart)),
        "told": crossover_texts(chart),
        "left_out": ", ".join(chart.left_out),
    }


def _foot(chart: Chart, domain: Sequence[float]) -> dict[str, Any]:
    """Return the encoding of the horizontal axis. The axis has ticks only at measured values."""
    kind: dict[str, Any] = {"type": "log" if chart.axis.logarithmic else "linear"}
    if chart.axis.linear_below is not None:
        kind = {"type": "symlog", "constant": chart.axis.linear_below}
    return {
        "scale": {**kind, "domain": domain, "nice": False},
        "axis": {
            "values": chart.axis.values,
            # The format is set here, because the scale would round labels to the distance between ticks.
            "labelExpr": "format(datum.value, ',~r')",
            "title": chart.axis.title,
            "labelFlush": False,
            "labelOverlap": "greedy",
            "labelSeparation": 4,
        },
    }


def _rows(chart: Chart, line: Line, addresses: Mapping[Cell, str]) -> Iterator[dict[str, Any]]:
    unit, least = chart.unit, max(chart.least, 1)
    for value, interval in line.points.items():
        low, high = interval.spread
        below = interval.median < chart.least
        text = f"{'<' if below else ''}{unit.text(max(interval.median, chart.least))} {unit.name}"
        kind = "95 % interval" if interval.low is not None else "minimum and maximum"
        mark = line.marks.get(value, "")
        yield {
            "label": line.label,
            "format": line.variant.format_name,
            "colour": line.style % len(STYLES),
            "dashed": line.style >= len(STYLES),
            "x": value,
            "at": f"{value_text(value)} ({chart.axis.title})",
            "y": max(interval.median, least) / unit.scale,
            "low": max(low, least) / unit.scale,
            "high": max(high, least) / unit.scale,
            "text": f"{text} {mark}".strip(),
            "between": "one round" if interval.rounds == 1 else f"{unit.text(low)} and {unit.text(high)} ({kind})",
            "rounds": interval.rounds,
            "address": addresses.get(line.cells[value], ""),
            "words": f"{line.label}, {chart.axis.title} {value_text(value)}: {text}",
        }


def _crossings(chart: Chart) -> Iterator[dict[str, Any]]:
    found: Sequence[object] = chart.crossovers.found if chart.crossovers else ()
    for change, words in zip(found, crossover_texts(chart), strict=False):
        if isinstance(change, Change) and change.at is not None:
            low, high = change.at.spread
            formats = [variant.format_name for variant in (change.before, change.after)]
            yield {"at": change.at.median, "low": low, "high": high, "words": words, "formats": formats}
