"""Figures under a title as grids of text: as many columns beside each other as the page has room for.

It knows nothing of what the figures are of.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from rich.console import Console

from reports.analysis.figures import Figures
from reports.text.page import WIDTH, labelled_grid, print_lines, width_of

_HEADER_WIDTH = 13
"""Titles of columns are broken into lines of this many characters."""
_FEWEST_LABELS, _MOST_LABELS = 26, 46
"""What figures leave for the labels, by the longest of them."""


def show_figures(page: Console, found: Iterable[Figures]) -> None:
    """Each under its title, its notes below."""
    for figures in found:
        page.print()
        print_lines(page, [figures.title], style="bold")
        headers = ["\n".join(textwrap.wrap(header, _HEADER_WIDTH)) for header in figures.headers]
        for part in _parts(figures, headers):
            lines = [(label, texts[part], "") for label, texts in figures.lines]
            page.print(labelled_grid(figures.corner, headers[part], lines))
        print_lines(page, figures.notes)


def _parts(figures: Figures, headers: list[str]) -> Iterator[slice]:
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
