"""Describe tables of our figures next to published ones. Each of our figures names the cell (operation, data set,
variant and conditions) whose samples it comes from."""

from __future__ import annotations

from dataclasses import dataclass

from bench_runner.results.records import Cell
from bench_runner.results.statistics import Interval
from reports.analysis.units import spread_text


@dataclass(frozen=True)
class Entry:
    """One entry of a table. `cell` is None for a published figure, for text, and for an entry that combines several of
    our figures."""

    text: str
    cell: Cell | None = None


def measured(text: str, interval: Interval, cell: Cell) -> Entry:
    """Return one of our figures as printed, with its spread. If there are too few rounds for a verdict, the number of
    rounds is added."""
    few = f"n={interval.rounds}" if interval.low is None else ""
    return Entry(" ".join(filter(None, (text, spread_text(interval), few))), cell)


def line_of(*cells: str | Entry) -> tuple[Entry, ...]:
    """Return one row of a table. A string becomes an entry without samples."""
    return tuple(Entry(each) if isinstance(each, str) else each for each in cells)


@dataclass(frozen=True)
class SideBySide:
    """A table with a title, column heads and rows. The first entry of a row is the row's name."""

    title: str
    head: tuple[str, ...]
    lines: tuple[tuple[Entry, ...], ...]

    @property
    def texts(self) -> list[list[str]]:
        """The printed content of each row."""
        return [[entry.text for entry in line] for line in self.lines]
