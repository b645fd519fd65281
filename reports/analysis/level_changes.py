"""Find where a time changed permanently in the history of published runs. The time is then at a new level.

A series consists of the median times of one cell (operation, data set, variant and conditions) in all runs on one
machine. The medians are replaced by their ranks. PELT (Killick, Fearnhead and Eckley 2012, from the library ruptures)
divides the ranks into segments of equal level. Ranks need no estimate of the noise: how much one more segment reduces
the sum of squares by chance depends only on the number of runs. In about 5 % of series without a change, this reduction
exceeds the penalty, 4 + log(runs), so that a change is reported. The model assumes independent runs. If a machine
slowly becomes slower, changes are reported too.

In the simulations, the series had 12 % of log-normal noise, and one run in ten was slower, by 50 % on average. Of 8,000
series with 30 runs without a change, 5.4 % had a reported change. In 8,000 other series, the time changed by 20 % in
the middle. The change was found in 79 %, and in 67 % within three runs of its date. With the penalty 4.25 + log(runs),
these shares were 4.7 % and 77 %. With 6 % of noise, the change was found in 99 %, in 95 % within three runs, and in 70
% of series with only 12 runs. Of series with 9 to 100 runs without a change, 3 to 6 % had a reported change. Other
methods were compared at 5 % of falsely reported changes. Least squares for a single change, with the noise estimated
from the differences of neighbours, found the change in 37 %, and in 67 % if outliers were limited to 2.5 standard
deviations.
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
"""Series with fewer runs are not examined. In 7 % of series of eight equal runs, the three at one end are all slower or
all faster than the other five."""
PENALTY = 4.0
"""A further segment must reduce the sum of squares of the ranks, divided by their variance, by more than this number
plus the logarithm of the number of runs."""


@dataclass(frozen=True)
class LevelChange:
    """A time that is at another level from the run `after` on."""

    cell: Cell
    shift: Shift
    """Ratio of the medians since the change to the medians before it. Both are limited by the neighbouring changes."""
    before: Run
    """The last run at the old level."""
    after: Run
    """The first run at the new level."""
    libraries: tuple[str, ...]
    """'pandas 3.1.0 -> 3.1.1' for each library that the measurement uses and whose version differs between these two
    runs."""


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

    Times are compared only if the cell, the machine, its processor and the data are the same.
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
    changes = [change for cell, points in series for change in _changes(cell, points)]
    changes.sort(key=lambda change: change.after.info.started or "", reverse=True)
    return LevelChanges(len(series), tuple(changes))


def _changes(cell: Cell, points: Sequence[_Point]) -> Iterator[LevelChange]:
    medians = [point.median for point in points]
    for place, shift in shifts(medians):
        before, after = points[place - 1], points[place]
        libraries = libraries_of_cell(library_changes(before.run, after.run), after.library)
        yield LevelChange(cell, shift, before.run, after.run, libraries)


def shifts(medians: Sequence[float]) -> Iterator[tuple[int, Shift]]:
    """Yield (index, ratio) for each change of the level of `medians`. The index is that of the first value at the new
    level, and the ratio is new level to old level. It differs from 1 by more than LEAST_CHANGE in either direction, and
    its interval excludes 1."""
    starts = [0, *_ends(medians)]
    for first, place, end in zip(starts, starts[1:], starts[2:], strict=False):
        shift = shift_ratio(medians[place:end], medians[first:place])
        if shift is None or shift.low is None or shift.high is None or shift.low <= 1 <= shift.high:
            continue
        if max(shift.ratio, 1 / shift.ratio) > 1 + LEAST_CHANGE:
            yield place, shift


def _ends(medians: Sequence[float]) -> list[int]:
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
    ends: list[int] = search.predict(pen=PENALTY + math.log(len(medians)))
    return ends
