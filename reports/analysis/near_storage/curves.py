"""Show the curves fitted to a run's throughput, the errors of the curves, and how often a month all data could be read.

The figures have the form of tables 8.2 and 8.3 of Weigand, TU Munich 2025, but only with our measurements.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bench_runner.networks import network_text
from reports.analysis.figures import Figures
from reports.analysis.labels import short_labels
from reports.analysis.near_storage.access_paths import is_near, network_place, place_of
from reports.analysis.near_storage.model import Curve
from reports.analysis.near_storage.retrieval import expected, rate_per_month
from reports.analysis.near_storage.throughput import Series
from reports.analysis.near_storage.workloads import CAPACITY_GB, distributions, needed_per_month
from reports.analysis.units import number_text
from reports.analysis.words import NOTHING

FEWEST_POINTS = 5
"""Smallest number of points for a curve. A curve has four parameters, so with fewer points its error is unknown."""
_FORM = "T(x) = a + b / (1 + c x^d) in GB/s, x in percent of the row groups; least-squares fit to the medians"


def has_curves(found: Sequence[Series]) -> bool:
    """Return whether at least one access path was measured at enough selectivities to fit a curve."""
    return bool(_fitted(found))


def curves_of(found: Sequence[Series]) -> Iterator[Figures]:
    """Yield `Figures` for each suite, data set and placement of row groups: parameters and errors of the curves, then
    retrieval rates."""

    def about(series: Series) -> tuple[str, str, str]:
        return series.suite, series.dataset, series.place

    fitted = sorted(_fitted(found), key=lambda series: (*about(series), *_order(series)))
    for (suite, dataset, place), group in itertools.groupby(fitted, about):
        for figures in _of_place(f"{dataset}, {place}", list(group)):
            yield replace(figures, suite=suite)


def _of_place(about: str, several: Sequence[Series]) -> Iterator[Figures]:
    yield _parameters(about, several)
    if any(isinstance(series.curve(), Curve) for series in several):
        yield _errors(about, several)
        yield from _retrieval(about, [series for series in several if series.reaches_all])


def _fitted(found: Sequence[Series]) -> list[Series]:
    """Return the measurements of near-storage access paths that have enough points for a curve. Fetching is left out,
    because its throughput does not depend on the selectivity."""
    return [series for series in found if len(series.measured) >= FEWEST_POINTS and is_near(series.variant)]


def _order(series: Series) -> tuple[object, ...]:
    return *network_place(series.conditions.network), place_of(series.variant)


def _labels(several: Sequence[Series]) -> list[str]:
    """Return labels such as 'V2, loopback': the access path and its network."""
    names = short_labels(series.variant for series in several)
    found = []
    for series in several:
        parts = [names[series.variant], network_text(series.conditions.network)]
        parts += [series.conditions.cache] if series.conditions.cache != "warm" else []
        parts += ["fresh service"] if series.conditions.service == "fresh" else []
        found.append(", ".join(parts))
    return found


def _parameters(about: str, several: Sequence[Series]) -> Figures:
    lines, notes = [], [_FORM, "±: one standard deviation, from the covariance of the fit"]
    for label, series in zip(_labels(several), several, strict=True):
        curve = series.curve()
        if isinstance(curve, Curve):
            values = (curve.a, curve.b, curve.c, curve.d)
            told = [f"{value:.3g} ± {error:.1g}" for value, error in zip(values, curve.errors, strict=True)]
            lines.append((label, tuple(told)))
        else:
            lines.append((label, (NOTHING,) * 4))
            notes.append(f"{label}: {curve}")
    return Figures(
        f"curve fitted to the throughput ({about})", "access path", tuple("abcd"), tuple(lines), tuple(notes)
    )


def _errors(about: str, several: Sequence[Series]) -> Figures:
    percents = sorted({point.percent for series in several for point in series.points}, reverse=True)
    lines = []
    for label, series in zip(_labels(several), several, strict=True):
        curve = series.curve()
        if isinstance(curve, Curve):
            # Round first, so that no error is shown as -0.0 %.
            errors = {row.percent: round(100 * row.relative_error, 1) + 0.0 for row in curve.table(series.points)}
            lines.append((label, tuple(f"{errors[at]:+.1f} %" if at in errors else NOTHING for at in percents)))
    return Figures(
        f"error of the curve ({about})",
        "access path",
        tuple(f"{percent:g} %" for percent in percents),
        tuple(lines),
        ("curve / measured median - 1: +10 % means that the curve is too high there",),
    )


def _retrieval(about: str, several: Sequence[Series]) -> Iterator[Figures]:
    lines = []
    workloads = distributions()
    for label, series in zip(_labels(several), several, strict=True):
        curve = series.curve()
        if not isinstance(curve, Curve):
            continue
        texts: list[str] = []
        for bands in workloads.values():
            rates = expected(curve, bands)
            per_month = rate_per_month(rates.sustained, CAPACITY_GB)
            texts += [number_text(rates.mean), number_text(rates.sustained), number_text(per_month)]
        lines.append((label, tuple(texts)))
    if not lines:
        return
    heads = ("mean GB/s", "sustained GB/s", "times a month")
    needed = ", ".join(f"{name} {times}" for name, times in needed_per_month().items())
    yield Figures(
        f"throughput for published query mixes ({about})",
        "access path",
        tuple(f"{name} {head}" for name in workloads for head in heads),
        tuple(lines),
        (
            "mean: mean over queries of the throughput that each alone would reach; sustained: one after the other",
            f"times a month: how often a node of {CAPACITY_GB:,} GB is read at the sustained rate; needed: {needed} "
            "(Weigand 2025, tables 4.2, 4.4 and 8.2). A curve from this little data does not apply to disks that are "
            "slower than this machine's page cache",
        ),
    )
