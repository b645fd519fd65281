"""Build the charts of a table as Vega-Lite: a specification for each of two kinds of charts, and the figures of each
table. The specifications contain no data.

A browser draws the charts on the site, and reports.pdf prints them. The specifications name colours, and the page's
style sheet gives their values for light and dark mode.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench_runner.results.statistics import Interval
from reports.analysis.codecs import frontier, point
from reports.analysis.columns import SIZE, Column
from reports.analysis.units import MEGABYTES, Unit
from reports.site.views import APART, BAND_NAMES, RowView, TableView

COLOURS = (*BAND_NAMES, APART)
"""Names of the colours of a chart (the domain of the Vega-Lite scale). The page's script adds the colours themselves
(the range)."""
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_TOOLTIP = [
    {"field": "label", "title": "variant"},
    {"field": "text", "title": "median"},
    {"field": "between", "title": "between"},
    {"field": "rounds", "title": "rounds"},
    {"field": "ratio", "title": "times the best"},
]


def bars() -> dict[str, Any]:
    """Return the specification of a bar chart. Bars have intervals and values, and a dashed line shows raw I/O. The
    script adds the rows, the figure of raw I/O, and the type of scale."""
    variant = {"field": "label", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 230}}
    shared = {"tooltip": _TOOLTIP, "href": {"field": "address"}, "description": {"field": "words"}}
    has_figure = [{"filter": "datum.value !== null"}]
    has_interval = [{"filter": "datum.low !== null && datum.high > datum.low"}]
    value = {"field": "value", "type": "quantitative", "scale": {"nice": False}, "title": None, "stack": None}
    interval: dict[str, Any] = {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}}
    ends = [
        {
            "transform": has_interval,
            "mark": {"type": "tick", "size": 8, "thickness": 1.5, "aria": False},
            "encoding": {"x": {"field": end, "type": "quantitative"}},
        }
        for end in ("low", "high")
    ]
    return {
        "$schema": _SCHEMA,
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"name": "rows", "values": []},
        "encoding": {"y": variant},
        "layer": [
            {
                "name": "bars",
                "transform": has_figure,
                "mark": {"type": "bar", "height": {"band": 0.68}, "cursor": "pointer"},
                "encoding": {
                    "x": value,
                    "color": {"field": "band", "type": "nominal", "scale": {"domain": COLOURS}, "legend": None},
                    "opacity": {"condition": {"test": "datum.pale", "value": 0.4}, "value": 1},
                    **shared,
                },
            },
            {
                "name": "halo",
                "transform": has_interval,
                "mark": {"type": "rule", "strokeWidth": 4, "opacity": 0.7, "aria": False},
                "encoding": interval,
            },
            {
                "transform": has_interval,
                "mark": {"type": "rule", "strokeWidth": 1.5, "aria": False},
                "encoding": interval,
            },
            *ends,
            {
                "mark": {"type": "text", "align": "left", "baseline": "middle", "dx": 8, "aria": False},
                "encoding": {"x": {"value": {"expr": "width"}}, "text": {"field": "told"}},
            },
            {
                "name": "raw_io_line",
                "data": {"name": "raw-io", "values": []},
                "mark": {"type": "rule", "strokeDash": [4, 3], "aria": False},
                "encoding": {
                    "x": {"field": "raw_io", "type": "quantitative"},
                    "y": {"value": 0},
                    "y2": {"value": {"expr": "height"}},
                },
            },
        ],
    }


def scatter() -> dict[str, Any]:
    """Return the specification of a chart of size against time. Variants are points. A numbered step line connects the
    Pareto frontier, that is the variants that no other variant beats in both size and time."""
    point = {
        "x": {"field": "size", "type": "quantitative", "scale": {"zero": False, "padding": 14, "nice": False}},
        "y": {"field": "time", "type": "quantitative", "scale": {"zero": False, "padding": 14, "nice": False}},
    }
    tooltip = [
        {"field": "label", "title": "variant"},
        {"field": "size_text", "title": "size"},
        {"field": "time_text", "title": "time"},
        {"field": "number", "title": "on the frontier"},
    ]
    on_frontier = {"test": "datum.number !== null", "value": "frontier"}
    return {
        "$schema": _SCHEMA,
        "width": "container",
        "height": 300,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"name": "rows", "values": []},
        "encoding": point,
        "layer": [
            {
                "name": "frontier_line",
                "data": {"name": "frontier", "values": []},
                "mark": {"type": "line", "interpolate": "step-after", "aria": False},
            },
            {
                "name": "points",
                "mark": {"type": "point", "filled": True, "size": 75, "cursor": "pointer", "opacity": 1},
                "encoding": {
                    "color": {"condition": on_frontier, "value": "others"},
                    "tooltip": tooltip,
                    "href": {"field": "address"},
                    "description": {"field": "words"},
                },
            },
            {
                "transform": [{"filter": "datum.number !== null"}],
                "mark": {"type": "text", "dx": 8, "dy": -8, "fontWeight": "bold", "aria": False},
                "encoding": {"text": {"field": "number"}},
            },
        ],
    }


def powers(least: float, most: float) -> list[float]:
    """Return the values at which a logarithmic axis has grid lines: powers of ten, and on a short axis also 2 and 5
    times these powers."""
    steps = (1,) if math.log10(most / least) > 2.5 else (1, 2, 5)
    first, last = math.floor(math.log10(least)), math.floor(math.log10(most))
    found = [float(f"{step}e{power}") for power in range(first, last + 1) for step in steps]
    return [value for value in found if least <= value <= most]


def chart_data(view: TableView) -> dict[str, Any]:
    """Return the data that the script needs to draw one table. Operations that have a separate section are not
    drawn."""
    drawn = {*view.columns.main, *view.columns.listed}
    columns = [column for column in view.columns if column.operation in drawn]
    return {
        "bars": [_best_first(view, column) for column in columns if _has(view, column)],
        "scatters": [
            scatter_of(view, column)
            for column in _reading_first(view)
            if column.operation in drawn and frontier(view.table, column)
        ],
    }


def _reading_first(view: TableView) -> list[Column]:
    """Return the time columns: first those of reading operations, then those of writing operations."""
    return sorted(view.columns.times, key=lambda time: view.columns.writes(time.operation))


def frontier_names(view: TableView, column: Column) -> list[RowView]:
    """Return the variants on the Pareto frontier (not beaten in both size and time), in the order of their numbers in
    the chart."""
    rows = {row.row: row for row in view.rows}
    return [rows[row] for row in frontier(view.table, column)]


def chart_id(view: TableView, kind: str, column: Column) -> str:
    """Return the id of the HTML element into which a chart is drawn."""
    return f"{view.id}-{kind}-{view.slug_of[column.operation]}-{column.figure.replace('_', '-')}"


def _has(view: TableView, column: Column) -> bool:
    return any(row.row.interval(column) for row in view.rows if not row.is_raw_io)


def _best_first(view: TableView, column: Column) -> dict[str, Any]:
    tried = [row for row in view.rows if column.operation in row.row.cells and not row.is_raw_io]
    chart = bars_of(view, column, tried)
    chart["rows"].sort(key=lambda row: (row["value"] is None, row["band"] == APART, row["value"] or 0))
    return chart


def bars_of(view: TableView, column: Column, shown: Sequence[RowView]) -> dict[str, Any]:
    """Return the data of a bar chart with a bar for each row of `shown`, in the same order. Raw I/O is a line across
    the bars."""
    unit = view.unit(column)
    rows = [_bar(view, row, column, unit) for row in shown]
    yardstick = next((row.row.interval(column) for row in view.rows if row.row.variant.is_raw_io), None)
    has_line = yardstick is not None and yardstick.median > 0 and not column.is_memory
    values = [row["value"] for row in rows if row["value"]]
    return {
        "id": chart_id(view, "bars", column),
        "kind": "bars",
        "metric": column.title,
        "title": f"{column.title} on {view.title}, in {unit.name}",
        "unit": unit.name,
        "wide": bool(values) and max(values) > 10 * min(values),
        "raw_io": yardstick.median / unit.scale if has_line and yardstick else None,
        "rows": rows,
    }


def _bar(view: TableView, row: RowView, column: Column, unit: Unit) -> dict[str, Any]:
    shown, interval = row.figures[column], row.row.interval(column)
    base = {
        "label": row.row.label,
        "format": row.format,
        "address": shown.address,
        "words": shown.words,
        "band": shown.band,
        "text": shown.text,
        "told": f"{shown.text}{' ' if shown.mark else ''}{shown.mark}",
        "ratio": shown.ratio or "not ranked",
    }
    if interval is None:
        return {**base, "value": None, "median": None, "low": None, "high": None, "pale": False, "rounds": 0}
    least = view.table.least_bytes if column.is_memory else 0
    unseen = interval.median < least
    low, high = interval.spread if interval.rounds > 1 and not unseen else (None, None)
    return {
        **base,
        "value": max(interval.median, least) / unit.scale,
        "median": interval.median,
        "low": None if low is None else low / unit.scale,
        "high": None if high is None else high / unit.scale,
        "between": _between(interval, unit),
        "rounds": interval.rounds,
        "pale": unseen,
    }


def _between(interval: Interval, unit: Unit) -> str:
    low, high = interval.spread
    kind = "95 % interval" if interval.low is not None else "minimum and maximum"
    return "one round" if interval.rounds == 1 else f"{unit.text(low)} and {unit.text(high)} ({kind})"


def scatter_of(view: TableView, column: Column) -> dict[str, Any]:
    """Return the data of a chart of size against one time, with the Pareto frontier."""
    unit = view.unit(column)
    numbers = {row: place for place, row in enumerate(frontier_names(view, column), 1)}
    rows = list(_points(view, column, unit, numbers))
    return {
        "id": chart_id(view, "scatter", column),
        "kind": "scatter",
        "title": f"Size against {column.title} on {view.title}",
        "x_title": "size (MB)",
        "y_title": f"{column.title} ({unit.name})",
        "x_wide": _wide(row["size"] for row in rows),
        "y_wide": _wide(row["time"] for row in rows),
        "rows": rows,
        "frontier": sorted((row for row in rows if row["number"]), key=lambda row: row["number"]),
    }


def _wide(values: Iterator[float]) -> bool:
    known = list(values)
    return max(known) > 10 * min(known) > 0


def _points(view: TableView, column: Column, unit: Unit, numbers: Mapping[RowView, int]) -> Iterator[dict[str, Any]]:
    for row in view.rows:
        size, time = row.row.interval(SIZE), row.row.interval(column)
        if size is None or time is None or point(row.row, column) is None:
            continue
        number = numbers.get(row)
        texts = view.text(row, SIZE, size), view.text(row, column, time)
        on = f", number {number} on the frontier" if number else ""
        yield {
            "label": row.row.label,
            "format": row.format,
            "address": row.address(column.operation),
            "size": size.median / MEGABYTES.scale,
            "time": time.median / unit.scale,
            "size_text": texts[0],
            "time_text": texts[1],
            "number": number,
            "words": f"{row.row.label}: {texts[0]}, {column.title} {texts[1]}{on}",
        }
