"""Tables of our figures beside others': texts for people, each with the cell whose samples it comes from."""

from __future__ import annotations

from dataclasses import dataclass

from bench_runner.results.records import Cell
from bench_runner.results.statistics import Interval
from reports.analysis.units import spread_text


@dataclass(frozen=True)
class Entry:
    """What stands in one place of a table; `cell` is None for what is no figure of ours, or one of several cells."""

    text: str
    cell: Cell | None = None


def measured(text: str, interval: Interval, cell: Cell) -> Entry:
    """A figure of ours with its spread, and with its rounds where they are too few for a verdict."""
    few = f"n={interval.rounds}" if interval.low is None else ""
    return Entry(" ".join(filter(None, (text, spread_text(interval), few))), cell)


def line_of(*cells: str | Entry) -> tuple[Entry, ...]:
    """One line of a table; texts are entries that are not figures of ours."""
    return tuple(Entry(each) if isinstance(each, str) else each for each in cells)


@dataclass(frozen=True)
class SideBySide:
    """One table: its title, the heads of its columns, and its lines, each with its name first."""

    title: str
    head: tuple[str, ...]
    lines: tuple[tuple[Entry, ...], ...]

    @property
    def texts(self) -> list[list[str]]:
        """The lines as words alone."""
        return [[entry.text for entry in line] for line in self.lines]
