"""Fill the site's chart specifications with figures for print. In a browser, `site.js` does the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bench_runner.results.records import Run
from reports.analysis.bands import BANDS, LINE_COLOURS
from reports.analysis.tables import Table
from reports.pdf.page import FAINT
from reports.site import charts, lines
from reports.site.views import Place, TableView

Chart = Mapping[str, Any]
Spec = dict[str, Any]
LABEL_LETTERS = 25
"""Labels next to lines are printed smaller if they have more characters than this."""
APART_COLOUR = "#d9d9d9"
_COLOURS = [*(colour for _, colour, _ in BANDS), APART_COLOUR]
_THIN = {"tick": {"size": 5, "thickness": 1}, "rule": {"strokeWidth": 1}}
_FORMATS = ("#08306b", "#b35806", "#2f7fbc", "#fdb863", "#5e3c99", "#7f7f7f", "#1b7837", "#c51b7d", "#000000")


def view_of(run: Run, table: Table) -> TableView:
    """Return a table as the site shows it. The PDF uses only the chart figures of this view, not the addresses."""
    return TableView(Place(run, "", ""), table, "")


def bars_spec(chart: Chart, *, labelled: bool, points: Mapping[str, float]) -> Spec:
    """Return the specification of a bar chart. Bars have the order of the rows, and labels have the type sizes in
    `points`. With `labelled=False` there are no labels, because the chart to the left already has them."""
    spec = charts.bars()
    labels = [row["label"] for row in chart["rows"]]
    sizes = [{"test": f"datum.label === {json.dumps(label)}", "value": points[label]} for label in labels]
    x = _layer(spec, "bars")["encoding"]["x"]
    values = [value for row in chart["rows"] for value in (row["value"], row["low"]) if value]
    values += [chart["raw_io"]] if chart["raw_io"] else []
    x["scale"] = {"zero": True}
    if not values:
        x["axis"] = None
    if chart["wide"]:
        least = min(values) / 2
        x["scale"] = {"type": "log", "domainMin": least, "nice": False, "clamp": True}
        x["axis"] = {"values": charts.powers(least, max(values))}
    spec["encoding"]["y"]["sort"] = labels
    spec["encoding"]["y"]["axis"] = {
        "labels": labelled,
        "labelExpr": "split(datum.label, '\\n')",
        "labelLimit": 1000,
        "labelFontSize": {"condition": sizes, "value": 0},
    }
    spec["data"]["values"] = chart["rows"]
    _layer(spec, "bars")["encoding"]["color"]["scale"]["range"] = _COLOURS
    for each in spec["layer"]:
        each["mark"] |= _THIN.get(each["mark"]["type"], {})
    _layer(spec, "halo")["mark"] |= {"color": "white", "strokeWidth": 2.5}
    _layer(spec, "raw_io_line")["data"]["values"] = [{"raw_io": chart["raw_io"]}] if chart["raw_io"] else []
    return spec


def scatter_spec(chart: Chart) -> Spec:
    """Return the specification of a chart of size against time. Colour and shape show the format, because print has no
    tooltips."""
    spec = charts.scatter()
    spec["data"]["values"] = chart["rows"]
    _layer(spec, "frontier_line")["data"]["values"] = chart["frontier"]
    for axis, field in (("x", "size"), ("y", "time")):
        values = [row[field] for row in chart["rows"] if row[field] > 0]
        place = spec["encoding"][axis]
        place["title"] = chart[f"{axis}_title"]
        if chart[f"{axis}_wide"]:
            del place["scale"]["zero"]
            place["scale"]["type"] = "log"
            place["axis"] = {"values": charts.powers(min(values) / 2, 2 * max(values))}
    formats = list(dict.fromkeys(row["format"] for row in chart["rows"]))
    colours = [_FORMATS[place % len(_FORMATS)] for place in range(len(formats))]
    told = {"field": "format", "type": "nominal", "scale": {"domain": formats, "range": colours}, "title": None}
    shape = {**told, "scale": {"domain": formats}}
    _layer(spec, "points")["encoding"] |= {"color": told, "shape": shape}
    _layer(spec, "points")["mark"]["size"] = 25
    return spec


def lines_spec(chart: Chart) -> Spec:
    """Return the specification of a chart of lines over a parameter."""
    spec = lines.specification()
    spec["data"]["values"] = chart["rows"]
    data = {"crossing_bands": chart["crossings"], "joints": chart["labels"]}
    for each in spec["layer"]:
        if "data" in each:
            each["data"]["values"] = data.get(each["name"], chart.get(each["name"]))
    for name in ("labels", "other_labels"):
        size = f"length(datum.label) <= {LABEL_LETTERS} ? 5.8 : 4.6"
        _layer(spec, name)["mark"] |= {"lineBreak": "\n", "fontSize": {"expr": size}}
    _layer(spec, "lines")["mark"]["strokeWidth"] = 1.3
    _layer(spec, "points")["mark"]["size"] = 10
    for each in spec["layer"]:
        if "color" in each["encoding"]:
            each["encoding"]["color"]["scale"]["range"] = LINE_COLOURS
        if "y" in each["encoding"]:
            each["encoding"]["y"] |= chart["y"]
    _layer(spec, "other_labels")["mark"]["color"] = FAINT
    spec["encoding"]["x"] |= chart["x"]
    return spec


def _layer(spec: Spec, name: str) -> Spec:
    found: Spec = next(each for each in spec["layer"] if each.get("name") == name)
    return found
