"""Define tables of numbers: a title, and one row per label. Every output shows them as a grid."""

from __future__ import annotations

from dataclasses import dataclass

from bench_runner.variants import Variant


@dataclass(frozen=True)
class Figures:
    """Figures under a title, with a line for each label and explaining `notes`.

    Without a title, `corner` names the figures. A line break in a header marks where a narrow column breaks the header.
    A column without a header holds the spread of the column before it.
    """

    title: str
    corner: str
    headers: tuple[str, ...]
    lines: tuple[tuple[str, tuple[str, ...]], ...]
    notes: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    """The variant of each line, if the site links lines to their samples."""
    suite: str = ""
    """The only suite of these figures in a section about a whole run; '' if they cover all suites."""
    abreast: int = 0
    """Number of columns that the terminal keeps next to each other, for which it folds long labels. With 0, it shows as
    many columns as fit next to whole labels."""
    leading: frozenset[str] = frozenset()
    """Labels of the lines that are best, or tied with the best."""
