"""Draw charts on PDF pages. Vega lays out the site's Vega-Lite specifications, and matplotlib draws the resulting
shapes.

The site and the PDF use the same specification for each chart. On a page, the chart consists of vectors and searchable
text.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.pdf.page import FAINT, TEXT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Scene = Mapping[str, Any]
POINTS = 72
"""Points per inch. A pixel of a chart is a point on the page."""
LOOK: Mapping[str, Any] = {
    "font": "DejaVu Sans",
    "background": None,
    "view": {"stroke": None},
    "axis": {
        "labelColor": FAINT,
        "titleColor": FAINT,
        "titleFontWeight": "normal",
        "gridColor": "#eeeeee",
        "domainColor": FAINT,
        "tickColor": FAINT,
        "tickSize": 3,
        "labelFontSize": 6,
        "titleFontSize": 6.5,
        "titlePadding": 4,
    },
    "axisX": {"labelOverlap": "greedy", "tickCount": 5},
    "axisBand": {
        "grid": False,
        "ticks": False,
        "domain": False,
        "labelColor": TEXT,
        "labelPadding": 3,
        "labelFontSize": 6.8,
    },
    "rule": {"color": "black"},
    "tick": {"color": "black"},
    "text": {"color": TEXT, "fontSize": 6.5},
    "line": {"color": FAINT, "strokeWidth": 1},
    "legend": {"labelFontSize": 6, "titleFontSize": 6.5, "symbolSize": 20, "rowPadding": 0},
}
_IN_ORDER = 1
"""Z-order of all artists. All artists have the same z-order, so that later shapes cover earlier ones."""
_BASELINES = {"middle": "center_baseline", "alphabetic": "baseline"}
_MARKERS = {"circle": "o", "square": "s", "diamond": "D", "cross": "P", "triangle-up": "^", "triangle-down": "v"}
_MARKERS |= {"triangle-left": "<", "triangle-right": ">", "triangle": "^", "stroke": "_"}


def draw_chart(figure: Figure, spec: Mapping[str, Any], left: float, top: float, width: float, height: float) -> Axes:
    """Draw a chart into a rectangle and return its axes. The position and size of the rectangle are shares of the page.
    The axis labels of the chart are outside of the rectangle."""
    wide, high = width * figure.get_figwidth() * POINTS, height * figure.get_figheight() * POINTS
    axes = figure.add_axes((left, top - height, width, height))
    axes.set_axis_off()
    axes.set_xlim(0, wide)
    axes.set_ylim(high, 0)
    sized = {**spec, "width": wide, "height": high, "autosize": {"type": "none"}, "config": LOOK}
    _draw(axes, _converter().vegalite_to_scenegraph(sized, allowed_base_urls=[])["scenegraph"], 0, 0)
    return axes


@cache
def _converter() -> Any:
    """Return the Vega library with the page's font. Vega then measures text in the font in which the text is drawn."""
    import matplotlib
    import vl_convert

    vl_convert.register_font_directory(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf"))
    return vl_convert


def _draw(axes: Axes, mark: Scene, left: float, top: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    kind, items, clipped = mark["marktype"], mark["items"], mark["clip"]
    if kind in ("line", "area") and items:
        across = [left + item["x"] for item in items]
        down = [top + item["y"] for item in items]
        if kind == "line":
            stepped = items[0].get("interpolate") == "step-after"
            line = Line2D(across, down, clip_on=clipped, **_stroke(items[0]))
            line.set_drawstyle("steps-post" if stepped else "default")
            axes.add_artist(line)
        else:
            ends = [top + item["y2"] for item in items]
            axes.fill_between(across, down, ends, clip_on=clipped, linewidth=0, **_filled(items[0]))
        return
    for item in items:
        x, y = left + item.get("x", 0), top + item.get("y", 0)
        if kind == "group":
            for part in item.get("items", ()):
                _draw(axes, part, x, y)
        elif kind == "rule":
            ends = [left + item.get("x2", item.get("x", 0)), top + item.get("y2", item.get("y", 0))]
            axes.add_artist(Line2D((x, ends[0]), (y, ends[1]), clip_on=clipped, **_stroke(item)))
        elif kind == "rect":
            size = item["width"], item["height"]
            axes.add_artist(Rectangle((x, y), *size, clip_on=clipped, linewidth=0, **_filled(item)))
        elif kind == "symbol":
            look = {**_filled(item), "marker": _MARKERS[item.get("shape", "circle")], "markeredgewidth": 0}
            axes.add_artist(Line2D((x,), (y,), markersize=item["size"] ** 0.5, clip_on=clipped, **look))
        elif kind == "text":
            _write(axes, item, x, y)


def _stroke(item: Scene) -> dict[str, Any]:
    dash = item.get("strokeDash") or ()
    width = item.get("strokeWidth", 1)
    return {
        "color": item["stroke"],
        "alpha": item.get("opacity"),
        "linewidth": width,
        "linestyle": (0, [each / width for each in dash]) if any(dash[1:]) else "solid",
        "solid_capstyle": "butt",
        "zorder": _IN_ORDER,
    }


def _filled(item: Scene) -> dict[str, Any]:
    return {"color": item["fill"], "alpha": item.get("opacity"), "zorder": _IN_ORDER}


def _write(axes: Axes, item: Scene, x: float, y: float) -> None:
    text = item.get("text", "")
    axes.text(
        x + item.get("dx", 0),
        y + item.get("dy", 0),
        "\n".join(text) if isinstance(text, list) else str(text),
        fontsize=item["fontSize"],
        fontweight=item.get("fontWeight", "normal"),
        color=item["fill"],
        ha=item.get("align", "left"),
        va=_BASELINES.get(item.get("baseline", "alphabetic"), item.get("baseline")),
        rotation=-item.get("angle", 0),
        linespacing=1.1,
        parse_math=False,
        zorder=_IN_ORDER,
    )
