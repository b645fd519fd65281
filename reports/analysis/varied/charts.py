"""Charts of lines as values: what was varied, a line for each variant, where the winner changes; and that in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from bench_runner.results.records import Cell, Conditions
from bench_runner.results.statistics import Interval
from bench_runner.variants import Variant
from reports.analysis.columns import Column
from reports.analysis.units import KILOBYTES, MEGABYTES, MILLISECONDS, SECONDS, Unit
from reports.analysis.varied.crossovers import Behind, Change, Crossovers

_BEYOND = 10
"""How many times beyond the lines a chart goes for what is not ranked."""


class Owner(Enum):
    """What a parameter belongs to."""

    OPERATION = "operation"
    DATA = "data set"
    VARIANT = "variant"


@dataclass(frozen=True)
class Axis:
    """What is varied. `rest` tells the operation or data set without it, where that is more than its name."""

    owner: Owner
    title: str
    rest: str
    values: tuple[float, ...]
    linear_below: float | None = None
    """Up to here the scale is linear, so that it holds a 0, and logarithmic from here on."""

    @property
    def logarithmic(self) -> bool:
        """Where no value is 0."""
        return self.values[0] > 0

    @property
    def unit(self) -> str:
        """Behind a value in a sentence: shares are told in percent where the axis has them in percent."""
        return " %" if self.title.startswith("%") else ""


@dataclass(frozen=True, eq=False)
class Line:
    """One variant along the values."""

    variant: Variant
    label: str
    points: Mapping[float, Interval]
    """By value; no point where it has no figure, or one that is not ranked with others."""
    marks: Mapping[float, str]
    """'*' where it is the best, '=' where it is tied with that."""
    cells: Mapping[float, Cell]
    """Of which cell each point is."""
    style: int = 0
    """Its place among all variants of the suite's lines: the same in each chart, so that it has one colour."""

    @property
    def end(self) -> Interval:
        """At the last value that it has."""
        return next(reversed(list(self.points.values())))


@dataclass(frozen=True, eq=False)
class Chart:
    """One figure of one operation over one axis."""

    suite: str
    dataset: str
    """'' where data sets are the values."""
    conditions: Conditions
    machine: str
    axis: Axis
    column: Column
    title: str
    """'take time', 'size'."""
    lines: tuple[Line, ...]
    """The best ones first."""
    left_out: tuple[str, ...]
    """Labels of further ones."""
    raw_io: Line | None
    whole: Line | None
    """The fastest that reads everything and selects from it, where that was measured along the axis."""
    least: float
    crossovers: Crossovers | None
    """None where each format has values of its own to choose (settings)."""
    own_unit: Unit | None = None
    """That of what is no stored figure, as throughput."""

    @property
    def unit(self) -> Unit:
        """In which its smallest value is readable; memory in MB."""
        if self.own_unit is not None:
            return self.own_unit
        if self.column.is_memory:
            return MEGABYTES
        small, large, limit = (
            (MILLISECONDS, SECONDS, 1e8) if self.column.figure.endswith("_ns") else (KILOBYTES, MEGABYTES, 1e6)
        )
        return small if min(self.medians, default=limit) < limit else large

    @property
    def medians(self) -> list[float]:
        """Of all lines that take part, in the stored unit."""
        return [interval.median for line in self.lines for interval in line.points.values()]

    @property
    def few_rounds(self) -> bool:
        """Whether no point has an interval."""
        return all(interval.low is None for line in self.lines for interval in line.points.values())

    def label(self, variant: Variant) -> str:
        """What the chart calls a variant."""
        return next((line.label for line in self.lines if line.variant == variant), variant)

    @property
    def figure_title(self) -> str:
        """What it shows, of what: 'take time, handle=kept'."""
        return (
            f"{self.title}, {self.axis.rest}" if self.axis.rest and self.axis.owner is Owner.OPERATION else self.title
        )


def range_of(chart: Chart) -> tuple[float, float]:
    """The smallest and the largest value that a chart has room for, in the stored unit: those of its lines and their
    intervals, and of raw I/O and what reads everything as far as they lie within a decade of them."""

    def ends(lines: Iterable[Line | None]) -> list[float]:
        return [
            max(end, chart.least, 1)
            for line in lines
            if line is not None
            for interval in line.points.values()
            for end in interval.spread
        ]

    own, others = ends(chart.lines), ends((chart.raw_io, chart.whole))
    low, high = min(own), max(own)
    return max(min([low, *others]), low / _BEYOND), min(max([high, *others]), high * _BEYOND)


# --- in words -----------------------------------------------------------------------------------------------------


def value_text(value: float) -> str:
    """A value of an axis: '1,000', '0.01', '3.16'."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def crossover_texts(chart: Chart) -> list[str]:
    """What there is to say of the winner, in sentences without a full stop."""
    winners = chart.crossovers
    if winners is None:
        return []
    first = chart.label(winners.first)
    if not winners.told:
        return ["where the winner changes cannot be told: under 5 rounds"]
    if not winners.found:
        tied = " and ".join(chart.label(name) for name in winners.equals)
        others = f", not to be told from {tied}" if tied else ""
        return [f"no crossing in what was measured: {first} at every value{others}"]
    return [_change_text(chart, change) for change in winners.found]


def _change_text(chart: Chart, change: Change | Behind) -> str:
    unit = chart.axis.unit
    if isinstance(change, Behind):
        before, after = chart.label(change.before), chart.label(change.after)
        return f"{after} is ahead from {value_text(change.since)}{unit} on; below it cannot be told from {before}"
    before, after = chart.label(change.before), chart.label(change.after)
    if change.at is None or change.at.low is None or change.at.high is None:
        between = f"between {value_text(change.ahead_at)} and {value_text(change.behind_at)}{unit}"
        return f"{before} below, {after} above: {between} (too few rounds have both)"
    at, low, high = (value_text(value) for value in (change.at.median, change.at.low, change.at.high))
    # Sizes are the same in every round.
    between = "" if low == at == high else f" ({low} to {high}{unit})"
    return f"{before} below, {after} above: they cross at {at}{unit}{between}"
