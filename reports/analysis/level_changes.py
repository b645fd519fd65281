"""Find where the level of a time changed in the history of published runs.

The medians of a cell, in the order of its runs on one machine, are replaced by their ranks. PELT (Killick, Fearnhead
and Eckley 2012, from the library ruptures) divides the ranks into segments of equal level. Ranks need no estimate of
the noise: what one more segment gains by chance depends only on the number of runs. In about 5 % of series without a
change it is more than the penalty, 4 + log(runs). This assumes independent runs: if a machine slowly becomes slower,
its cells have notes too.

Simulated cells had 12 % of log-normal noise for each run, and one run in ten was slower, by 50 % on average. Of 8,000
cells with 30 runs without a change, 5.4 % had a note. A change of 20 % in the middle was found in 79 % of 8,000 others,
in 67 % within three runs of its date. With the penalty 4.25 + log(runs) it was 4.7 % and 77 %. With 6 % of noise the
change was found in 99 %, in 95 % within three runs, and with only 12 runs in 70 %; 3 to 6 % of cells with 9 to 100 runs
without a change had a note. At 5 % of false notes, a single change by least squares with a noise estimate from the
differences of neighbours was found in 37 %, and in 67 % if outliers were limited to 2.5 standard deviations.
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
"""Shorter series are not examined. In 7 % of series of eight equal runs, three at one end are all slower or all faster
than the other five."""
PENALTY = 4.0
"""A segment must reduce the sum of squares of the ranks by this and the logarithm of the number of runs, in units of
their variance."""


@dataclass(frozen=True)
class LevelChange:
    """A time that is at another level from one run on."""

    cell: Cell
    shift: Shift
    """The medians from this run on as a ratio to those before, each up to the next change."""
    before: Run
    """The last run at the old level."""
    after: Run
    """The first run at the new level."""
    libraries: tuple[str, ...]
    """'pandas 3.1.0 -> 3.1.1' for each library of the cell whose version differs between these two runs."""


@dataclass(frozen=True)
class LevelChanges:
    """The changes of all cells, the newest first."""

    cells: int
    """Number of cells that were measured often enough."""
    changes: tuple[LevelChange, ...] | None
    """None if ruptures is not installed."""


@dataclass(frozen=True)
class _Point:
    """The median time of one cell in one run."""

    run: Run
    library: str
    median: float


def level_changes(runs: Sequence[Run]) -> LevelChanges:
    """Find the changes in any number of runs, of any machines, in any order.

    Runs are compared if the cell, the machine, its processor and the data are the same.
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
    """Yield each change of the level of `medians`: the index of the first value at the new level, and the ratio to the
    old one. The ratio is above LEAST_CHANGE, and its interval excludes 1."""
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
    # With this kernel the cost is the sum of squares, computed in C: 20 times as fast as ruptures' cost of ranks.
    search = ruptures.KernelCPD(kernel="linear", min_size=FEWEST_COMPARED).fit((ranks / deviation).reshape(-1, 1))
    ends: list[int] = search.predict(pen=PENALTY + math.log(len(medians)))
    return ends
