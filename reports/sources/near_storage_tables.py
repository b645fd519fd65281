"""Compare our figures with tables 8.1 to 8.3 of the thesis on near storage.

In each table, our figures come from one run, data set, placement of the matching row groups and set of conditions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from bench_runner.conditions import conditions_text
from bench_runner.results.records import Conditions, Run
from bench_runner.results.statistics import summarise
from reports.analysis.near_storage.access_paths import network_place
from reports.analysis.near_storage.cost import (
    D3EN_4XLARGE,
    REED_SOLOMON_10_4,
    S3_STANDARD,
    THESIS_STORED_GB,
    cluster_per_month,
    provider_per_month,
)
from reports.analysis.near_storage.curves import has_curves
from reports.analysis.near_storage.model import Curve, NoFit, Point, fit
from reports.analysis.near_storage.retrieval import expected, rate_per_month
from reports.analysis.near_storage.throughput import Series, series_of
from reports.analysis.near_storage.workloads import CAPACITY_GB, distributions, published_rows
from reports.analysis.units import number_text
from reports.sources.claims import SOURCES, has_several_machines
from reports.sources.side_by_side import Entry, SideBySide, line_of, measured

WAYS = {name: SOURCES["near-storage"].variants[name] for name in ("V1", "V1, footers kept", "V2")}
"""Our variants by the names in the tables. V1 (the service sends rows) and V2 (the service sends byte ranges, which the
client decodes) are access paths of the thesis. The thesis has figures for 'V1' and 'V2' only."""
_NONE = "-"
_REDUNDANCY = {
    "own machines, one copy": 1.0,
    "own machines, erasure coding 10 + 4": REED_SOLOMON_10_4,
    "own machines, two replicas": 2.0,
}
"""Bytes on the disks divided by bytes stored, for each kind of redundancy. Our near_storage library uses replicas."""
_THEIRS = {"V1": "parquet_reader_gb_s", "V2": "direct_byte_access_gb_s"}

Ours = Mapping[str, Series]
"""The throughput of each access path, for one data set, placement and set of conditions. The keys are the names in
WAYS."""


def tables(runs: Sequence[Run]) -> tuple[SideBySide, ...]:
    """Return tables 8.1 to 8.3 for each run that measured an access path (a way to query near storage). Each data set,
    placement and set of conditions has its own tables. Tables with the nearest network come first.

    If no run measured an access path, return only the published figures. If several runs have the same conditions, each
    title names its run.
    """
    found = [(network, about, run.info.id, ours) for run in runs for network, about, ours in _groups(run)]
    places = Counter(about for _, about, _, _ in found)
    shown = [
        (f"{about}, run {name}" if places[about] > 1 else about, ours)
        for _, about, name, ours in sorted(found, key=lambda each: network_place(each[0]))
    ]
    shown = shown or [("not in this run; to measure it: run near-storage", {})]
    return (*(table for about, ours in shown for table in _of_one_place(about, ours)), _cost())


def _of_one_place(about: str, ours: Ours) -> Iterator[SideBySide]:
    if ours and not has_curves(tuple(ours.values())):
        # The reason is the same for all access paths, because they were measured at the same selectivities.
        reason = next(iter(ours.values())).curve()
        yield _throughput(f"{about}; no curve: {reason}", ours)
        return
    yield _throughput(about, ours)
    yield _retrieval(about, ours)
    yield _parameters(about, ours)
    yield _errors(about, ours)


def _groups(run: Run) -> Iterator[tuple[str, str, Ours]]:
    """Yield (network, description, access paths) for each set of figures that share data set, conditions and placement
    of the row groups."""
    grouped: dict[tuple[str, Conditions, str, str], dict[str, Series]] = {}
    names = {variant: name for name, variant in WAYS.items()}
    for series in series_of(summarise(run.samples)):
        if series.variant in names:
            key = (series.dataset, series.conditions, series.place, series.measured[0].cell.machine)
            grouped.setdefault(key, {})[names[series.variant]] = series
    for (dataset, conditions, place, machine), ours in grouped.items():
        where = f", machine {machine}" if has_several_machines(run) else ""
        yield conditions.network, f"ours: {dataset}, {place}, {conditions_text(conditions)}{where}", ours


@cache
def published() -> Mapping[str, tuple[Point, ...]]:
    """Return the points of table 8.1 for 'V1' and 'V2'. As in that table, the query that reads the fewest row groups
    comes last."""
    rows = published_rows("near_storage_throughput.csv")
    return {
        name: tuple(Point(float(row["selectivity_percent"]), float(row[column])) for row in rows)
        for name, column in _THEIRS.items()
    }


# --- table 8.1 ---------------------------------------------------------------------------------------------------


def _throughput(about: str, ours: Ours) -> SideBySide:
    lines = []
    for place, point in enumerate(published()["V1"]):
        theirs = [_gb(published()[name][place].gb_per_s) for name in _THEIRS]
        lines.append(line_of(f"{point.percent:g} %", *theirs, *(_measured(ours.get(n), point.percent) for n in WAYS)))
    head = ("row groups", *(f"thesis: {name}" for name in _THEIRS), *(f"ours: {name}" for name in WAYS))
    return SideBySide(f"table 8.1, throughput in GB/s ({about})", head, tuple(lines))


def _measured(series: Series | None, percent: float) -> Entry:
    found = series.at(percent) if series is not None else None
    if found is None:
        return Entry(_NONE)
    return measured(_gb(found.gb_per_s.median), found.gb_per_s, found.cell)


# --- table 8.2 ---------------------------------------------------------------------------------------------------


def _retrieval(about: str, ours: Ours) -> SideBySide:
    """Return the expected throughput of each access path, and how often a month all data can be read. Both are shown
    for the mean, which the thesis prints, and for the sustained throughput."""
    needed = {row["workload"]: row for row in published_rows("near_storage_retrieval.csv")}
    whole = {name: series for name, series in ours.items() if series.reaches_all}
    curves = {name: curve for name, curve in _curves(whole).items() if isinstance(curve, Curve)}
    lines = []
    for workload, bands in distributions().items():
        for name, curve in curves.items():
            rates = expected(curve, bands)
            printed = needed[workload].get(_THEIRS.get(name.removeprefix("thesis: "), ""), _NONE)
            told = (workload, name, printed, _gb(rates.mean), _gb(rates.sustained))
            often = (_rate(rates.mean), _rate(rates.sustained), needed[workload]["needed_per_month"])
            lines.append(line_of(*told, *often))
    head = (
        *("queries", "access path", "printed GB/s", "mean GB/s", "sustained GB/s"),
        *("mean a month", "sustained a month", "needed"),
    )
    return SideBySide(f"table 8.2, how often {CAPACITY_GB:,} GB can be read ({about})", head, tuple(lines))


def _rate(gb_per_s: float) -> str:
    return number_text(rate_per_month(gb_per_s, CAPACITY_GB))


# --- section 3.1 -------------------------------------------------------------------------------------------------


def _cost() -> SideBySide:
    """Return the monthly cost of storage for several kinds of redundancy, at the thesis's prices of early 2025."""
    provider = provider_per_month(THESIS_STORED_GB, S3_STANDARD)
    lines = [line_of("S3 Standard", _NONE, f"{provider:,.0f}", "100 %")]
    for title, redundancy in _REDUNDANCY.items():
        cluster = cluster_per_month(THESIS_STORED_GB, D3EN_4XLARGE, redundancy)
        share = f"{100 * cluster.per_month / provider:.0f} %"
        lines.append(line_of(title, f"{cluster.machines:,}", f"{cluster.per_month:,.0f}", share))
    title = f"section 3.1, monthly cost of storing {THESIS_STORED_GB:,} GB at the thesis's prices of early 2025"
    return SideBySide(title, ("where", "machines", "USD a month", "of S3"), tuple(lines))


# --- table 8.3 ---------------------------------------------------------------------------------------------------


def _parameters(about: str, ours: Ours) -> SideBySide:
    """Return the parameters of the fitted curves, each with its standard deviation. The thesis prints no standard
    deviations."""
    lines = []
    for name, curve in _curves(ours).items():
        told = ["no curve", *[_NONE] * 3]
        if isinstance(curve, Curve):
            values = (curve.a, curve.b, curve.c, curve.d)
            told = [f"{value:.4g} ± {error:.2g}" for value, error in zip(values, curve.errors, strict=True)]
        lines.append(line_of(name, *told))
    return SideBySide(f"T(x) = a + b / (1 + c x^d), x in percent ({about})", ("access path", *"abcd"), tuple(lines))


def _errors(about: str, ours: Ours) -> SideBySide:
    """Return the errors of the curves at each point. One curve is fitted to the thesis's points and one to ours, both
    by the same method."""
    points = {f"thesis: {name}": each for name, each in published().items()}
    points |= {f"ours: {name}": series.points for name, series in ours.items()}
    lines = []
    for name, curve in _curves(ours).items():
        for row in curve.table(points[name]) if isinstance(curve, Curve) else ():
            rates = (_gb(row.measured_gb_per_s), _gb(row.fitted_gb_per_s))
            # Round first, so that no error is shown as -0.00 %.
            percent = f"{round(100 * row.relative_error, 2) + 0.0:+.2f} %"
            lines.append(line_of(name, f"{row.percent:g} %", *rates, percent))
    head = ("access path", "row groups", "measured GB/s", "fitted GB/s", "relative error")
    return SideBySide(f"table 8.3, errors of the curves ({about})", head, tuple(lines))


def _curves(ours: Ours) -> Mapping[str, Curve | NoFit]:
    """Return the curves that are fitted to the thesis's points and to our points. A series that has no curve has the
    reason instead."""
    theirs = {f"thesis: {name}": fit(points) for name, points in published().items()}
    return {**theirs, **{f"ours: {name}": series.curve() for name, series in ours.items()}}


def _gb(gb_per_s: float) -> str:
    return number_text(gb_per_s)
