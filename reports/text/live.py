"""Lay out the tables of a run in progress as terminal lines, cut to the width and height of the terminal. The tables
fill row by row.

The layout is a pure function of the samples so far. It does not use rich's tables, which take ten times as long,
because drawing must take almost no time between two samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from bench_runner.results.records import Cell, Run
from bench_runner.variants import Variant
from reports.analysis.columns import Column
from reports.analysis.live_tables import SoFar, was_tried
from reports.analysis.tables import Row, Table, unit_of
from reports.analysis.words import NOT_COUNTED, NOTHING, failure_text, rounds_text, title_of
from reports.text.operations import figure_spread, figure_text, header_of, row_style

PENDING = "…"
"""Marks a figure that is still to be measured."""
_LEAST_LABEL = 20
"""The labels have at least this width, unless all labels are shorter. Columns of figures that do not fit next to the
labels are left out."""
_LEAST_REASON = 16
"""The reason for a failure is printed after the figures of its row. If fewer free characters than this remain, the
reason is left out."""
_LEAST_TABLE = 8
"""If fewer lines than this are free, a table is replaced by a summary of one line."""
_BAR, _LEAST_WIDTH_OF_BAR = 20, 70
_OTHERS_SHARE = 4
"""The table that is being measured gets its lines first. If it needs all lines of the screen, the other tables keep at
most the share 1 / _OTHERS_SHARE of these lines."""


class Lines:
    """Lines that fit the terminal, so that rich need not wrap them."""

    def __init__(self, lines: Sequence[Text]) -> None:
        self.lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, line in enumerate(self.lines, start=1):
            yield from line.render(console, end="\n" if number < len(self.lines) else "")


@dataclass(frozen=True)
class Screen:
    """The lines to display, and the line number of each variant's row in the current table."""

    lines: Sequence[Text]
    rows: Mapping[Variant, int]

    def marked(self, variant: Variant | None) -> list[Text]:
        """Return the lines, with the row of `variant` in bold if it is shown."""
        lines = list(self.lines)
        if variant is not None and variant in self.rows:
            line = lines[self.rows[variant]] = lines[self.rows[variant]].copy()
            line.stylize("bold not dim")
        return lines


class Screens:
    """Creates the screens of a run in progress. A table is laid out again only after it has changed."""

    def __init__(self, so_far: SoFar) -> None:
        self.so_far = so_far
        self._kept: dict[Cell, tuple[Table, int, int, Screen]] = {}

    def screen(self, place: Cell, width: int, height: int) -> Screen:
        """Return the screen with all tables in at most `height` lines of `width` columns.

        The table with the key `place` is being measured, so it gets its lines first. Other tables are shown if they
        fit. Each table that does not fit is replaced by a summary of one line.
        """
        names = self.so_far.names
        others = [other for other in names if other != place]
        reserved = 1 + min(len(others), max(height // _OTHERS_SHARE, 1)) if others else 0
        blocks = {place: self._block(place, width, height - reserved)}
        left = height - len(blocks[place].lines) - (1 + len(others) if others else 0)
        for other in others:
            if left < _LEAST_TABLE:
                break
            # A whole table needs an empty line above it, but its summary of one line is not needed.
            blocks[other] = self._block(other, width, left)
            left -= len(blocks[other].lines)
        lines: list[Text] = []
        rows: dict[Variant, int] = {}
        for other in (other for other in names if other in blocks):
            lines += [Text()] if lines else []
            if other == place:
                rows = {variant: len(lines) + line for variant, line in blocks[place].rows.items()}
            lines += blocks[other].lines
        told = [_told(self.so_far, other) for other in names if other not in blocks]
        room = max(height - len(lines) - 1, 0)
        if told and room:
            if len(told) > room:
                told[room - 1 :] = [_more(len(told) - room + 1, "table")]
            lines += [Text(), *(_cut(line, width) for line in told)]
        return Screen(lines, rows)

    def _block(self, place: Cell, width: int, most: int) -> Screen:
        table = self.so_far.table(place)
        kept = self._kept.get(place)
        if kept is None or kept[0] is not table or kept[1:3] != (width, most):
            kept = self._kept[place] = table, width, most, block_of(self.so_far.run, table, width, most)
        return kept[3]


def block_of(run: Run, table: Table, width: int, most: int) -> Screen:
    """Return one table in at most `most` lines: its title, its headers, and as many of its first rows as fit."""
    layout = _layout(run, table, width)
    lines = [Text(title_of(run, table), "bold"), *layout.headers()]
    room = max(most - len(lines), 0)
    shown = len(table.rows) if len(table.rows) <= room else max(room - 1, 0)
    rows = {table.rows[number].variant: len(lines) + number for number in range(shown)}
    lines += [layout.row(number) for number in range(shown)]
    if shown < len(table.rows):
        lines.append(_more(len(table.rows) - shown, "row"))
    return Screen([_cut(line, width) for line in lines[: max(most, 0)]], rows)


def status_line(doing: str, share: float | None, width: int) -> Text:
    """Return a line that describes the current activity. If there is enough width, a progress bar for `share` (0 to 1)
    comes first."""
    line = Text()
    if width >= _LEAST_WIDTH_OF_BAR:
        done = round(_BAR * min(max(share or 0.0, 0.0), 1.0))
        line = Text.assemble(("━" * done, "bar.complete"), ("─" * (_BAR - done), "bar.back"), " ")
    return _cut(line.append(doing), width)


def _told(so_far: SoFar, place: Cell) -> Text:
    counts = so_far.counts(place)
    begun = f", round {counts.round}" if counts.round else ""
    return Text(f"{so_far.names[place]}: {counts.tried} of {counts.cells} cells{begun}")


def _more(number: int, what: str) -> Text:
    return Text(f"… and {number} more {what}{'s' if number > 1 else ''}", "dim")


def _cut(line: Text, width: int) -> Text:
    line.truncate(width, overflow="ellipsis")
    return line


# --- one table ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Shown:
    """One column: the header lines, the printed value of each row, and the priority. If the width is too small, the
    column with the highest `dropped` is removed first."""

    dropped: int
    header: Sequence[str]
    texts: Sequence[str]
    style: str = ""
    gap: int = 2

    @property
    def width(self) -> int:
        """Width including the gap to the left of the column; 0 for an empty column."""
        widest = max(map(len, (*self.header, *self.texts)), default=0)
        return self.gap + widest if widest else 0


@dataclass(frozen=True)
class _Layout:
    """A table whose columns fit into `width`."""

    run: Run
    table: Table
    columns: Sequence[tuple[_Shown, int]]
    """Columns with their widths."""
    label_width: int
    width: int

    def headers(self) -> Iterator[Text]:
        """Yield the header lines. Headers with fewer lines are aligned at the bottom."""
        height = max(len(column.header) for column, _ in self.columns)
        for line in range(-height, 0):
            texts = [column.header[line] if len(column.header) >= -line else "" for column, _ in self.columns]
            yield Text(self._line("format" if line == -1 else "", texts), "bold")

    def row(self, number: int) -> Text:
        """Return the line of a row. If the row has no figures, the reason is shown instead. If the row has both figures
        and failures, the failures follow the figures."""
        row = self.table.rows[number]
        style, reason = row_style(row), self._reason(row)
        label = row.label if len(row.label) <= self.label_width else f"{row.label[: self.label_width - 1]}…"
        if reason and not row.measured:
            return Text(f"{label.ljust(self.label_width)}  {reason}", style)
        line = Text(self._line(label, [column.texts[number] for column, _ in self.columns]))
        end = self.label_width
        for column, width in self.columns:
            if column.style:
                line.stylize(column.style, end, end + width)
            end += width
        line.stylize_before(style)
        if reason and self.width - end >= _LEAST_REASON:
            line.append(f"  {reason}", "dim")
        return line

    def _line(self, label: str, texts: Sequence[str]) -> str:
        figures = (text.rjust(width) for text, (_, width) in zip(texts, self.columns, strict=True))
        return label[: self.label_width].ljust(self.label_width) + "".join(figures)

    def _reason(self, row: Row) -> str:
        words = "; ".join(failure_text(self.run, row, *failed) for failed in row.failures.items())
        if not words and not row.measured and any(map(was_tried, row.cells.values())):
            return NOT_COUNTED
        # The reason may quote a library: put it on one line and remove control characters.
        return " ".join("".join(sign if sign.isprintable() else " " for sign in words).split())


def _layout(run: Run, table: Table, width: int) -> _Layout:
    """Return a layout with as many columns as fit next to the labels, but at least one."""
    longest = max(len(row.label) for row in table.rows)
    columns = [(column, column.width) for column in _columns(run, table)]
    left = width - min(longest, _LEAST_LABEL)
    fitting: set[int] = set()
    for place, (_, needed) in sorted(enumerate(columns), key=lambda each: each[1][0].dropped):
        left -= needed
        if fitting and left < 0:
            break
        fitting.add(place)
    kept = [column for place, column in enumerate(columns) if place in fitting]
    room = width - sum(needed for _, needed in kept)
    return _Layout(run, table, kept, max(min(room, longest), 1), width)


def _columns(run: Run, table: Table) -> Iterator[_Shown]:
    """Yield the columns for saving and reading, then the rounds, then the times of further operations."""
    columns = table.columns
    of_main = [column for column in columns if column.operation in columns.main]
    for column in of_main:
        if column in columns.times:
            yield _figures(run, table, column, 0 if column == columns.leading else 1)
            yield _spreads(table, column, 6)
    for column in of_main:
        if column not in columns.times:
            yield _figures(run, table, column, 2 if not column.is_memory else 4 + columns.writes(column.operation))
    yield _Shown(3, ("rounds",), [_rounds(run, table, row) for row in table.rows])
    for number, column in enumerate(columns.times):
        if column not in of_main:
            yield _figures(run, table, column, 7 + number)
            yield _spreads(table, column, 7 + number)


def _figures(run: Run, table: Table, column: Column, dropped: int) -> _Shown:
    unit = unit_of(table, column)
    texts = [figure_text(table, row, column, unit) or _without_figure(row, column) for row in table.rows]
    return _Shown(dropped, header_of(run, column, unit).split("\n"), texts)


def _without_figure(row: Row, column: Column) -> str:
    summary = row.cells.get(column.operation)
    return NOTHING if summary is None or was_tried(summary) else PENDING


def _spreads(table: Table, time: Column, dropped: int) -> _Shown:
    return _Shown(dropped, (), [figure_spread(row, time) for row in table.rows], "dim", gap=1)


def _rounds(run: Run, table: Table, row: Row) -> str:
    """Return the counted rounds: '3 of 7' if the user gave the number of rounds, else '3'. Raw I/O may have more rounds
    than the user gave; the second number is then left out."""
    asked = run.info.rounds_asked
    counted = rounds_text(row, table.columns.main)
    if counted == NOTHING:
        return NOTHING if any(map(was_tried, row.cells.values())) else PENDING
    return f"{counted} of {asked}" if asked is not None and max(row.rounds) <= asked else counted
