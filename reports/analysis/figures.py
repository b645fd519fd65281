"""Figures under a title, a line for each label: what every output shows as a grid of text."""

from __future__ import annotations

from dataclasses import dataclass

from bench_runner.variants import Variant


@dataclass(frozen=True)
class Figures:
    """Figures under a title, a line for each label; `notes` explain them.

    Without a title, `corner` names the figures. A line break in a header is where a narrow column breaks it. A column
    without a header holds the spread of the column before it.
    """

    title: str
    corner: str
    headers: tuple[str, ...]
    lines: tuple[tuple[str, tuple[str, ...]], ...]
    notes: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    """The variant of each line, where the site links lines to their samples."""
    suite: str = ""
    """The only suite that they are of, in a section of a whole run; '' where they are of all of its suites."""
    abreast: int = 0
    """Columns that the terminal keeps next to each other, with long labels folded; 0: as many as leave the labels
    whole."""
    leading: frozenset[str] = frozenset()
    """Labels of the lines that are the best, or tied with it."""
