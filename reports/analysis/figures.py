"""Define `Figures`: a table of numbers with a title and a row for each label. Every output shows such a table as a
grid."""

from __future__ import annotations

from dataclasses import dataclass

from bench_runner.variants import Variant


@dataclass(frozen=True)
class Figures:
    """Figures under a title, with a row for each label. `notes` explain the figures.

    `corner` is the header of the labels. Without a title, `corner` names the figures. A line break in a header shows
    where a narrow column may break the header. A column without a header holds the spread of the column before it.
    """

    title: str
    corner: str
    headers: tuple[str, ...]
    lines: tuple[tuple[str, tuple[str, ...]], ...]
    notes: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    """The variant of each row, if the site links rows to their samples."""
    suite: str = ""
    """The suite of these figures in a section about a whole run; '' if the figures cover all suites."""
    abreast: int = 0
    """Number of columns that the terminal keeps next to each other. To make them fit, the terminal folds long labels.
    With 0, as many columns as fit next to unfolded labels are shown."""
    leading: frozenset[str] = frozenset()
    """Labels of the rows that are best, or tied with the best."""
