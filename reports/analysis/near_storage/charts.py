"""Build charts of throughput by the share of row groups that a query has to read. Each network has a chart, and each
access path is a line.

These charts are drawn like all charts over a parameter, but higher values are better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bench_runner.networks import network_text
from bench_runner.results.records import Cell, Conditions
from bench_runner.results.statistics import CellSummary, Interval, ranking
from bench_runner.variants import Variant
from reports.analysis.columns import Column, Role
from reports.analysis.labels import short_labels
from reports.analysis.near_storage.access_paths import network_place, place_of
from reports.analysis.near_storage.throughput import QUERY, Series
from reports.analysis.units import Unit
from reports.analysis.varied.charts import Axis, Chart, Line, Owner, Ranks, marks_of
from reports.analysis.varied.crossovers import ByRound, Crossovers, Point, crossovers, wins_of

GIGABYTES_A_SECOND, MEGABYTES_A_SECOND = Unit("GB/s", 1e9), Unit("MB/s", 1e6)
_GB = 1e9
_LEAST_GB = 0.05
"""Below this throughput, charts use MB/s, because GB/s with three decimals would not be precise enough."""
_COLUMN = Column(QUERY, "wall_ns", Role.TIME, "throughput")
AXIS = "% of the row groups"
LINEAR_BELOW_PERCENT = 1.0
"""The axis is linear below this value and logarithmic above, so that it can show 0 %."""
_Key = tuple[str, str, str, Conditions, str]


def throughput_charts(found: Sequence[Series], summaries: Mapping[Cell, CellSummary]) -> tuple[Chart, ...]:
    """Return a chart for each suite, data set, machine, set of conditions and placement of matching row groups. A chart
    needs at least two measured selectivities.

    Charts of clustered row groups come before charts of scattered ones. A variant has the same style in all charts.
    """
    groups: dict[_Key, list[Series]] = {}
    for series in found:
        if len(series.measured) > 1:
            cell = series.measured[0].cell
            key = (cell.suite, series.dataset, cell.machine, series.conditions, series.place)
            groups.setdefault(key, []).append(series)
    variants = sorted({series.variant for group in groups.values() for series in group}, key=place_of)
    styles = {variant: place for place, variant in enumerate(variants)}
    labels = short_labels(variants)
    ordered = sorted(groups.items(), key=lambda each: (each[0][:3], each[0][4], network_place(each[0][3].network)))
    return tuple(_chart(key, group, summaries, styles, labels) for key, group in ordered)


def _chart(
    key: _Key,
    group: Sequence[Series],
    summaries: Mapping[Cell, CellSummary],
    styles: Mapping[Variant, int],
    labels: Mapping[Variant, str],
) -> Chart:
    suite, dataset, machine, conditions, place = key
    percents = tuple(sorted({each.percent for series in group for each in series.measured}))
    ranks = _ranks(group, percents, summaries)
    lines = [
        Line(
            series.variant,
            labels[series.variant],
            {each.percent: _in_bytes(each.gb_per_s) for each in series.measured},
            marks_of(series.variant, ranks),
            {each.percent: each.cell for each in series.measured},
            styles[series.variant],
        )
        for series in sorted(group, key=lambda series: styles[series.variant])
    ]
    slowest = min(each.gb_per_s.median for series in group for each in series.measured)
    return Chart(
        suite,
        dataset,
        conditions,
        machine,
        Axis(Owner.OPERATION, AXIS, place, percents, LINEAR_BELOW_PERCENT),
        _COLUMN,
        _title(conditions),
        tuple(lines),
        (),
        None,
        None,
        0,
        _winners(group, percents, summaries, ranks),
        GIGABYTES_A_SECOND if slowest >= _LEAST_GB else MEGABYTES_A_SECOND,
        labels,
    )


def _title(conditions: Conditions) -> str:
    """Return a title that names the network, such as 'throughput, loopback', because charts of several networks share a
    page."""
    told = ["throughput", network_text(conditions.network)]
    told += [conditions.cache] if conditions.cache != "warm" else []
    told += ["fresh service"] if conditions.service == "fresh" else []
    return ", ".join(told)


def _in_bytes(rate: Interval) -> Interval:
    """Convert GB/s to bytes per second, the base of the charts' units."""

    def scaled(value: float | None) -> float | None:
        return None if value is None else value * _GB

    return Interval(
        median=rate.median * _GB,
        low=scaled(rate.low),
        high=scaled(rate.high),
        minimum=rate.minimum * _GB,
        maximum=rate.maximum * _GB,
        rounds=rate.rounds,
    )


def _ranks(group: Sequence[Series], percents: Sequence[float], summaries: Mapping[Cell, CellSummary]) -> Ranks:
    """Return the ratios of the ranked variants to the fastest at each selectivity, fastest variant first."""
    found: Ranks = {}
    for percent in percents:
        cells = {each.cell: series.variant for series in group if (each := series.at(percent)) is not None}
        ranks = ranking([summaries[cell] for cell in cells], _COLUMN.figure)
        found[percent] = {cells[cell]: ratio for cell, ratio in ranks.items()}
    return found


def _winners(
    group: Sequence[Series], percents: Sequence[float], summaries: Mapping[Cell, CellSummary], ranks: Ranks
) -> Crossovers | None:
    """Return where the fastest variant changes. Variants that return another kind of result, such as unfiltered rows,
    cannot win."""
    ranked = [series for series in group if not series.variant.is_apart]
    return crossovers(list(_points(ranked, percents, summaries, ranks)), logarithmic=False)


def _points(
    group: Sequence[Series], percents: Sequence[float], summaries: Mapping[Cell, CellSummary], ranks: Ranks
) -> Iterator[Point]:
    for percent in percents:
        figures: dict[Variant, ByRound] = {
            series.variant: {
                number: max(value, 1) for number, value in summaries[each.cell].by_round[_COLUMN.figure].items()
            }
            for series in group
            if (each := series.at(percent)) is not None
        }
        yield Point(percent, figures, wins_of(ranks[percent]))
