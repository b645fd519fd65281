"""Build charts of measurements at several values of one parameter, with a line for each variant. Only this parameter
differs between the points of a line."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from bench_runner.results.figures import FIGURES
from bench_runner.results.records import Run
from bench_runner.results.statistics import Interval, ranking
from reports.analysis.tables import Table
from reports.analysis.varied.charts import Chart, Line, Owner, Ranks, marks_of
from reports.analysis.varied.crossovers import Crossovers, Point, crossovers, wins_of
from reports.analysis.varied.series import (
    FEWEST_OF_USE,
    FEWEST_VALUES,
    Cells,
    Series,
    over_data,
    over_operations,
    over_settings,
)

MOST_LINES = 8
"""Largest number of lines in a chart, because more lines cannot be distinguished. Lines that are best at some value are
chosen first, then the next best lines."""


def charts_of(run: Run, tables: Sequence[Table]) -> tuple[Chart, ...]:
    """Return all charts of a run. Charts over parameters of operations come first, then parameters of data sets, then
    settings of variants."""
    fewest = FEWEST_OF_USE if run.info.request.over is not None else FEWEST_VALUES
    found = [
        chart
        for series in (
            *(each for table in tables for each in over_operations(table)),
            *over_data(run, tables, fewest),
            *(each for table in tables for each in over_settings(table)),
        )
        if (chart := _chart(series)) is not None
    ]
    return tuple(_styled(found))


def _chart(series: Series) -> Chart | None:
    column = series.column
    ranks = _ranks(series)
    own: list[Line] = []
    whole: list[Line] = []
    raw_io: Line | None = None
    for variant, cells in series.cells.items():
        points = _points(cells, column.figure, native=True)
        known = {value: summary.cell for value, summary in cells.items()}
        line = Line(variant, series.labels[variant], points, marks_of(variant, ranks), known)
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
    winners = _winners(series, own, ranks)
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
        labels=series.labels,
    )


def _points(cells: Cells, figure: str, *, native: bool) -> dict[float, Interval]:
    return {
        value: summary.figures[figure]
        for value, summary in sorted(cells.items())
        if figure in summary.figures and not summary.cached and bool(summary.fallback) != native
    }


def _ranks(series: Series) -> Ranks:
    """Return the ratios of the ranked variants to the best at each value, best variant first."""
    if series.axis.owner is Owner.VARIANT:
        return {}
    found: Ranks = {}
    for value in series.axis.values:
        at = {cells[value].cell: variant for variant, cells in series.cells.items() if value in cells}
        summaries = [cells[value] for cells in series.cells.values() if value in cells]
        ranks = ranking(summaries, series.column.figure, least=series.least)
        found[value] = {at[cell]: ratio for cell, ratio in ranks.items()}
    return found


def _winners(series: Series, lines: Iterable[Line], ranks: Ranks) -> Crossovers | None:
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
            wins_of(ranks[value]),
        )
        for value in series.axis.values
    ]
    return crossovers(points, logarithmic=series.axis.logarithmic, exact=FIGURES[figure].exact)


def _ordered(lines: Sequence[Line], winners: Crossovers | None) -> list[Line]:
    """Return the lines sorted. First come lines that are best at some value, and both lines of each change of the
    winner. The other lines follow by their median ratio to the best."""
    best: dict[float, float] = {}
    for line in lines:
        for value, interval in line.points.items():
            best[value] = min(best.get(value, math.inf), interval.median)
    told = set()
    if winners is not None:
        told = {winners.best, *(name for each in winners.found for name in (each.before, each.after))}

    def place(line: Line) -> tuple[bool, float, str]:
        leads = line.variant in told or any(mark == "*" for mark in line.marks.values())
        ratios = [each.median / best[value] for value, each in line.points.items() if best[value] > 0]
        return not leads, statistics.median(ratios) if ratios else math.inf, line.label

    return sorted(lines, key=place)


def _styled(charts: Sequence[Chart]) -> Iterator[Chart]:
    """Yield the charts with a style for each line. A variant has the same style in all charts of a suite. Styles are
    numbered in the order in which the variants first appear."""
    places: dict[tuple[str, str], int] = {}
    for chart in charts:
        for line in chart.lines:
            key = (chart.suite, line.variant)
            places.setdefault(key, sum(suite == chart.suite for suite, _ in places))
    for chart in charts:
        yield replace(
            chart, lines=tuple(replace(line, style=places[chart.suite, line.variant]) for line in chart.lines)
        )
