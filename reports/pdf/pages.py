"""The PDF's pages of text: codecs, calls, means over data sets, cold starts, remarks.

What they say is in reports.analysis; here it is put on pages.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bench_runner.results.records import Run
from reports.analysis import engines
from reports.analysis.access.handles import handles_of
from reports.analysis.access.loaders import HEADERS, LOADERS_MEANING, orders_of
from reports.analysis.access.roofline import figures_of
from reports.analysis.access.uses import USES_MEANING, uses_of
from reports.analysis.columns import READ_TIME, SAVE_TIME
from reports.analysis.documents.stores import documents_of
from reports.analysis.figures import Figures
from reports.analysis.labels import conditions_text, short_labels
from reports.analysis.near_storage.beside import near_storage_of
from reports.analysis.near_storage.curves import curves_of
from reports.analysis.sections import TITLES, Contents
from reports.analysis.tables import Table, amount_text
from reports.analysis.words import WHOSE_CHOICES
from reports.pdf import codecs
from reports.pdf.page import FAINT, LINE_HEIGHT, MOST_LINES, TOP, draw_lines, new_page, spaced

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FIRST, _LAST = 0.34, 0.965
"""Where the first and the last column of figures end, as shares of the page."""
_USE_WIDTHS = (34, 40, 72)
"""Letters that fit into the columns of the page of uses."""
MOST_COLUMNS = 8
"""Columns of figures that fit beside each other."""
MOST_WIDE_COLUMNS = 4
"""Where each has several figures."""
_NARROW = 11
"""Letters of a figure of which so many columns fit."""
_NOTE_WIDTH = 150
"""Letters of a line of notes."""


def codecs_pages(run: Run, table: Table) -> Iterator[Figure]:
    """What each codec adds to its format without one."""
    figure = new_page(run, f"{table.suite}: {table.dataset}, {TITLES['codecs']}", _about(run, table))
    codecs.draw(figure, table)
    yield figure


def calls_pages(run: Run, table: Table) -> Iterator[Figure]:
    """The fastest and the slowest call of each format."""
    figure = new_page(run, f"{table.suite}: {table.dataset}, {TITLES['calls']}", _about(run, table))
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
    """For each use the fastest format, and what comes next."""
    figure = new_page(run, f"{table.suite}: {table.dataset}, {TITLES['uses']}", _about(run, table))
    lines: list[tuple[str, ...]] = [("use", "fastest", "tied with it (=), or times as long")]
    for use in uses_of(run, table):
        lines += _wrapped((use.title, use.best, use.others), _USE_WIDTHS)
    figure.text(0.05, TOP, USES_MEANING, fontsize=8, va="top")
    draw_lines(figure, lines, (0.05, 0.28, 0.54), numbers=False, start=2)
    yield figure


def handles_pages(run: Run, table: Table) -> Iterator[Figure]:
    """Opening, the first call, the others, and how many a second: a page or more for each operation."""
    title = f"{table.suite}: {table.dataset}, {TITLES['handles'].partition(':')[0]}"
    for handles in handles_of(run, table):
        below = f"{handles.title}; {_about(run, table)}"
        yield from _figures(run, title, below, handles.headers, handles.lines)


def roofline_pages(run: Run, table: Table) -> Iterator[Figure]:
    """What the device gives, shares of it, and bytes read for each byte given; what they mean stands on a page before
    them."""
    found = list(figures_of(run, table))
    title = f"{table.suite}: {table.dataset}, {TITLES['roofline'].partition(',')[0]}"
    figure = new_page(run, title, _about(run, table))
    told = [text for each in found for text in (each.title, *(f"- {note}" for note in each.notes), "")]
    words = "\n".join(textwrap.fill(line, 120, subsequent_indent="  ") for line in told)
    figure.text(0.05, TOP, words, fontsize=8, va="top", linespacing=1.6)
    yield figure
    for each in found:
        title = f"{table.suite}: {table.dataset}, {each.title}"
        yield from _figures(
            run, title, _about(run, table), each.headers, each.lines, corner=each.corner, most=MOST_WIDE_COLUMNS
        )


def near_storage_pages(run: Run, table: Table) -> Iterator[Figure]:
    """Technique by technique, what services take, the wire, metadata, row groups."""
    title = f"{table.suite}: {table.dataset}, {TITLES['near storage'].partition(':')[0]}"
    yield from _stacked(run, title, _about(run, table), list(near_storage_of(run, table)))


def documents_pages(run: Run, table: Table) -> Iterator[Figure]:
    """How fast documents are taken, and ranges."""
    title = f"{table.suite}: {table.dataset}, {TITLES['documents'].partition(':')[2].strip()}"
    yield from _stacked(run, title, _about(run, table), list(documents_of(run, table)))


def curves_pages(contents: Contents) -> Iterator[Figure]:
    """Parameters, how far the curves are off, and the rates of retrieval."""
    first = contents.throughput[0].measured[0].cell
    title = f"{first.suite}: {TITLES['curves'].partition(',')[0]}"
    yield from _stacked(contents.run, title, f"machine {first.machine}", list(curves_of(contents.throughput)))


def _stacked(run: Run, title: str, below: str, found: Sequence[Figures]) -> Iterator[Figure]:
    """Several tables below one another, each with its title and its notes, as many on a page as fit."""
    figure, used = new_page(run, title, below), 0
    for each in found:
        widest = max((len(text) for _, texts in each.lines for text in texts), default=0)
        most = MOST_COLUMNS if widest <= _NARROW else MOST_WIDE_COLUMNS
        for part in (slice(start, start + most) for start in range(0, len(each.headers), most)):
            broken = ["\n".join(textwrap.wrap(header, 88 // most)) for header in each.headers[part]]
            high = max(header.count("\n") for header in broken)
            notes = [line for note in each.notes for line in textwrap.wrap(note, _NOTE_WIDTH)]
            notes = notes if part.stop >= len(each.headers) else []
            needed = 2 + high + len(each.lines) + len(notes) + 1
            if used and used + needed > MOST_LINES:
                yield figure
                figure, used = new_page(run, title, below), 0
            step = (_LAST - _FIRST) / (most - 1)
            lefts = (0.05, *(_FIRST + step * place for place in range(len(broken))))
            figure.text(0.05, TOP - used * LINE_HEIGHT, each.title, fontsize=8, fontweight="bold", va="top")
            lines = [(spaced(label), *texts[part]) for label, texts in each.lines]
            draw_lines(figure, [(each.corner, *broken), *[("",) * len(lefts)] * high, *lines], lefts, start=used + 1)
            for number, note in enumerate(notes):
                place = TOP - (used + 2 + high + len(each.lines) + number) * LINE_HEIGHT
                figure.text(0.05, place, note, fontsize=6.5, color=FAINT, va="top")
            used += needed
    if used:
        yield figure


def loaders_pages(run: Run, table: Table) -> Iterator[Figure]:
    """Training loops, a page for each order, the most shuffled first."""
    for order in orders_of(run, table):
        lines = [(loader.label, _with_spread(loader.texts)) for loader in order.loaders]
        title = f"{table.suite}: {table.dataset}, {order.title}"
        for figure in _figures(run, title, _about(run, table), _with_spread(HEADERS), lines):
            below = TOP - (min(len(lines), MOST_LINES) + 3) * LINE_HEIGHT
            text = textwrap.fill(LOADERS_MEANING, 120)
            figure.text(0.05, below, text, fontsize=8, va="top", linespacing=1.6)
            yield figure


def _with_spread(texts: Sequence[str]) -> tuple[str, ...]:
    """The spread behind its figure, in one column."""
    first, spread, *others = texts
    return f"{first} {spread}".strip(), *others


def _wrapped(texts: Sequence[str], widths: Sequence[int]) -> Iterator[tuple[str, ...]]:
    """A line of a table as several, so that no text runs into the next."""
    parts = [textwrap.wrap(text, width) or [""] for text, width in zip(texts, widths, strict=True)]
    yield from itertools.zip_longest(*parts, fillvalue="")


def _about(run: Run, table: Table) -> str:
    return f"{amount_text(run, table)}; {conditions_text(table.conditions)}; machine {table.machine}"


def means_pages(contents: Contents) -> Iterator[Figure]:
    """Over the data sets of tables that differ in them alone."""
    for means in contents.means:
        first = means.tables[0]
        names = ", ".join(table.dataset for table in means.tables)
        below = textwrap.fill(f"over {names}; {conditions_text(first.conditions)}; machine {first.machine}", 130)
        labels = short_labels(means.variants)
        headers = [column.title for column in means.columns]
        lines = [
            (labels[variant], ["-" if mean is None else f"{mean:.2f}" for mean in means.of(variant)])
            for variant in means.variants
            if any(mean is not None for mean in means.of(variant))
        ]
        yield from _figures(contents.run, f"{first.suite}: {TITLES['means']}", below, headers, lines)


def cold_start_pages(contents: Contents) -> Iterator[Figure]:
    """What each variant costs before its first call has returned."""
    found = contents.cold_starts
    title, _, about = TITLES["cold start"].partition(", ")
    lines = [(row.label, row.texts) for row in found.rows]
    below = textwrap.fill(f"{about}; medians over data sets and rounds", 130)
    yield from _figures(contents.run, title, below, found.headers, lines)


def _figures(
    run: Run,
    title: str,
    below: str,
    headers: Sequence[str],
    lines: Sequence[tuple[str, Sequence[str]]],
    *,
    corner: str = "format",
    most: int = MOST_COLUMNS,
) -> Iterator[Figure]:
    """Lines of a label and its figures, as many on a page as fit; wide tables part by part on pages of their own."""
    for part in (slice(start, start + most) for start in range(0, len(headers), most)):
        broken = ["\n".join(textwrap.wrap(header, 88 // most)) for header in headers[part]]
        step = (_LAST - _FIRST) / (most - 1)
        lefts = (0.05, *(_FIRST + step * place for place in range(len(broken))))
        # The heads of columns may take several lines.
        gap = [("",) * len(lefts)] * max(header.count("\n") for header in broken)
        for start in range(0, len(lines), MOST_LINES):
            figure = new_page(run, title, below)
            shown = [(spaced(label), *values[part]) for label, values in lines[start : start + MOST_LINES]]
            draw_lines(figure, [(corner, *broken), *gap, *shown], lefts)
            yield figure


def remarks_pages(contents: Contents) -> Iterator[Figure]:
    """What to be careful of."""
    samples = contents.run.samples
    figure = new_page(contents.run, TITLES["remarks"], f"{len(samples)} samples")
    lines = []
    for note in contents.remarks:
        lines += textwrap.wrap(f"- {note.text}", 105, subsequent_indent="  ")
        if note.remedy:
            lines += textwrap.wrap(f"what to do: {note.remedy}", 105, initial_indent="  ", subsequent_indent="  ")
    if not samples:
        lines.append("no sample was stored: nothing to show")
    lines += ["", WHOSE_CHOICES]
    figure.text(0.05, 0.92, "\n".join(lines), fontsize=8, va="top", linespacing=1.6)
    yield figure
