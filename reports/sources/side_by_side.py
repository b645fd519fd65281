"""Describe tables of our figures next to published ones. Each entry of ours has the cell (operation, data set, variant
and conditions) of its samples."""

from __future__ import annotations

from dataclasses import dataclass

from bench_runner.results.records import Cell
from bench_runner.results.statistics import Interval
from reports.analysis.units import spread_text


@dataclass(frozen=True)
class Entry:
    """One entry of a table. `cell` is None if the entry is not one of our figures, or combines several."""

    text: str
    cell: Cell | None = None


def measured(text: str, interval: Interval, cell: Cell) -> Entry:
    """Return one of our figures with its spread. The number of rounds is added if it is too small for a verdict."""
    few = f"n={interval.rounds}" if interval.low is None else ""
    return Entry(" ".join(filter(None, (text, spread_text(interval), few))), cell)


def line_of(*cells: str | Entry) -> tuple[Entry, ...]:
    """Return one row of a table. A string becomes an entry without samples."""
    return tuple(Entry(each) if isinstance(each, str) else each for each in cells)


@dataclass(frozen=True)
class SideBySide:
    """A table: its title, its column heads, and its rows. The first entry of a row is its name."""

    title: str
    head: tuple[str, ...]
    lines: tuple[tuple[Entry, ...], ...]

    @property
    def texts(self) -> list[list[str]]:
        """The printed content of each row."""
        return [[entry.text for entry in line] for line in self.lines]
