"""Lay out text pages of 100 columns with lines, grids and labels. Nothing is cut off."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid
from rich.text import Text

WIDTH = 100
"""Width of the output in characters, whatever the width of the terminal. A pipe has no width, and tables must not be
cut."""
LEAST_LABEL_WIDTH = 12
"""Smallest number of characters that the figures leave for the label."""


def page_for(console: Console) -> Console:
    """Return a console of 100 columns that writes to the same file as `console`."""
    return Console(
        file=console.file, width=WIDTH, force_terminal=console.is_terminal, no_color=console.no_color, highlight=False
    )


def print_lines(page: Console, lines: Iterable[str], style: str = "") -> None:
    """Print plain lines. Long lines are wrapped, with further lines indented by two. Brackets are not markup."""
    for line in lines:
        for number, part in enumerate(Text(line, style=style).wrap(page, WIDTH - 2)):
            part.rstrip()
            page.print(Text("  " if number else "").append_text(part), soft_wrap=True)


def lines_of(text: str) -> int:
    """Return the number of lines that a string takes on a page, or on a terminal of the same width."""
    return max(len(Text(text).wrap(Console(width=WIDTH), WIDTH - 2)), 1)


def markdown_table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown. Bars in its entries are escaped."""
    rows = (head, ["---"] * len(head), *lines)
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)


def new_grid(padding: int = 2) -> Grid:
    """Return an empty grid without lines, with `padding` characters between its columns."""
    return Grid(box=None, padding=(0, padding, 0, 0), pad_edge=False, header_style="bold")


def labelled_grid(
    name: str,
    headers: Sequence[str],
    lines: Sequence[tuple[str, Sequence[Text | str], str]],
    *,
    padding: int = 2,
    left: int = 0,
) -> Grid:
    """Return a grid with a row for each (label, values, style). Long labels are wrapped; values are not. Values are
    right-aligned, except in the last `left` columns."""
    width = label_width_of(headers, [values for _, values, _ in lines], padding)
    grid = new_grid(padding)
    grid.add_column(name, no_wrap=True)
    for place, header in enumerate(headers):
        grid.add_column(header, justify="left" if place >= len(headers) - left else "right", no_wrap=True)
    for label, values, style in lines:
        grid.add_row(escape(folded(label, width)), *values, style=style)
    return grid


def width_of(header: str, texts: Iterable[Text | str], padding: int) -> int:
    """Return the width in characters of a column of figures, including its padding."""
    return padding + max(len(line) for text in (header, *texts) for line in str(text).split("\n"))


def label_width_of(headers: Sequence[str], cells: Sequence[Sequence[Text | str]], padding: int = 1) -> int:
    """Return the width in characters that remains for the labels next to the figures. Figures are never cut; labels may
    be folded."""
    taken = sum(width_of(header, texts, padding) for header, *texts in zip(headers, *cells, strict=True))
    return max(WIDTH - padding + 1 - taken, LEAST_LABEL_WIDTH)


def folded(label: str, width: int) -> str:
    """Return a label folded to `width`. A line break comes before the settings of a variant. Settings that are too long
    for one line are also broken after '=', ',' and '_'. A label without settings is folded between words."""
    if len(label) <= width:
        return label
    if "[" not in label:
        return "\n".join(textwrap.wrap(label, width, subsequent_indent=" "))
    name, bracket, settings = label.partition("[")
    lines = [name]
    for part in re.findall(r"[^=,_]+[=,_]?", bracket + settings):
        if len(lines) > 1 and len(lines[-1] + part) <= width:
            lines[-1] += part
        else:
            lines.append(f" {part}")
    return "\n".join(lines)
