"""Draw a page of the PDF: A4, with a title, text tables, and a footer with run, machine and versions.

This module does not use pyplot, so that no figures stay open.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench_runner.results.records import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

A4_INCHES = (8.27, 11.69)
TEXT, FAINT = "#222222", "#777777"
TOP, LINE_HEIGHT = 0.91, 0.018
"""Two shares of the page's height: the vertical position of the first row of a text table, and the distance between
rows."""
_FOOT, _FOOT_LINE = 0.014, 6 * 1.4 * 1.17 / 72 / A4_INCHES[1]
"""Two shares of the page's height: the vertical position of the footer, and the height of a footer line. The footer has
6-point type with a letter height of 1.17 and a line spacing of 1.4."""
LABEL_LETTERS = 34
"""Number of characters of a label that fit to the left of the first column of figures. Longer labels take two lines,
and the longest labels have smaller type."""
_POINTS, _HEAD_POINTS, _TWO_LINES_POINTS = 7.0, 6.4, 5.8
"""Type sizes of table rows, of table headers, and of labels with two lines that must fit the height of one row."""
_MIDDLE = 4.1 / 72 / A4_INCHES[1]
"""Distance from the top of a row to the middle of its type."""
FURTHER_LINE = 0.62
"""Height of each additional line within a row, as a multiple of the height of a row."""
MOST_LINES = 44
"""Number of rows of a text table that fit on a page."""


def new_page(run: Run, title: str, below: str) -> Figure:
    """Return an empty page with title and footer. `below` is a line of text below the title."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=A4_INCHES)
    figure.text(0.05, 0.972, title, fontsize=13, fontweight="bold", va="top")
    below = below if "\n" in below else textwrap.fill(below, 130)
    figure.text(0.05, 0.950, below, fontsize=8, color=FAINT, va="top")
    figure.text(0.05, _FOOT, "\n".join(_foot(run)), fontsize=6, color=FAINT, va="bottom", linespacing=1.4)
    return figure


def above_foot(run: Run, least: float) -> float:
    """Return the lowest vertical position above the footer, as a share of the page. The result is at least `least`. It
    is higher if the versions of many libraries make the footer high."""
    return max(least, _FOOT + len(_foot(run)) * _FOOT_LINE + 0.008)


def _foot(run: Run) -> list[str]:
    info, machine = run.info, run.info.machine
    facts = [
        info.id or run.folder.name,
        machine.name,
        machine.cpu or "",
        f"{machine.cores} cores" if machine.cores else "",
        f"{machine.memory_bytes / 1e9:.0f} GB" if machine.memory_bytes else "",
        machine.kernel or "",
        f"on {machine.virtualisation}" if machine.is_virtual else "",
    ]
    dirty = " with uncommitted changes" if info.dirty else ""
    folders = [
        f"{name}: {folder.filesystem or '?'} on {folder.device or '?'}" for name, folder in info.work_dirs.items()
    ]
    made = [
        (info.started or "")[:16].replace("T", " "),
        f"commit {info.commit[:12]}{dirty}" if info.commit else "",
        f"seed {info.seed}" if info.seed is not None else "",
        f"rounds asked for: {info.rounds_asked}" if info.rounds_asked else "",
        f"working folder {', '.join(folders)}" if folders else "",
    ]
    versions = {"python": machine.python, **info.libraries}
    named = [f"{name} {version}" for name, version in versions.items() if version]
    lines = [" · ".join(filter(None, facts)), " · ".join(filter(None, made)), " · ".join(named)]
    return [part for line in lines if line for part in textwrap.wrap(line, 170)]


def spaced(label: str) -> str:
    """Return a label with a space before its settings, so that it may be wrapped there."""
    return label.replace("[", " [")


def lines_of(text: str, width: int, between: str = " ") -> list[str]:
    """Return a string wrapped at `width` characters. Lines break at `between`. A part that is longer than a line is
    also broken before and within its settings, but nowhere else."""
    words = [part for word in text.split(between) for part in _parted(word, width)]
    found: list[str] = []
    for word, glued in words:
        longer = f"{found[-1]}{'' if glued else between}{word}" if found else word
        if found and len(longer) <= width:
            found[-1] = longer
            continue
        if found and not glued:
            found[-1] += between.rstrip()
        found.append(word)
    return found


def _parted(word: str, width: int) -> list[tuple[str, bool]]:
    """Split a word where a line may break. Return each part with a flag: whether the part continues the part before
    it."""
    if len(word) <= width:
        return [(word, False)]
    parts = [part for part in re.split(r"(?<=,)|(?=\[)", word) if part]
    return [(part, number > 0) for number, part in enumerate(parts)]


def draw_lines(
    figure: Figure,
    lines: Sequence[Sequence[str]],
    lefts: Sequence[float],
    *,
    numbers: bool = True,
    start: float = 0,
    head: bool = True,
) -> None:
    """Draw a table of strings. If `head` is true, the first row is the header.

    `lefts` are the horizontal positions at which columns begin. With `numbers`, only the first column begins at its
    position; all other columns end at theirs, and long labels take two lines of smaller type. `start` is the number of
    rows above the table.
    """
    for number, texts in enumerate(lines):
        for place, (left, text) in enumerate(zip(lefts, texts, strict=True)):
            told, points = (text, _POINTS) if place or not numbers else _label(text)
            heads = head and number == 0
            centred = numbers and not heads and "\n" in told
            figure.text(
                left,
                TOP - (start + number) * LINE_HEIGHT - (_MIDDLE if centred else 0),
                told,
                fontsize=_HEAD_POINTS if heads else points,
                linespacing=1.05 if centred else 1.15,
                ha="right" if numbers and place else "left",
                va="center" if centred else "top",
                fontweight="bold" if heads else "normal",
            )


def _label(text: str) -> tuple[str, float]:
    """Return the label of a row as printed, and its type size."""
    told = in_two_lines(text)
    longest = max(map(len, told.splitlines()), default=0)
    points = _TWO_LINES_POINTS if "\n" in told else _POINTS
    return told, min(points, _POINTS * LABEL_LETTERS / max(longest, 1))


def in_two_lines(label: str, letters: int = LABEL_LETTERS) -> str:
    """Return a label on two lines of similar length if it is longer than `letters`, else unchanged."""
    if len(label) <= letters:
        return label
    places = [place for place, letter in enumerate(label, 1) if letter in ", "]
    place = min(places, key=lambda place: abs(2 * place - len(label)), default=len(label))
    return f"{label[:place].rstrip()}\n{label[place:]}" if place < len(label) else label
