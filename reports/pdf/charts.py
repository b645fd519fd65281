"""Draw the PDF's pages of bar charts: one chart for each column of a table, as in the thesis's figure 5.3.

Where figure 5.3 misleads, the charts here differ. Their bars have intervals and values, and the axis is logarithmic if
the values span more than a factor of ten. Colour shows the ratio to the best. In figure 5.3, colour shows the ratio to
the mean, which one slow format distorts.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from bench_runner.conditions import conditions_text
from bench_runner.results.records import Run
from bench_runner.variants import OperationName, Variant
from reports.analysis.bands import BANDS
from reports.analysis.columns import Column, Role
from reports.analysis.labels import short_labels
from reports.analysis.sections import TITLES
from reports.analysis.tables import Row, Table, amount_text
from reports.analysis.words import CACHED, FALLBACK, titles
from reports.pdf.page import above_foot, in_two_lines, new_page, spaced
from reports.pdf.printed import APART_COLOUR, bars_spec, view_of
from reports.pdf.scene import draw_chart
from reports.site.charts import bars_of
from reports.site.views import RowView, TableView

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch
    from matplotlib.transforms import Bbox

MOST_ROWS = 20
"""Number of variants that fit on one page. Further variants are on another page of the same table."""
FEWEST_ROWS = 10
"""Each bar is at most as thick as if the chart had this many rows, so that a short table has no thick bars."""
MOST_REMARKS = 15
"""Number of lines of remarks that fit next to the charts."""
BESIDE = 2
"""Number of operations other than save and read that share a page."""
LONG_TITLE, LONGEST_TITLE = 42, 54
"""Titles of more than LONG_TITLE characters are printed in smaller type, so that they are no wider than the chart. For
titles of more than LONGEST_TITLE characters, the type size depends on the length."""
NAME_LETTERS, LONG_NAME_LETTERS = 29, 34
"""Number of characters of a variant's name that fit next to its bar, in normal and in smaller type. Longer names take
two lines."""
FEW_ROWS = 13
"""With at most this many rows, names on two lines are printed in the larger of two type sizes."""
_NAME_POINTS, _TWO_LINES_POINTS, _SMALL_POINTS = 6.8, 5.8, 4.8
VALUE_WIDTH = 0.085
"""Width for the values to the right of the bars, as a share of the page."""


def table_pages(run: Run, table: Table) -> Iterator[Figure]:
    """Yield pages with charts of saving and reading. These are the five charts of the thesis's figure 5.3, or fewer if
    the table lacks columns."""
    columns = [column for column in table.columns if column.operation in table.columns.main]
    places = ((0, 0), (0, 1), (1, 0), (2, 0), (2, 1))
    title = f"{table.suite}: {table.dataset}"
    charts = dict(zip(places, columns, strict=False))
    for rows, told in _parts(table.rows, table.columns.main):
        yield _page(run, table, rows, told, title, charts, (1, 1))


def further_pages(run: Run, table: Table) -> Iterator[Figure]:
    """Yield pages with charts of the other operations. Each operation has one row of charts, with the variants for
    which it was tried."""
    title = f"{table.suite}: {table.dataset}, {TITLES['further operations']}"
    further = table.columns.listed
    for start in range(0, len(further), BESIDE):
        operations = further[start : start + BESIDE]
        # A row has only two charts. The terminal and the site show the sizes of further operations.
        shown = [[column for column in table.columns.of(name) if _has_chart(table, column)] for name in operations]
        charts = {(down, across): column for down, line in enumerate(shown) for across, column in enumerate(line)}
        tried = [row for row in table.rows if row.cells.keys() & set(operations)]
        for rows, told in _parts(tried, operations):
            yield _page(run, table, rows, told, title, charts, (len(shown), 0))


def _has_chart(table: Table, column: Column) -> bool:
    """Return whether a column gets a chart. A time always gets one, because the chart explains missing figures. Memory
    gets a chart only if there are figures."""
    if column.role is Role.TIME:
        return True
    return column.role is not Role.SIZE and any(row.interval(column) is not None for row in table.rows)


def _parts(rows: Sequence[Row], operations: Sequence[OperationName]) -> Iterator[tuple[Sequence[Row], Sequence[Row]]]:
    """Yield (rows to draw, rows to explain) for each page.

    Variants without a figure are only explained. They need no additional page, because the last page explains them.
    """
    shown = [row for row in rows if not row.variant.is_raw_io]
    parts = [shown[start : start + MOST_ROWS] for start in range(0, len(shown), MOST_ROWS)]
    kept = [part for number, part in enumerate(parts) if number == 0 or any(_is_drawn(row, operations) for row in part)]
    left_out = [row for part in parts if part not in kept for row in part]
    for part in kept:
        yield part, [*part, *left_out] if part is kept[-1] else part


def _is_drawn(row: Row, operations: Sequence[OperationName]) -> bool:
    return any(row.cells[name].figures for name in operations if name in row.cells)


def _page(
    run: Run,
    table: Table,
    rows: Sequence[Row],
    told: Sequence[Row],
    title: str,
    charts: dict[tuple[int, int], Column],
    explained: tuple[int, int],
) -> Figure:
    """Return a page with charts of `rows`. The page is a grid of three rows and two columns. `charts` maps a position
    in this grid to the table column that is drawn there. The position `explained` has the legend and the notes on the
    rows `told`."""
    about = run.info.datasets.get(table.dataset)
    named = f" ({about.title})" if about and about.title not in ("", table.dataset) else ""
    below = f"{amount_text(run, table)}{named}; {conditions_text(table.conditions)}; machine {table.machine}"
    figure = new_page(run, title, below)
    view = view_of(run, table)
    shown = {row.row: row for row in view.rows}
    bottom = above_foot(run, 0.09) + 0.015
    grid = figure.add_gridspec(3, 2, left=0.20, right=0.965, top=0.905, bottom=bottom, hspace=0.24, wspace=0.10)
    for (down, across), column in charts.items():
        place = grid[down, across].get_position(figure)
        _chart(figure, place, view, [shown[row] for row in rows], column, labelled=across == 0)
    operations = tuple(dict.fromkeys(column.operation for column in charts.values()))
    _explain(figure.add_subplot(grid[explained]), run, table, told, operations)
    return figure


def row_name(name: str) -> str:
    """Return the name of a variant as printed next to its bar. The name has at most two lines and is broken between its
    parts."""
    return in_two_lines(spaced(name), LONG_NAME_LETTERS)


def _points(label: str, rows: int) -> float:
    """Return the type size for a label next to its bar. Labels of two lines are smaller, depending on their length."""
    lines = label.splitlines()
    usual = _NAME_POINTS if len(lines) < 2 else _TWO_LINES_POINTS if rows <= FEW_ROWS else _SMALL_POINTS
    return min(usual, _NAME_POINTS * NAME_LETTERS / max(map(len, lines)))


def _chart(
    figure: Figure, place: Bbox, view: TableView, rows: Sequence[RowView], column: Column, *, labelled: bool
) -> None:
    chart = bars_of(view, column, rows)
    for row in chart["rows"]:
        row["label"] = row_name(row["label"])
    points = {row["label"]: _points(row["label"], len(rows)) for row in chart["rows"]}
    width, height = place.width - VALUE_WIDTH, place.height * min(len(rows) / FEWEST_ROWS, 1)
    spec = bars_spec(chart, labelled=labelled, points=points)
    axes = draw_chart(figure, spec, place.x0, place.y1, width, height)
    title = f"{column.title} ({chart['unit']}{', logarithmic' if chart['wide'] else ''})"
    axes.set_title(title, fontsize=title_points(title), fontweight="bold", loc="left", pad=4, y=1)


def title_points(title: str) -> float:
    """Return a type size at which a title fits the width of its chart."""
    return 8.5 if len(title) <= LONG_TITLE else min(7.0, 7.0 * LONGEST_TITLE / len(title))


def _explain(axes: Axes, run: Run, table: Table, rows: Sequence[Row], operations: Sequence[OperationName]) -> None:
    """Write next to the charts: the legend, the rounds, and notes on variants without figures or with losses."""
    from matplotlib.patches import Patch

    axes.axis("off")
    patches = [Patch(facecolor=colour, label=meaning) for _, colour, meaning in BANDS]
    if table.few_rounds:
        patches[0].set_label("lowest (no verdict)")
    if any(row.variant.is_apart for row in rows):
        patches.append(_apart("not ranked: different result"))
    if any(row.fallback(name) for row in rows for name in operations):
        patches.append(_apart(f"not ranked: {FALLBACK} reads all, then selects"))
    if any(row.cached(name) for row in rows for name in operations):
        patches.append(_apart(f"not ranked: {CACHED} from the library's own memory"))
    if any(table.counted(column).too_few for column in table.columns if column.operation in operations):
        patches.append(_apart("not ranked: most variants have no figure"))
    axes.legend(
        handles=patches,
        loc="upper left",
        frameon=False,
        fontsize=7,
        bbox_to_anchor=(-0.02, 1.04),
        title="ratio to the best",
        title_fontsize=7.5,
        alignment="left",
        labelspacing=0.35,
    )
    lines = []
    for paragraph in _paragraphs(run, table, rows, operations):
        told = textwrap.shorten(paragraph, 180, placeholder=" ...")
        lines += textwrap.wrap(told, 64, subsequent_indent="   ", break_on_hyphens=False)
    if len(lines) > MOST_REMARKS:
        lines = [*lines[: MOST_REMARKS - 1], "   ... more on the terminal: format-bench report"]
    axes.text(0, 0.60, "\n".join(lines), fontsize=6.2, va="top", linespacing=1.35, transform=axes.transAxes)


def _apart(meaning: str) -> Patch:
    from matplotlib.patches import Patch

    return Patch(facecolor=APART_COLOUR, label=meaning)


def _paragraphs(run: Run, table: Table, rows: Sequence[Row], operations: Sequence[OperationName]) -> list[str]:
    whisker = "minimum to maximum (under 5 rounds: no verdicts)" if table.few_rounds else "95 % interval of the median"
    few = "" if table.few_rounds else ", minimum to maximum under 5 rounds"
    marks = "" if table.few_rounds else " * best, = tied."
    found = [f"Bars: medians. Whiskers: {whisker}{few}.{marks} Dashed: raw I/O, a plain write and read."]
    if table.least_bytes:
        found.append("Pale memory bars: too little memory to be measured in this run.")
    names = short_labels(row.variant for row in table.rows)
    found.append(f"Counted rounds: {_rounds(names, rows, operations)}.")
    stops: dict[str, list[str]] = {}
    for row in rows:
        for failure, stopped in row.failures.items():
            if set(stopped) & set(operations):
                told = f"{titles(run, stopped)} {failure.kind}: {failure.reason}"
                stops.setdefault(told, []).append(names[row.variant])
    found += [f"{' and '.join(stopped)}: {told}" for told, stopped in stops.items()]
    found += [f"{names[row.variant]} is lossy: {'; '.join(row.losses)}" for row in rows if row.losses]
    return found


def _rounds(names: Mapping[Variant, str], rows: Sequence[Row], operations: Sequence[OperationName]) -> str:
    groups: dict[int, list[str]] = {}
    for row in rows:
        counted = [row.cells[name].rounds for name in operations if name in row.cells and row.cells[name].rounds]
        if counted:
            groups.setdefault(min(counted), []).append(names[row.variant])
    if not groups:
        return "none"
    most = max(groups, key=lambda number: len(groups[number]))
    # Names contain commas, so 'and' joins them.
    others = [f"{number} for {' and '.join(labels)}" for number, labels in sorted(groups.items()) if number != most]
    return "; ".join([str(most), *others])
