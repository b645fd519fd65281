"""Find the selectivity below which near-storage reading, which filters next to the data, beats fetching the files.
Selectivity is the share of row groups that a query has to read.

If the run has a network of the requested bandwidth, measured times are compared. For another bandwidth, the time to
send the bytes of a query at this bandwidth is added to the query's time on loopback, as `recommend --bandwidth` does. A
service that sends while it works is faster than this sum, so the output states that the time was computed. Nothing is
extrapolated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench_runner.networks import network_text
from bench_runner.results.records import Cell, Conditions
from bench_runner.results.statistics import CellSummary, Interval, ranks
from bench_runner.variants import Variant
from reports.analysis.near_storage.access_paths import (
    LOOPBACK,
    is_fetching,
    is_foil,
    is_near,
    line_mbit,
    place_of,
    way_label,
)
from reports.analysis.near_storage.throughput import Series, series_of
from reports.analysis.units import number_text
from reports.analysis.varied.crossovers import Change, Crossovers, Point, crossovers, wins_of

ALIKE = 0.05
"""A measured network counts as having the requested bandwidth if the two bandwidths differ by at most this share, which
is the tolerance of the proxy."""
WALL, WIRE = "wall_ns", "wire_bytes"
ByRound = Mapping[int, float]


@dataclass(frozen=True)
class NearBreakEven:
    """The comparison of one near-storage access path with fetching the files, for queries that ask for parts of one
    stored table."""

    dataset: str
    rows: int
    place: str
    way: str
    over: str
    """The network as printed: 'loopback at 100 Mbit/s', or '20 MB/s'."""
    computed: bool
    """Whether the time on the network was computed, not measured."""
    percents: tuple[float, ...]
    told: Crossovers
    below: Interval | None
    """This path is faster for queries that have to read less than this percentage of row groups. None if there is no
    such percentage, or more than one."""
    always: bool
    """Whether this path is clearly faster at every measured percentage of row groups."""
    never: bool
    """Whether this path is clearly faster at no measured percentage of row groups."""


def break_evens(
    summaries: Mapping[Cell, CellSummary], bandwidth_bytes_per_s: float | None = None, datasets: Sequence[str] = ()
) -> list[NearBreakEven]:
    """Return the access paths that beat fetching over the widest range of selectivities. There is one such path for
    each stored table, placement of the matching row groups, and network.

    Paths are compared at the given bandwidth. Without a bandwidth, they are compared on each network of the run except
    loopback. Return an empty list if the run has no network on which both near-storage reading and fetching were
    measured.
    """
    groups: dict[tuple[str, str, Conditions, int], list[Series]] = {}
    for series in series_of(summaries):
        network = series.conditions.network
        if not network or (datasets and series.dataset not in datasets):
            continue
        rows = series.measured[0].cell.rows
        groups.setdefault((series.dataset, series.place, series.conditions, rows), []).append(series)
    found: list[NearBreakEven] = []
    for (dataset, place, conditions, rows), group in _asked(groups, bandwidth_bytes_per_s).items():
        fetching = next((series for series in group if is_fetching(series.variant)), None)
        near = [series for series in group if _is_advised(series.variant)]
        if fetching is None:
            continue
        line = bandwidth_bytes_per_s if _is_added(conditions, bandwidth_bytes_per_s) else None
        over = network_text(conditions.network) if line is None else f"{number_text(line / 1e6)} MB/s"
        compared = [
            each
            # If several paths have the same range, the first in this order is returned.
            for series in sorted(near, key=lambda each: place_of(each.variant))
            if (each := _against(series, fetching, summaries, line, (dataset, rows, place, over))) is not None
        ]
        if compared:
            found.append(max(compared, key=_reach))
    return found


def _is_advised(variant: Variant) -> bool:
    return is_near(variant) and not is_foil(variant) and "row_group_rows" not in variant.settings


def sentences(found: Sequence[NearBreakEven]) -> Iterator[str]:
    """Yield each result as a sentence without a full stop."""
    for each in found:
        about = f"{each.dataset}, {each.rows:,} rows, {each.place}"
        how = "computed: times on loopback plus the time to send the bytes" if each.computed else "measured"
        yield f"{_told(each)} ({about}; {how})"


def _told(each: NearBreakEven) -> str:
    named = f"over {each.over} reading near the storage by {each.way}"
    if each.told.undecided or each.told.few_rounds:
        return f"{named} has too few rounds to find where it beats fetching the files"
    if each.below is not None:
        low, high = (number_text(end) for end in each.below.spread)
        return (
            f"{named} beats fetching the files if a query has to read under {number_text(each.below.median)} % "
            f"({low} to {high} %) of the row groups"
        )
    if each.always:
        least, most = each.percents[0], each.percents[-1]
        return f"{named} beats fetching the files at every measured share, {least:g} to {most:g} % of the row groups"
    if each.never:
        return f"{named} never beats fetching the files at the measured shares"
    return f"{named} and fetching the files swap places more than once, or are tied"


def _asked(
    groups: Mapping[tuple[str, str, Conditions, int], list[Series]], bandwidth_bytes_per_s: float | None
) -> dict[tuple[str, str, Conditions, int], list[Series]]:
    """Return the measurements to compare. With a bandwidth, these are measurements on a network of about that
    bandwidth. Data sets that were not measured on such a network are compared on loopback. Without a bandwidth, these
    are the measurements on all networks except loopback."""
    if bandwidth_bytes_per_s is None:
        return {key: group for key, group in groups.items() if key[2].network != LOOPBACK}
    like = {key: group for key, group in groups.items() if _is_like(key[2], bandwidth_bytes_per_s)}
    of = {(key[0], key[1]) for key in like}
    rest = {key: group for key, group in groups.items() if key[2].network == LOOPBACK and (key[0], key[1]) not in of}
    return {**like, **rest}


def _is_like(conditions: Conditions, bandwidth_bytes_per_s: float) -> bool:
    bytes_per_s = line_mbit(conditions.network) * 1e6 / 8
    return bool(bytes_per_s) and abs(bytes_per_s / bandwidth_bytes_per_s - 1) <= ALIKE


def _is_added(conditions: Conditions, bandwidth_bytes_per_s: float | None) -> bool:
    return bandwidth_bytes_per_s is not None and conditions.network == LOOPBACK


def _against(
    near: Series,
    fetching: Series,
    summaries: Mapping[Cell, CellSummary],
    line: float | None,
    about: tuple[str, int, str, str],
) -> NearBreakEven | None:
    percents = tuple(each.percent for each in near.measured if fetching.at(each.percent) is not None)
    points = []
    for percent in percents:
        times = {
            series.variant: _times(summaries[measured.cell], line)
            for series in (near, fetching)
            if (measured := series.at(percent)) is not None
        }
        if not all(times.values()):
            return None
        points.append(Point(percent, times, wins_of(ranks(times))))
    told = crossovers(points, logarithmic=False)
    if told is None:
        return None
    change = [each for each in told.found if isinstance(each, Change)]
    # Only a single change from near storage to fetching is a break-even point.
    single = len(told.found) == 1 and change and change[0].before == near.variant
    dataset, rows, place, over = about
    label = way_label(near.variant)
    below = change[0].at if single else None
    always = all(point.wins.get(fetching.variant) is False for point in points)
    never = all(point.wins.get(fetching.variant) for point in points)
    computed = line is not None
    return NearBreakEven(dataset, rows, place, label, over, computed, percents, told, below, always, never)


def _times(summary: CellSummary, line: float | None) -> ByRound:
    """Return the time of each round. If the bandwidth `line` (bytes per second) is given, the time to send the round's
    bytes is added."""
    walls = summary.by_round[WALL]
    if line is None:
        return {number: max(value, 1) for number, value in walls.items()}
    wires = summary.by_round.get(WIRE, {})
    return {number: walls[number] + wires[number] / line * 1e9 for number in walls.keys() & wires.keys()}


def _reach(each: NearBreakEven) -> tuple[bool, float]:
    return each.always, each.below.median if each.below is not None else -1.0
