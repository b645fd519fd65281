"""The PDF page on codecs: size against time with the Pareto frontier, and what each codec adds.

Drawn into a page that reports.pdf.pages has prepared; what the numbers mean is in reports.analysis.codecs.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from reports.analysis.codecs import break_even_text, codec_effects, frontier, point, signed_text
from reports.analysis.columns import READ_TIME, SAVE_TIME, Column
from reports.analysis.tables import Row, Table, unit_for
from reports.analysis.units import MEGABYTES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#08306b", "#b35806", "#2f7fbc", "#fdb863", "#5e3c99", "#7f7f7f", "#1b7837", "#c51b7d", "#000000")
_MARKERS = "osD^vP*Xh<>"
LINE_CHARACTERS = 72
MOST_NAME_LINES = 4
MOST_LINES = 34
"""Codecs that fit in the page's table; the terminal shows all."""


def draw(figure: Figure, table: Table) -> None:
    """Two charts, reading and saving against size, above the table of what each codec adds."""
    names = list(dict.fromkeys(row.variant.format_name for row in table.rows if not row.variant.is_raw_io))
    grid = figure.add_gridspec(1, 2, left=0.085, right=0.965, top=0.895, bottom=0.645, wspace=0.22)
    for place, column in enumerate((READ_TIME, SAVE_TIME)):
        axes = figure.add_subplot(grid[0, place])
        _chart(axes, table, column, names)
        _name_frontier(figure, axes, table, column)
    _table(figure, table)


def _chart(axes: Axes, table: Table, time: Column, names: list[str]) -> None:
    unit = unit_for(table, "wall_ns")
    drawn: set[str] = set()
    reach: list[tuple[float, float]] = []
    for row in table.rows:
        place_of = _point(row, time, unit.scale)
        if place_of is None:
            continue
        name = row.variant.format_name
        place = names.index(name)
        axes.plot(
            *place_of,
            marker=_MARKERS[place % len(_MARKERS)],
            color=_COLOURS[place % len(_COLOURS)],
            linestyle="none",
            markersize=5,
            label=name if name not in drawn else None,
            zorder=3,
        )
        drawn.add(name)
        reach.append(place_of)
    best = [_point(row, time, unit.scale) for row in frontier(table, time)]
    corners = [corner for corner in best if corner is not None]
    if corners:
        axes.step(*zip(*corners, strict=True), where="post", color="#777777", linewidth=0.9, zorder=2)
    for number, corner in enumerate(corners, 1):
        # A number: names would lie over each other where points are near.
        axes.annotate(str(number), corner, xytext=(4, 4), textcoords="offset points", fontsize=6, fontweight="bold")
    for values, scale in zip(zip(*reach, strict=True), (axes.set_xscale, axes.set_yscale), strict=False):
        if max(values) > 10 * min(values) > 0:
            scale("log")
    axes.margins(0.12)
    axes.set_xlabel("size (MB)", fontsize=7)
    axes.set_ylabel(f"{time.title} ({unit.name})", fontsize=7)
    axes.set_title(f"size against {time.title}, with the Pareto frontier", fontsize=8.5, fontweight="bold", loc="left")
    axes.tick_params(labelsize=6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#eeeeee", linewidth=0.6, zorder=0)
    if drawn:
        axes.legend(fontsize=6, frameon=False, loc="best")


def _name_frontier(figure: Figure, axes: Axes, table: Table, time: Column) -> None:
    """Which variants the numbers on the frontier are, below their chart."""
    names = [row.label.replace("[", " ").rstrip("]") for row in frontier(table, time)]
    # With spaces at which no line is broken, so that a number stays with its name.
    told = "  ".join(f"{number} {name}".replace(" ", "\xa0") for number, name in enumerate(names, 1))
    place = axes.get_position()
    lines = textwrap.wrap(told, LINE_CHARACTERS, break_on_hyphens=False)[:MOST_NAME_LINES]
    figure.text(place.x0, place.y0 - 0.032, "\n".join(lines), fontsize=6, va="top", linespacing=1.35)


def _point(row: Row, time: Column, scale: float) -> tuple[float, float] | None:
    found = point(row, time)
    return None if found is None else (found[0] / MEGABYTES.scale, found[1] / scale)


def _table(figure: Figure, table: Table) -> None:
    unit = unit_for(table, "wall_ns")
    effects = codec_effects(table)
    lines = [("format", f"save + ({unit.name})", f"read + ({unit.name})", "size ratio", "reads faster below MB/s")]
    lines += [
        (
            effect.row.label.replace("[", " ["),
            "-" if effect.save_delta_ns is None else signed_text(effect.save_delta_ns.median, unit),
            "-" if effect.read_delta_ns is None else signed_text(effect.read_delta_ns.median, unit),
            ("-" if effect.ratio is None else f"{effect.ratio:.2f}")
            + (" (saves nothing)" if effect.saves_nothing else ""),
            break_even_text(effect.break_even),
        )
        for effect in effects[:MOST_LINES]
    ]
    title = "what each codec adds to its format without one, paired by round"
    figure.text(0.05, 0.555, title, fontsize=8.5, fontweight="bold")
    for number, texts in enumerate(lines):
        for left, text in zip((0.05, 0.52, 0.64, 0.79, 0.965), texts, strict=True):
            figure.text(
                left,
                0.535 - 0.0125 * number,
                text,
                fontsize=6.8,
                ha="left" if left == 0.05 else "right",
                va="top",
                fontweight="bold" if number == 0 else "normal",
            )
    left_out = len(effects) - MOST_LINES
    if left_out > 0:
        figure.text(0.05, 0.535 - 0.0125 * len(lines), f"and {left_out} more, which the terminal shows", fontsize=6.8)
