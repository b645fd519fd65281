"""Compute the throughput of a stored table at each share of row groups that a query has to read.

Throughput is the table's bytes divided by the query's time. The definition is from Weigand, TU Munich 2025, chapter 8.
This definition always uses the bytes of the whole table, even if a query reads little of the table. A query that reads
one percent of the table may therefore exceed the speed of a disk many times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench_runner.results.records import Cell, Conditions, changed
from bench_runner.results.statistics import CellSummary, Interval
from bench_runner.variants import OperationName, Variant, operation_name_of
from reports.analysis.near_storage.model import Curve, NoFit, Point, fit

QUERY, SAVE = operation_name_of("query"), operation_name_of("save")


@dataclass(frozen=True)
class CellThroughput:
    """The throughput of a query that asks for `percent` % of the row groups. The interval of `gb_per_s` is computed
    from the interval of the query's times."""

    percent: float
    gb_per_s: Interval
    cell: Cell


@dataclass(frozen=True)
class Series:
    """The throughput of one variant on one data set under one set of conditions. In `measured`, the query that reads
    the fewest row groups comes first."""

    variant: Variant
    dataset: OperationName
    conditions: Conditions
    place: str
    """Placement of the row groups that a query has to read: 'clustered' or 'scattered'."""
    stored_bytes: float
    measured: tuple[CellThroughput, ...]

    @property
    def suite(self) -> str:
        """The suite, which is the same for all measurements."""
        return self.measured[0].cell.suite

    @property
    def points(self) -> tuple[Point, ...]:
        """The medians as points, to which a curve is fitted."""
        return tuple(Point(each.percent, each.gb_per_s.median) for each in self.measured)

    def at(self, percent: float) -> CellThroughput | None:
        """Return the measurement at this selectivity, or None if it was not measured."""
        return next((each for each in self.measured if each.percent == percent), None)

    @property
    def reaches_all(self) -> bool:
        """Whether a query that reads all row groups was measured. Such queries are the slowest and take most of the
        time of a mix of queries. A curve without them therefore gives no rate for the mix."""
        return self.at(100) is not None

    def curve(self) -> Curve | NoFit:
        """Return the curve fitted to the medians, or the reason why there is none."""
        try:
            return fit(self.points)
        except NoFit as none:
            return none


def series_of(summaries: Mapping[Cell, CellSummary]) -> tuple[Series, ...]:
    """Return the throughput of queries that return all columns. There is one series for each variant, data set, set of
    conditions (network, cache and others), placement of the matching row groups (clustered or scattered), suite and
    machine.

    As in every ranking, some figures are left out: queries that the library cannot do, so that the adapter reads
    everything and selects (fallbacks), answers from a library's cache, wrong answers, and raw I/O.
    """
    found: dict[tuple[Variant, OperationName, Conditions, str, str, str], list[CellThroughput]] = {}
    sizes: dict[tuple[Variant, OperationName, Conditions, str, str, str], float] = {}
    for cell, summary in summaries.items():
        percent, place = _asked(cell.operation)
        size_bytes = _stored_bytes(cell, summaries)
        if percent is None or size_bytes is None or "wall_ns" not in summary.figures:
            continue
        if summary.fallback or summary.cached or summary.wrong or cell.variant.is_raw_io:
            continue
        key = (cell.variant, cell.dataset, cell.conditions, place, cell.suite, cell.machine)
        sizes[key] = size_bytes
        rate = _rate(size_bytes, summary.figures["wall_ns"])
        found.setdefault(key, []).append(CellThroughput(percent, rate, cell))
    return tuple(
        Series(*key[:4], sizes[key], tuple(sorted(measured, key=lambda each: each.percent)))
        for key, measured in found.items()
    )


def _asked(operation: OperationName) -> tuple[float | None, str]:
    """Return the share of row groups in percent that an operation asks for, and the placement of these row groups
    ('clustered' or 'scattered'). The share is None if the operation is not a query, or if it does not return all
    columns."""
    parameters = operation.parameters
    if operation.name != QUERY or {"columns", "values"} & parameters.keys():
        return None, ""
    return 100 * float(parameters["groups"]), parameters.get("place", "clustered")


def _stored_bytes(cell: Cell, summaries: Mapping[Cell, CellSummary]) -> float | None:
    """Return the size of the stored copy that a query reads, as measured when the copy was saved. Use the save with the
    same conditions as the query, or else the same save with `cache="warm"`. Return None if there is none."""
    for conditions in _alike(cell.conditions):
        saved = summaries.get(Cell(cell.suite, SAVE, cell.dataset, cell.rows, cell.variant, conditions, cell.machine))
        if saved is not None and "size_bytes" in saved.figures:
            return saved.figures["size_bytes"].median
    return None


def _alike(conditions: Conditions) -> Iterator[Conditions]:
    yield conditions
    yield changed(conditions, cache="warm")


def _rate(size_bytes: float, wall_ns: Interval) -> Interval:
    """Convert times to rates. The unit is GB/s, which is bytes per nanosecond. The longest time is the lowest rate."""
    return Interval(
        median=size_bytes / max(wall_ns.median, 1),
        low=None if wall_ns.high is None else size_bytes / max(wall_ns.high, 1),
        high=None if wall_ns.low is None else size_bytes / max(wall_ns.low, 1),
        minimum=size_bytes / max(wall_ns.maximum, 1),
        maximum=size_bytes / max(wall_ns.minimum, 1),
        rounds=wall_ns.rounds,
    )
