"""Print `Figures` (tables of numbers) as grids of text. A grid has as many columns next to each other as fit on the
page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.text import Text

from reports.analysis.figures import Figures
from reports.text.page import WIDTH, labelled_grid, print_lines, width_of

_HEADER_WIDTH = 13
"""Column titles are wrapped at this many characters."""
_FEWEST_LABELS, _MOST_LABELS = 26, 46
"""Smallest and largest number of characters reserved for the labels. Between these limits, the longest label
decides."""


def show_figures(page: Console, title: str, found: Iterable[Figures]) -> None:
    """Print a section that consists of `Figures` (tables of numbers). Each of them has a title, one or more grids, and
    notes."""
    page.print()
    print_lines(page, [title], style="bold")
    for figures in found:
        if figures.title:
            page.print()
            print_lines(page, [figures.title], style="bold")
        headers = [_broken(header) for header in figures.headers]
        for part in _parts(figures, headers):
            lines = [
                (label, [Text(text) for text in texts[part]], "bold green" if label in figures.leading else "")
                for label, texts in figures.lines
            ]
            page.print(labelled_grid(figures.corner, headers[part], lines))
        print_lines(page, figures.notes)


def _broken(header: str) -> str:
    return "\n".join(line for part in header.split("\n") for line in textwrap.wrap(part, _HEADER_WIDTH))


def _parts(figures: Figures, headers: list[str]) -> Iterator[slice]:
    if figures.abreast:
        yield from (slice(start, start + figures.abreast) for start in range(0, len(headers), figures.abreast))
        return
    longest = max((len(label) for label, _ in figures.lines), default=0)
    room = WIDTH - min(max(longest + 2, _FEWEST_LABELS), _MOST_LABELS)
    start, taken = 0, 0
    for place, header in enumerate(headers):
        width = width_of(header, (texts[place] for _, texts in figures.lines), 2)
        if taken and taken + width > room:
            yield slice(start, place)
            start, taken = place, 0
        taken += width
    yield slice(start, len(headers))
