"""What was measured at several values of one parameter, all else equal, as lines: one for each variant.

A parameter is one of an operation (`take[rows=100]`), of a data set (`traits[nulls=0.5]`) or of a variant
(`f3[rows_per_unit=4096]`). All of it is read from tables and names; this module knows nothing of where lines are drawn.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from bench_runner.results.records import Cell, Conditions, Run
from bench_runner.results.statistics import CellSummary, Interval, ranking
from bench_runner.variants import Variant
from reports.analysis.columns import Column, Role
from reports.analysis.labels import short_labels
from reports.analysis.tables import Table
from reports.analysis.units import KILOBYTES, MEGABYTES, MILLISECONDS, SECONDS, Unit
from reports.analysis.varied.crossovers import Behind, Change, Crossovers, Point, crossovers

FEWEST_VALUES = 3
"""Of a data set or a setting fewer values are no line, unless the run was asked to vary something."""
FEWEST_OF_USE = 2
"""Values of a parameter of an operation that are a line: they share a stored copy, and all else is the same."""
MOST_LINES = 8
"""More are not told apart: the best at any value are shown, and those that come next."""
NAMED = {
    ("take", "rows"): "rows taken",
    ("take", "columns"): "columns taken",
    ("take", "streams"): "streams",
    ("scan", "selectivity"): "selectivity",
    ("scan", "columns"): "columns of the answer",
    ("project", "columns"): "columns read",
    ("append", "rows"): "rows appended",
    ("batches", "rows"): "rows of a batch",
}
"""What parameters of operations are called for people; others by their name."""
NAMED_OF_DATA = {
    "distinct": "distinct values",
    "run_length": "mean length of runs",
    "nulls": "share of missing values",
    "width": "bytes of a text",
    "bytes": "bytes of a value",
    "dimensions": "numbers of a vector",
    "columns": "columns of the table",
    "rows": "rows of the table",
}
"""What parameters of data sets are called."""
ROWS_A_UNIT = ("row_group_rows", "rows_per_unit", "batch_rows", "chunk_rows", "stripe_rows")
"""Settings that say how many rows lie together, whatever each format calls that."""
IN_A_SECTION = (("query", "groups"),)
"""Shown as throughput, in a section of their own."""

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


Cells = Mapping[float, CellSummary]


@dataclass(frozen=True, eq=False)
class _Series:
    """The cells of each line, before anything is chosen or drawn."""

    table: Table
    axis: Axis
    column: Column
    title: str
    cells: Mapping[Variant, Cells]
    labels: Mapping[Variant, str]
    least: float
    dataset: str


def charts_of(run: Run, tables: Sequence[Table]) -> tuple[Chart, ...]:
    """All lines of a run: over parameters of operations, then of data sets, then of variants."""
    fewest = FEWEST_OF_USE if run.info.request.over is not None else FEWEST_VALUES
    found = [
        chart
        for series in (
            *(each for table in tables for each in _over_operations(table)),
            *_over_data(run, tables, fewest),
            *(each for table in tables for each in _over_settings(table)),
        )
        if (chart := _chart(series)) is not None
    ]
    return tuple(_styled(found))


# --- what belongs to one chart ------------------------------------------------------------------------------------


def _over_operations(table: Table) -> Iterator[_Series]:
    groups: dict[tuple[str, str, str], dict[float, Column]] = {}
    for column in table.columns.times:
        name, parameters = column.operation.name, column.operation.parameters
        for key, value in _numbers(parameters):
            if (name, key) not in IN_A_SECTION:
                groups.setdefault((name, key, _rest(parameters, key)), {})[value] = column
    for (name, key, rest), columns in groups.items():
        if len(columns) < FEWEST_OF_USE:
            continue
        cells: dict[Variant, dict[float, CellSummary]] = {}
        for value, column in sorted(columns.items()):
            for row in table.rows:
                if column.operation in row.cells:
                    cells.setdefault(row.variant, {})[value] = row.cells[column.operation]
        axis = Axis(Owner.OPERATION, NAMED.get((name, key), key.replace("_", " ")), rest, tuple(sorted(columns)))
        labels = {row.variant: row.label for row in table.rows}
        least = max(table.least(column) for column in columns.values())
        first = next(iter(columns.values()))
        yield _Series(table, axis, first, f"{name} time", cells, labels, least, table.dataset)


def _over_data(run: Run, tables: Sequence[Table], fewest: int) -> Iterator[_Series]:
    groups: dict[tuple[tuple[str, str, Conditions], str, str, str], dict[float, Table]] = {}
    for table in tables:
        about = run.info.datasets.get(table.dataset)
        parameters = (about.parameters if about else {}) or table.dataset.parameters
        for key, value in _numbers(parameters):
            same = ((table.suite, table.machine, table.conditions), table.dataset.name, key, _rest(parameters, key))
            groups.setdefault(same, {})[value] = table
    for (_, name, key, _), found in groups.items():
        if len(found) < fewest:
            continue
        points = dict(sorted(found.items()))
        first = next(iter(points.values()))
        # Parameters that are as usual at every point say nothing.
        spelled = max((table.dataset for table in points.values()), key=len)
        rest = _rest(spelled.parameters, key)
        title = NAMED_OF_DATA.get(key, key.replace("_", " "))
        axis = Axis(Owner.DATA, title, f"{name}[{rest}]" if rest else name, tuple(points))
        for column in dict.fromkeys(column for table in points.values() for column in table.columns):
            if column.role is Role.MEMORY and column.operation not in first.columns.main:
                continue
            cells: dict[Variant, dict[float, CellSummary]] = {}
            labels: dict[Variant, str] = {}
            for value, table in points.items():
                for row in table.rows:
                    labels.setdefault(row.variant, row.label)
                    if column.operation in row.cells:
                        cells.setdefault(row.variant, {})[value] = row.cells[column.operation]
            least = max(table.least(column) for table in points.values())
            yield _Series(first, axis, column, column.title, cells, labels, least, "")


def _over_settings(table: Table) -> Iterator[_Series]:
    """One line for each variant without the setting, of which three values at least were measured of one."""
    groups: dict[str, dict[Variant, dict[float, Variant]]] = {}
    for row in table.rows:
        for key, value in _numbers(row.variant.settings):
            title = "rows of a unit" if key in ROWS_A_UNIT else key.replace("_", " ")
            groups.setdefault(title, {}).setdefault(row.variant.without(key), {})[value] = row.variant
    rows = {row.variant: row for row in table.rows}
    for title, found in groups.items():
        lines = {base: variants for base, variants in found.items() if len(variants) >= FEWEST_VALUES}
        if not lines:
            continue
        values = tuple(sorted({value for variants in lines.values() for value in variants}))
        for column in table.columns:
            cells = {
                base: {
                    value: rows[variant].cells[column.operation]
                    for value, variant in variants.items()
                    if column.operation in rows[variant].cells
                }
                for base, variants in lines.items()
            }
            yield _Series(
                table,
                Axis(Owner.VARIANT, title, "", values),
                column,
                column.title,
                cells,
                short_labels(lines),
                table.least(column),
                table.dataset,
            )


def _numbers(parameters: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    for key, text in parameters.items():
        try:
            value = float(text)
        except ValueError:
            continue
        if math.isfinite(value) and value >= 0:
            yield key, value


def _rest(parameters: Mapping[str, str], varied: str) -> str:
    return ",".join(f"{key}={value}" for key, value in parameters.items() if key != varied)


# --- one chart ----------------------------------------------------------------------------------------------------


def _chart(series: _Series) -> Chart | None:
    column = series.column
    marks = _marks(series)
    own: list[Line] = []
    whole: list[Line] = []
    raw_io: Line | None = None
    for variant, cells in series.cells.items():
        points = _points(cells, column.figure, native=True)
        known = {value: summary.cell for value, summary in cells.items()}
        line = Line(variant, series.labels[variant], points, marks.get(variant, {}), known)
        if variant.is_raw_io:
            raw_io = raw_io or (line if line.points and not column.is_memory else None)
        elif variant.is_apart:
            continue
        elif line.points:
            own.append(line)
        else:
            points = _points(cells, column.figure, native=False)
            whole += [replace(line, points=points)] if len(points) >= FEWEST_OF_USE else []
    if not any(len(line.points) >= FEWEST_OF_USE for line in own):
        return None
    winners = _winners(series, own)
    ordered = _ordered(own, winners)
    table = series.table
    return Chart(
        table.suite,
        series.dataset,
        table.conditions,
        table.machine,
        series.axis,
        column,
        series.title,
        tuple(ordered[:MOST_LINES]),
        tuple(line.label for line in ordered[MOST_LINES:]),
        raw_io,
        min(whole, key=lambda line: statistics.median(each.median for each in line.points.values()), default=None),
        series.least,
        winners,
    )


def _points(cells: Cells, figure: str, *, native: bool) -> dict[float, Interval]:
    return {
        value: summary.figures[figure]
        for value, summary in sorted(cells.items())
        if figure in summary.figures and not summary.cached and bool(summary.fallback) != native
    }


def _marks(series: _Series) -> dict[Variant, dict[float, str]]:
    """Who is the best and who is tied with it, at each value."""
    if series.axis.owner is Owner.VARIANT:
        return {}
    found: dict[Variant, dict[float, str]] = {}
    for value in series.axis.values:
        at = {cells[value].cell: variant for variant, cells in series.cells.items() if value in cells}
        summaries = [cells[value] for cells in series.cells.values() if value in cells]
        ranks = ranking(summaries, series.column.figure, least=series.least)
        for place, (cell, ratio) in enumerate(ranks.items()):
            if ratio.tied:
                found.setdefault(at[cell], {})[value] = "*" if place == 0 else "="
    return found


def _winners(series: _Series, lines: Iterable[Line]) -> Crossovers | None:
    if series.axis.owner is Owner.VARIANT:
        return None
    figure = series.column.figure
    named = {line.variant: line for line in lines}
    points = [
        Point(
            value,
            {
                variant: {
                    number: max(amount, series.least, 1)
                    for number, amount in series.cells[variant][value].by_round[figure].items()
                }
                for variant, line in named.items()
                if value in line.points
            },
        )
        for value in series.axis.values
    ]
    return crossovers(points, logarithmic=series.axis.logarithmic)


def _ordered(lines: Sequence[Line], winners: Crossovers | None) -> list[Line]:
    """Who is best anywhere, or named by a crossover, then by how far each is from the best in the middle of its
    values."""
    best: dict[float, float] = {}
    for line in lines:
        for value, interval in line.points.items():
            best[value] = min(best.get(value, math.inf), interval.median)
    told = set()
    if winners is not None:
        told = {winners.first, *(name for each in winners.found for name in (each.before, each.after))}

    def place(line: Line) -> tuple[bool, float, str]:
        leads = line.variant in told or any(mark == "*" for mark in line.marks.values())
        ratios = [each.median / best[value] for value, each in line.points.items() if best[value] > 0]
        return not leads, statistics.median(ratios) if ratios else math.inf, line.label

    return sorted(lines, key=place)


def _styled(charts: Sequence[Chart]) -> Iterator[Chart]:
    """The same style for a variant in all charts of a suite, given in the order in which variants first stand."""
    places: dict[tuple[str, str], int] = {}
    for chart in charts:
        for line in chart.lines:
            key = (chart.suite, line.variant)
            places.setdefault(key, sum(suite == chart.suite for suite, _ in places))
    for chart in charts:
        yield replace(
            chart,
            lines=tuple(replace(line, style=places[chart.suite, line.variant]) for line in chart.lines),
        )


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
