"""Describe charts over a parameter as data: the axis, a line for each variant, and where the winner changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from bench_runner.results.records import Cell, Conditions
from bench_runner.results.statistics import Interval, Ratio
from bench_runner.variants import Variant
from reports.analysis.columns import Column
from reports.analysis.units import KILOBYTES, MEGABYTES, MILLISECONDS, SECONDS, Unit
from reports.analysis.varied.crossovers import Change, Crossovers, Unclear

_BEYOND = 10
"""The range of a chart covers unranked lines only up to this factor above and below the ranked lines."""


Ranks = dict[float, dict[Variant, Ratio]]
"""Value of the parameter -> variant -> its ratio to the best variant, which is first."""


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
    labels: Mapping[Variant, str] = field(default_factory=dict)
    """Labels of all variants, also of those that are not drawn."""

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
        """Return the label of a variant, or its full name if it has none."""
        return self.labels.get(variant, variant)

    @property
    def figure_title(self) -> str:
        """What the chart shows: 'take time, handle=kept'."""
        return (
            f"{self.title}, {self.axis.rest}" if self.axis.rest and self.axis.owner is Owner.OPERATION else self.title
        )


def marks_of(variant: Variant, ranks: Ranks) -> dict[float, str]:
    """Return the marks of a variant by value: '*' where it is the best, '=' where it is tied with the best."""
    return {
        value: "*" if next(iter(at)) == variant else "="
        for value, at in ranks.items()
        if variant in at and at[variant].tied
    }


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
    """Return sentences, without a full stop, that state which variant is best at which values. Sentences about
    crossings are first, in the order of `chart.crossovers.found`."""
    winners = chart.crossovers
    if winners is None:
        return []
    if winners.undecided:
        return [f"under 5 rounds of the best{_at(chart, winners.undecided)}: too few to find where the winner changes"]
    texts = [_change_text(chart, change) for change in winners.found] or [_no_crossing(chart, winners)]
    if winners.few_rounds:
        texts.append(f"too few rounds for a verdict: {_exceptions(chart, winners.few_rounds)}")
    if winners.missing:
        texts.append(f"no ranked figure: {_exceptions(chart, winners.missing)}")
    return texts


def _no_crossing(chart: Chart, winners: Crossovers) -> str:
    nowhere = "no crossing at the measured values"
    tied = and_join([chart.label(name) for name in winners.winners if name != winners.best])
    if winners.best is not None:
        best = f"{nowhere}: {chart.label(winners.best)} is best at every value"
        return f"{best}, tied with {tied}" if tied else best
    return f"{nowhere}: {tied} {'is' if len(winners.winners) == 1 else 'are'} best or tied with the best at every value"


def _exceptions(chart: Chart, found: Mapping[Variant, tuple[float, ...]]) -> str:
    """Return each set of values with its variants: 'orc at 20,000; avro and json at every value'."""
    by_values: dict[tuple[float, ...], list[str]] = {}
    for name, values in found.items():
        by_values.setdefault(values, []).append(chart.label(name))
    return "; ".join(f"{and_join(names)}{_at(chart, values)}" for values, names in by_values.items())


def and_join(texts: Sequence[str]) -> str:
    """Return the texts as 'a, b and c'."""
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def _at(chart: Chart, values: Sequence[float]) -> str:
    if len(values) == len(chart.axis.values):
        return " at every value"
    return f" at {and_join([value_text(value) for value in values])}{chart.axis.unit}"


def _change_text(chart: Chart, change: Change | Unclear) -> str:
    unit = chart.axis.unit
    if isinstance(change, Unclear):
        before = f"{chart.label(change.before)} is best or tied with the best{_at(chart, change.of_before)}"
        return f"no clear crossing: {before}, {chart.label(change.after)}{_at(chart, change.of_after)}"
    before, after = chart.label(change.before), chart.label(change.after)
    if change.at is None or change.at.low is None or change.at.high is None:
        between = f"between {value_text(change.ahead_at)} and {value_text(change.behind_at)}{unit}"
        return f"{before} below, {after} above: {between} (too few common rounds)"
    at, low, high = (value_text(value) for value in (change.at.median, change.at.low, change.at.high))
    # Sizes are the same in every round, so they have no interval.
    between = "" if low == at == high else f" ({low} to {high}{unit})"
    return f"{before} below, {after} above: they cross at {at}{unit}{between}"
