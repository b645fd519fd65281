"""A page of text: 100 columns wide whatever it is written to, with lines, grids and labels that are never cut."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid
from rich.text import Text

WIDTH = 100
"""Columns of the output, whatever the terminal has: a pipe has no width, and tables must not be cut."""
LEAST_LABEL_WIDTH = 12
"""What the figures must leave of them for the format."""


def page_for(console: Console) -> Console:
    """A console that writes to the same place, 100 columns wide: a pipe has no width, and tables must not be
    cut."""
    return Console(
        file=console.file,
        width=WIDTH,
        force_terminal=console.is_terminal,
        no_color=console.no_color,
        highlight=False,
    )


def print_lines(page: Console, lines: Iterable[str], style: str = "") -> None:
    """Print plain lines, wrapped with a hanging indent of two; brackets are no markup here."""
    for line in lines:
        for number, part in enumerate(Text(line, style=style).wrap(page, WIDTH - 2)):
            part.rstrip()
            page.print(Text("  " if number else "").append_text(part), soft_wrap=True)


def lines_of(text: str) -> int:
    """How many lines of a page, or of a terminal as wide, a text takes."""
    return max(len(Text(text).wrap(Console(width=WIDTH), WIDTH - 2)), 1)


def markdown_table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; a bar in a cell does not divide it."""
    rows = (head, ["---"] * len(head), *lines)
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)


def new_grid(padding: int = 2) -> Grid:
    """An empty grid without lines, `padding` columns between its columns."""
    return Grid(box=None, padding=(0, padding, 0, 0), pad_edge=False, header_style="bold")


def labelled_grid(
    name: str,
    headers: Sequence[str],
    lines: Sequence[tuple[str, Sequence[Text | str], str]],
    *,
    padding: int = 2,
    left: int = 0,
) -> Grid:
    """A grid of lines (label, values, style) in which labels are folded and values never: all values to the right, but
    the last `left` columns."""
    width = label_width_of(headers, [values for _, values, _ in lines], padding)
    grid = new_grid(padding)
    grid.add_column(name, no_wrap=True)
    for place, header in enumerate(headers):
        grid.add_column(header, justify="left" if place >= len(headers) - left else "right", no_wrap=True)
    for label, values, style in lines:
        grid.add_row(escape(folded(label, width)), *values, style=style)
    return grid


def width_of(header: str, texts: Iterable[Text | str], padding: int) -> int:
    """How much of the page a column of figures takes."""
    return padding + max(len(line) for text in (header, *texts) for line in str(text).split("\n"))


def label_width_of(headers: Sequence[str], cells: Sequence[Sequence[Text | str]], padding: int = 1) -> int:
    """What the figures leave of the page for the format: figures are never cut, labels may be folded."""
    taken = sum(width_of(header, texts, padding) for header, *texts in zip(headers, *cells, strict=True))
    return max(WIDTH - padding + 1 - taken, LEAST_LABEL_WIDTH)


def folded(label: str, width: int) -> str:
    """A long label breaks before its settings and, where they are too long for a line, after '=', ',' and '_'. A label
    without settings breaks between its words."""
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
