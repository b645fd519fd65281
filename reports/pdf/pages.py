"""Draw the PDF's text pages: tables of figures, codecs, calls, means over data sets, and remarks."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from bench_runner.conditions import conditions_text
from bench_runner.results.records import Run
from reports.analysis import engines
from reports.analysis.access.uses import USES_MEANING, uses_of
from reports.analysis.columns import READ_TIME, SAVE_TIME
from reports.analysis.figures import Figures
from reports.analysis.labels import short_labels
from reports.analysis.sections import TITLES, Contents
from reports.analysis.tables import Table, amount_text
from reports.analysis.words import WHOSE_CHOICES
from reports.pdf import codecs
from reports.pdf.page import (
    FAINT,
    FURTHER_LINE,
    LABEL_LETTERS,
    LINE_HEIGHT,
    MOST_LINES,
    TOP,
    draw_lines,
    lines_of,
    new_page,
    spaced,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FIRST, _LAST = 0.34, 0.965
"""Horizontal positions, as shares of the page, at which the first and the last column of figures end."""
_USE_HEADERS = ("use", "fastest", "tied with it (=), or times as long")
_USE_LEFTS, _USE_WIDTHS = (0.05, 0.25, 0.56), (29, 42, 58)
"""Horizontal positions of the columns on the page about the fastest formats, and the number of characters that fit into
each column."""
MOST_COLUMNS = 8
"""Number of columns of figures that fit next to each other."""
MOST_WIDE_COLUMNS = 4
"""Number of columns that fit next to each other if each entry has several figures."""
_NARROW = 11
"""MOST_COLUMNS columns fit if no entry is longer than this number of characters."""
_NOTE_WIDTH = 150
"""Number of characters in a line of notes."""


def codecs_pages(run: Run, table: Table) -> Iterator[Figure]:
    """Yield the page that compares codecs with the same formats without a codec."""
    figure = new_page(run, f"{table.suite}: {table.dataset}, {TITLES['codecs']}", about(run, table))
    codecs.draw(figure, run, table)
    yield figure


def calls_pages(run: Run, table: Table) -> Iterator[Figure]:
    """Yield the page of the fastest and the slowest call of each format."""
    figure = new_page(run, f"{table.suite}: {table.dataset}, {TITLES['calls']}", about(run, table))
    lines: list[tuple[str, ...]] = [("", *engines.HEADERS)]
    for column in (SAVE_TIME, READ_TIME):
        found = engines.calls_of(table, column)
        lines += [(column.operation if place == 0 else "", *engines.texts(calls)) for place, calls in enumerate(found)]
    draw_lines(figure, lines, (0.05, 0.10, 0.18, 0.42, 0.66, 0.82), numbers=False)
    words = [*engines.answers(table), engines.EXPLANATION]
    text = "\n".join(textwrap.fill(paragraph, 120) for paragraph in words)
    figure.text(0.05, TOP - (len(lines) + 1) * LINE_HEIGHT, text, fontsize=8, va="top", linespacing=1.6)
    yield figure


def uses_pages(run: Run, table: Table) -> Iterator[Figure]:
    """Yield pages with the fastest format for each operation, and the formats that follow it."""
    title = f"{table.suite}: {table.dataset}, {TITLES['uses']}"
    figure, used = None, 0.0
    for use in uses_of(run, table):
        first, second, third = _USE_WIDTHS
        cells = (lines_of(use.title, first), lines_of(use.best, second), lines_of(use.others, third, ", "))
        high = 1 + FURTHER_LINE * (max(map(len, cells)) - 1)
        if figure is not None and used + high > MOST_LINES:
            yield figure
            figure = None
        if figure is None:
            figure, used = new_page(run, title, about(run, table)), 3
            figure.text(0.05, TOP, USES_MEANING, fontsize=8, va="top")
            draw_lines(figure, [_USE_HEADERS], _USE_LEFTS, numbers=False, start=2)
        texts = ["\n".join(cell) for cell in cells]
        draw_lines(figure, [texts], _USE_LEFTS, numbers=False, start=used, head=False)
        used += high
    if figure is not None:
        yield figure


def figures_pages(run: Run, title: str, below: str, found: Iterable[Figures]) -> Iterator[Figure]:
    """Yield pages of `Figures` (tables of numbers), each table with its title and its notes. A page has as many tables
    as fit below each other.

    Tables that are too wide are split into parts. Tables that are too long continue on the next page.
    """
    figure, used = new_page(run, title, below), 0
    for each in found:
        for part in _parts(_with_spread(each)):
            high, notes = part.high, part.notes
            if used and used + 2 + high + len(part.lines) + len(notes) > MOST_LINES:
                yield figure
                figure, used = new_page(run, title, below), 0
            step = (_LAST - _FIRST) / (part.most - 1)
            lefts = (0.05, *(_FIRST + step * place for place in range(len(part.headers))))
            figure.text(0.05, TOP - used * LINE_HEIGHT, each.title, fontsize=8, fontweight="bold", va="top")
            lines = [(part.corner, *part.headers), *[("",) * len(lefts)] * high, *part.lines]
            draw_lines(figure, lines, lefts, start=used + 1)
            for number, note in enumerate(notes):
                place = TOP - (used + 2 + high + len(part.lines) + number) * LINE_HEIGHT
                figure.text(0.05, place, note, fontsize=6.5, color=FAINT, va="top")
            used += 3 + high + len(part.lines) + len(notes)
    if used:
        yield figure


def _with_spread(figures: Figures) -> Figures:
    """Return `figures` with each column of spreads merged into the column of figures before it."""
    starts = [place for place, header in enumerate(figures.headers) if header or not place]

    def joined(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(" ".join(filter(None, texts[start:end])) for start, end in pairwise([*starts, len(texts)]))

    lines = tuple((label, joined(texts)) for label, texts in figures.lines)
    return replace(figures, headers=joined(figures.headers), lines=lines)


@dataclass(frozen=True)
class _Part:
    """The part of a table on one page. `most` is the number of columns that fit next to each other, and `high` is the
    number of additional lines that the headers take. The notes follow the last part."""

    corner: str
    headers: Sequence[str]
    high: int
    lines: Sequence[tuple[str, ...]]
    notes: Sequence[str]
    most: int


def _parts(table: Figures) -> Iterator[_Part]:
    widest = max((len(text) for _, texts in table.lines for text in texts), default=0)
    most = MOST_COLUMNS if widest <= _NARROW else MOST_WIDE_COLUMNS
    notes = [line for note in table.notes for line in textwrap.wrap(note, _NOTE_WIDTH)]
    for start in range(0, max(len(table.headers), 1), most):  # Without figures the notes explain why.
        shown = slice(start, start + most)
        headers = ["\n".join(lines_of(header.replace("\n", " "), 88 // most)) for header in table.headers[shown]]
        corner = "\n".join(lines_of(table.corner, LABEL_LETTERS)) if headers else ""
        high = math.ceil(FURTHER_LINE * max(header.count("\n") for header in (corner, *headers)))
        lines = [(spaced(label), *texts[shown]) for label, texts in table.lines]
        fitting = MOST_LINES - high - len(notes) - 2
        for first in range(0, max(len(lines), 1), fitting):
            last = shown.stop >= len(table.headers) and first + fitting >= len(lines)
            yield _Part(corner, headers, high, lines[first : first + fitting], notes if last else (), most)


def about(run: Run, table: Table) -> str:
    """Return the description of a table that is printed below the title of its pages."""
    return f"{amount_text(run, table)}; {conditions_text(table.conditions)}; machine {table.machine}"


def means_pages(contents: Contents) -> Iterator[Figure]:
    """Yield pages of means over tables that differ only in their data set."""
    for means in contents.means:
        first = means.tables[0]
        names = ", ".join(table.dataset for table in means.tables)
        below = textwrap.fill(f"over {names}; {conditions_text(first.conditions)}; machine {first.machine}", 130)
        labels = short_labels(means.variants)
        headers = [column.title for column in means.columns]
        lines = [
            (labels[variant], tuple("-" if mean is None else f"{mean:.2f}" for mean in means.of(variant)))
            for variant in means.variants
            if any(mean is not None for mean in means.of(variant))
        ]
        found = Figures("", "format", tuple(headers), tuple(lines))
        yield from figures_pages(contents.run, f"{first.suite}: {TITLES['means']}", below, [found])


def remarks_pages(contents: Contents) -> Iterator[Figure]:
    """Yield the page of warnings and remarks."""
    samples = contents.run.samples
    figure = new_page(contents.run, TITLES["remarks"], f"{len(samples)} samples")
    lines = []
    for note in contents.remarks:
        lines += textwrap.wrap(f"- {note.text}", 105, subsequent_indent="  ")
        if note.remedy:
            lines += textwrap.wrap(f"what to do: {note.remedy}", 105, initial_indent="  ", subsequent_indent="  ")
    if not samples:
        lines.append("This run has no samples, so there is nothing to show.")
    lines += ["", WHOSE_CHOICES]
    figure.text(0.05, 0.92, "\n".join(lines), fontsize=8, va="top", linespacing=1.6)
    yield figure
