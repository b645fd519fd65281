"""Describe charts over a parameter as data: the axis, a line for each variant, and where the winner changes."""

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
"""The range of a chart covers unranked lines only up to this factor above and below the ranked lines."""


class Owner(Enum):
    """What a parameter belongs to: an operation, a data set or a variant."""

    OPERATION = "operation"
    DATA = "data set"
    VARIANT = "variant"


@dataclass(frozen=True)
class Axis:
    """The axis of a chart: the parameter and its values. `rest` describes the other parameters of the operation or data
    set. It is empty if there are none."""

    owner: Owner
    title: str
    rest: str
    values: tuple[float, ...]
    linear_below: float | None = None
    """The scale is linear up to this value and logarithmic above, so that the axis can include 0. With None, the axis
    has one scale."""

    @property
    def logarithmic(self) -> bool:
        """Whether the scale is logarithmic everywhere, because no value is 0."""
        return self.values[0] > 0

    @property
    def unit(self) -> str:
        """Unit after a value in a sentence: ' %' if the axis is in percent."""
        return " %" if self.title.startswith("%") else ""


@dataclass(frozen=True, eq=False)
class Line:
    """The figures of one variant along the axis."""

    variant: Variant
    label: str
    points: Mapping[float, Interval]
    """The figure at each value. A value is missing if the variant has no ranked figure there."""
    marks: Mapping[float, str]
    """'*' at values where the variant is the best, '=' at values where it is tied with the best."""
    cells: Mapping[float, Cell]
    """The cell (operation, data set, variant and conditions) of each point."""
    style: int = 0
    """Index of the variant among all variants in the suite's charts. It gives the variant the same colour in each
    chart."""

    @property
    def end(self) -> Interval:
        """The figure at the line's last value."""
        return next(reversed(list(self.points.values())))


@dataclass(frozen=True, eq=False)
class Chart:
    """A chart of one figure of one operation along one axis."""

    suite: str
    dataset: str
    """Name of the data set; '' if the values of the axis are data sets."""
    conditions: Conditions
    machine: str
    axis: Axis
    column: Column
    title: str
    """Title of the figure: 'take time' or 'size'."""
    lines: tuple[Line, ...]
    """The lines to draw, best first."""
    left_out: tuple[str, ...]
    """Labels of the lines that are not drawn."""
    raw_io: Line | None
    whole: Line | None
    """The fastest fallback, that is a variant that reads everything and then selects, because its library has no call
    for the operation. None if no fallback was measured along the axis."""
    least: float
    crossovers: Crossovers | None
    """Where the winner changes. None if the axis is a setting of variants, because formats allow different values and
    are not compared there."""
    own_unit: Unit | None = None
    """Unit of the chart if it shows a computed figure, for example throughput. None for stored figures."""

    @property
    def unit(self) -> Unit:
        """The unit of the chart, chosen so that the smallest value is readable. Memory is always in MB."""
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
        """Medians of all drawn lines, in the stored unit. Raw I/O and the fallback are not included."""
        return [interval.median for line in self.lines for interval in line.points.values()]

    @property
    def few_rounds(self) -> bool:
        """Whether all points have too few rounds for an interval."""
        return all(interval.low is None for line in self.lines for interval in line.points.values())

    def label(self, variant: Variant) -> str:
        """Return the label of a variant in the chart, or its full name if the chart does not draw it."""
        return next((line.label for line in self.lines if line.variant == variant), variant)

    @property
    def figure_title(self) -> str:
        """What the chart shows: 'take time, handle=kept'."""
        return (
            f"{self.title}, {self.axis.rest}" if self.axis.rest and self.axis.owner is Owner.OPERATION else self.title
        )


def range_of(chart: Chart) -> tuple[float, float]:
    """Return the smallest and the largest value of a chart, in the stored unit.

    The range covers the drawn lines with their intervals. It also covers raw I/O and the fallback that reads
    everything, but at most a factor of ten below and above the drawn lines.
    """

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
    """Return a value of an axis as printed, such as '1,000', '0.01' or '3.16'."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def crossover_texts(chart: Chart) -> list[str]:
    """Return sentences, without a full stop, that state which variant is best at which values."""
    winners = chart.crossovers
    if winners is None:
        return []
    first = chart.label(winners.first)
    if not winners.told:
        return ["under 5 rounds: too few to find where the winner changes"]
    if not winners.found:
        tied = " and ".join(chart.label(name) for name in winners.equals)
        others = f", tied with {tied}" if tied else ""
        return [f"no crossing at the measured values: {first} is best at every value{others}"]
    return [_change_text(chart, change) for change in winners.found]


def _change_text(chart: Chart, change: Change | Behind) -> str:
    unit = chart.axis.unit
    if isinstance(change, Behind):
        before, after = chart.label(change.before), chart.label(change.after)
        return f"{after} is ahead from {value_text(change.since)}{unit} on; below that it is tied with {before}"
    before, after = chart.label(change.before), chart.label(change.after)
    if change.at is None or change.at.low is None or change.at.high is None:
        between = f"between {value_text(change.ahead_at)} and {value_text(change.behind_at)}{unit}"
        return f"{before} below, {after} above: {between} (too few common rounds)"
    at, low, high = (value_text(value) for value in (change.at.median, change.at.low, change.at.high))
    # Sizes are the same in every round, so they have no interval.
    between = "" if low == at == high else f" ({low} to {high}{unit})"
    return f"{before} below, {after} above: they cross at {at}{unit}{between}"
