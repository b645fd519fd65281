"""Draw the PDF page about codecs. Charts of size against time show the Pareto frontier (the variants that no other
variant beats in both size and time). A table shows the effect of each codec."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from bench_runner.results.records import Run
from reports.analysis.codecs import break_even_text, codec_effects, frontier, signed_text
from reports.analysis.columns import READ_TIME, SAVE_TIME
from reports.analysis.tables import Table, unit_for
from reports.pdf.printed import scatter_spec, view_of
from reports.pdf.scene import draw_chart
from reports.site.charts import scatter_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEFTS, _TOP, _WIDTH, _HEIGHT = (0.085, 0.57), 0.895, 0.33, 0.25
"""Position and size of the charts as shares of the page. The legend of each chart is to its right."""
LINE_CHARACTERS = 72
MOST_NAME_LINES = 4
MOST_LINES = 34
"""Number of codecs that fit in the page's table. The terminal shows all codecs."""


def draw(figure: Figure, run: Run, table: Table) -> None:
    """Draw a chart of read time against size and a chart of save time against size. Below the charts, draw the table of
    codec effects."""
    view = view_of(run, table)
    for left, column in zip(_LEFTS, (READ_TIME, SAVE_TIME), strict=True):
        if not frontier(table, column):
            continue
        axes = draw_chart(figure, scatter_spec(scatter_of(view, column)), left, _TOP, _WIDTH, _HEIGHT)
        title = f"size against {column.title}, with the Pareto frontier"
        axes.set_title(title, fontsize=8.5, fontweight="bold", loc="left", y=1)
        names = [row.label.replace("[", " ").rstrip("]") for row in frontier(table, column)]
        # Non-breaking spaces keep each number next to its name.
        told = "  ".join(f"{number} {name}".replace(" ", "\xa0") for number, name in enumerate(names, 1))
        lines = textwrap.wrap(told, LINE_CHARACTERS, break_on_hyphens=False)[:MOST_NAME_LINES]
        figure.text(left, _TOP - _HEIGHT - 0.032, "\n".join(lines), fontsize=6, va="top", linespacing=1.35)
    _table(figure, table)


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
    title = "codecs compared with the same format without one, paired by round"
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
        figure.text(0.05, 0.535 - 0.0125 * len(lines), f"and {left_out} more, shown on the terminal", fontsize=6.8)
