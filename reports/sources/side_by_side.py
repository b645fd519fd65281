"""Describe tables of our figures next to published ones: texts, each with the cell whose samples it comes from."""

from __future__ import annotations

from dataclasses import dataclass

from bench_runner.results.records import Cell
from bench_runner.results.statistics import Interval
from reports.analysis.units import spread_text


@dataclass(frozen=True)
class Entry:
    """One cell of a table; `cell` is None if it is not a figure of ours, or comes from several cells."""

    text: str
    cell: Cell | None = None


def measured(text: str, interval: Interval, cell: Cell) -> Entry:
    """Return a figure of ours with its spread, and with its rounds if they are too few for a verdict."""
    few = f"n={interval.rounds}" if interval.low is None else ""
    return Entry(" ".join(filter(None, (text, spread_text(interval), few))), cell)


def line_of(*cells: str | Entry) -> tuple[Entry, ...]:
    """Return one line of a table; texts become entries without a cell."""
    return tuple(Entry(each) if isinstance(each, str) else each for each in cells)


@dataclass(frozen=True)
class SideBySide:
    """A table: its title, its column heads, and its lines, each with its name first."""

    title: str
    head: tuple[str, ...]
    lines: tuple[tuple[Entry, ...], ...]

    @property
    def texts(self) -> list[list[str]]:
        """The lines as texts only."""
        return [[entry.text for entry in line] for line in self.lines]
