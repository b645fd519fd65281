"""Print charts over a parameter as compact grids, with a row for each variant and a column for each value. Below each
grid, a line states where the best variant changes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from bench_runner.conditions import conditions_text
from reports.analysis.sections import TITLES, Contents
from reports.analysis.varied.charts import Chart, Line, crossover_texts, value_text
from reports.analysis.words import FALLBACK, FALLBACK_MEANING, NOTHING
from reports.text.page import folded, label_width_of, new_grid, print_lines

MOST_VALUES = 8
"""Number of values that fit next to each other. Further values are in another grid below."""
_LABEL_WIDTH = 30


def show_lines(page: Console, contents: Contents) -> None:
    """Print every chart of a run as a grid, with one heading for each axis."""
    _show_all(page, TITLES["lines"], contents.lines)
    if any(chart.whole for chart in contents.lines):
        print_lines(page, [FALLBACK_MEANING])


def show_throughput(page: Console, contents: Contents) -> None:
    """Print the throughput of queries by the share of row groups that a query reads, with a grid for each network."""
    _show_all(page, TITLES["throughput"], contents.throughput_lines)


def _show_all(page: Console, title: str, found: Sequence[Chart]) -> None:
    page.print()
    print_lines(page, [title], style="bold")
    for head, charts in itertools.groupby(found, head_of):
        page.print()
        print_lines(page, [head], style="bold")
        for place, chart in enumerate(charts):
            if place:
                page.print()
            _show(page, chart)


def head_of(chart: Chart) -> str:
    """Return the heading for the charts of one axis: suite, data, axis and conditions."""
    about = chart.dataset or chart.axis.rest
    return f"{chart.suite}: {about} over {chart.axis.title}, {conditions_text(chart.conditions)}"


def _show(page: Console, chart: Chart) -> None:
    for start in range(0, len(chart.axis.values), MOST_VALUES):
        values = chart.axis.values[start : start + MOST_VALUES]
        headers = [value_text(value) for value in values]
        lines = [(line, "", list(_texts(chart, line, values))) for line in chart.lines]
        if chart.whole:
            lines.append((chart.whole, f" {FALLBACK}", list(_texts(chart, chart.whole, values))))
        if chart.raw_io:
            lines.append((chart.raw_io, "", list(_texts(chart, chart.raw_io, values))))
        width = min(label_width_of(headers, [texts for *_, texts in lines], 2), _LABEL_WIDTH)
        grid = new_grid()
        name = escape(folded(f"{chart.figure_title}, {chart.unit.name}", width))
        grid.add_column(name, no_wrap=True, min_width=width)
        for header in headers:
            grid.add_column(header, justify="right", no_wrap=True, vertical="bottom")
        for line, mark, texts in lines:
            style = "dim italic" if line is chart.raw_io else "dim" if line is chart.whole else ""
            grid.add_row(escape(folded(line.label, width - len(mark)) + mark), *texts, style=style)
        page.print(grid)
    told = crossover_texts(chart)
    if chart.left_out:
        told.append(f"not shown: {', '.join(chart.left_out)}")
    print_lines(page, told)


def _texts(chart: Chart, line: Line, values: Sequence[float]) -> Iterator[Text | str]:
    for value in values:
        interval = line.points.get(value)
        if interval is None:
            yield Text(NOTHING, "dim")
            continue
        below = interval.median < chart.least
        text = f"<{chart.unit.text(chart.least)}" if below else chart.unit.text(interval.median)
        mark = line.marks.get(value, "")
        yield Text(text + mark, "bold green" if mark else "")
