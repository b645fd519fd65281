"""What pages of the PDF say, without writing one: drawing all pages of a run takes seconds."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib.figure import Figure
from matplotlib.text import Text


def written_on(figures: Iterable[Figure]) -> str:
    """All texts of some pages, a line each."""
    return "\n".join(text.get_text() for figure in figures for text in figure.findobj(Text))


def drawn(figures: Iterable[Figure]) -> str:
    """All texts of some pages, which are drawn as well: some faults show only then."""
    pages = list(figures)
    for figure in pages:
        figure.draw_without_rendering()
    return written_on(pages)
