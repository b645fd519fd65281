"""Find where a time changed permanently in the history of published runs. The time is then at a new level.

A series consists of the median times of one cell (operation, data set, variant and conditions) in all runs on one
machine. The medians are replaced by their ranks. PELT (Killick, Fearnhead and Eckley 2012, from the library ruptures)
divides the ranks into segments of equal level. Ranks need no estimate of the noise: how much one more segment reduces
the sum of squares by chance depends only on the number of runs. The penalty for a segment, 4 + log(runs) + 1.5
log(series), grows with the number of series, so that few pages list a change that happened by chance. The model assumes
independent runs. If a machine slowly becomes slower, changes are reported too.

In the simulations, series of 30 runs had 12 % of log-normal noise, and one run in ten was slower by half. A change was
reported on 5 % of pages with one unchanged series, on 7 % of pages with 10, and on 3 % of pages with 100 or 300. A
change of 20 % in the middle of a series was found in 75 % of cases on a page with one series, in 42 % with 10 series,
and in 19 % with 100. With 6 % of noise, these shares were 96, 85 and 61 %. A change of 50 % was found in 100, 98 and 90
% of cases. A simpler method, least squares for a single change with the noise estimated from the differences of
neighbours, found half as many.
"""

from __future__ import annotations

import importlib.util
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench_runner.results.records import Cell, Run
from bench_runner.results.statistics import FEWEST_COMPARED, Shift, shift_ratio, summarise
from reports.analysis.compare import LEAST_CHANGE, libraries_of_cell, library_changes

FEWEST_RUNS = 9
"""Series with fewer runs are not examined, because chance looks like a change. In 7 % of series of eight equal runs,
the three runs at one end are all slower or all faster than the other five."""
PENALTY, SERIES_PENALTY = 4.0, 1.5
"""Penalty for a further segment: PENALTY + log(number of runs) + SERIES_PENALTY * log(number of series). A segment is
added only if it reduces the sum of squares of the ranks, divided by their variance, by more than this."""


@dataclass(frozen=True)
class LevelChange:
    """A time that is at another level from the run `after` on."""

    cell: Cell
    shift: Shift
    """Ratio of the level after the change to the level before it. A level is the median of the runs up to the next
    change."""
    before: Run
    """The last run at the old level."""
    after: Run
    """The first run at the new level."""
    libraries: tuple[str, ...]
    """'pandas 3.1.0 -> 3.1.1' for each library that the measurement uses and whose version differs between the runs
    `before` and `after`."""


@dataclass(frozen=True)
class LevelChanges:
    """The changes of level in all series, the newest first."""

    cells: int
    """Number of series with enough runs."""
    changes: tuple[LevelChange, ...] | None
    """The changes, or None if the library ruptures is not installed."""


@dataclass(frozen=True)
class _Point:
    """The median time of one measurement in one run."""

    run: Run
    library: str
    median: float


def level_changes(runs: Sequence[Run]) -> LevelChanges:
    """Return the changes of level in any number of runs. The runs may be from several machines and in any order.

    Two times belong to the same series only if the cell (operation, data set, variant and conditions), the machine, the
    machine's processor and the data are the same.
    """
    found: dict[tuple[Cell, str | None, str], list[_Point]] = {}
    for run in sorted(runs, key=lambda run: run.info.started or ""):
        digests = {sample.dataset: sample.dataset_digest for sample in run.samples}
        for cell, summary in summarise(run.samples).items():
            if "wall_ns" in summary.figures:
                key = cell, run.info.machine.cpu, digests[str(cell.dataset)]
                found.setdefault(key, []).append(_Point(run, summary.library, summary.figures["wall_ns"].median))
    series = [(cell, points) for (cell, *_), points in found.items() if len(points) >= FEWEST_RUNS]
    if importlib.util.find_spec("ruptures") is None:
        return LevelChanges(len(series), None)
    changes = [change for cell, points in series for change in _changes(cell, points, len(series))]
    changes.sort(key=lambda change: change.after.info.started or "", reverse=True)
    return LevelChanges(len(series), tuple(changes))


def _changes(cell: Cell, points: Sequence[_Point], series: int) -> Iterator[LevelChange]:
    medians = [point.median for point in points]
    for place, shift in shifts(medians, series):
        before, after = points[place - 1], points[place]
        libraries = libraries_of_cell(library_changes(before.run, after.run), after.library)
        yield LevelChange(cell, shift, before.run, after.run, libraries)


def shifts(medians: Sequence[float], series: int = 1) -> Iterator[tuple[int, Shift]]:
    """Yield (index, ratio) for each change of the level of `medians`. The index is that of the first value at the new
    level. The ratio is new level to old level. Only ratios whose interval excludes 1 and that differ from 1 by more
    than LEAST_CHANGE are yielded. `series` is the number of series that are examined together."""
    starts = [0, *_ends(medians, PENALTY + math.log(len(medians)) + SERIES_PENALTY * math.log(series))]
    for first, place, end in zip(starts, starts[1:], starts[2:], strict=False):
        shift = shift_ratio(medians[place:end], medians[first:place])
        if shift is None or shift.low is None or shift.high is None or shift.low <= 1 <= shift.high:
            continue
        if max(shift.ratio, 1 / shift.ratio) > 1 + LEAST_CHANGE:
            yield place, shift


def _ends(medians: Sequence[float], penalty: float) -> list[int]:
    """Return the ends of the segments of equal level."""
    import ruptures
    from scipy.stats import rankdata

    ranks = rankdata(medians)
    deviation = statistics.pstdev(ranks)
    if not deviation:
        return [len(medians)]
    # With this kernel, the cost is the sum of squares, computed in C. This is 20 times as fast as ruptures' cost
    # function for ranks.
    search = ruptures.KernelCPD(kernel="linear", min_size=FEWEST_COMPARED).fit((ranks / deviation).reshape(-1, 1))
    ends: list[int] = search.predict(pen=penalty)
    return ends
