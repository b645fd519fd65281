"""Two runs beside each other: what became slower, larger or hungrier, and whether that is more than noise.

A change counts when the interval of its ratio excludes 1 and the ratio exceeds the noise that the two runs themselves
show: of a time the shifts of all cells, of a memory peak the spread of its rounds. What shifts all cells alike is
drift of the machine: it is estimated, named and taken out. A pure function of two runs; how it is shown is in
reports.text.comparison.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from bench_runner.results.records import Cell, Run
from bench_runner.results.statistics import LEVEL, CellSummary, Shift, shift_ratio, smallest_shown, summarise
from reports.analysis.columns import Role

LEAST_CHANGE = 0.05
"""Changes under this are not told, however sure they are: the same code in another place of memory makes as much."""
LEAST_NOISE_DEVIATIONS = 3.0
"""The noise of a cell between two runs is at least this many standard deviations of its shift."""
FALSE_CHANGES = 0.05
"""How often two runs of the same code may show a change: more cells need more deviations."""
_TO_DEVIATION = 1.4826
"""The median of absolute deviations times this is the standard deviation of normal noise."""
SURELY_MORE = 1.5
"""A dozen cells that spread so many times as much as their intervals say do so by more than chance: the runs differ as
wholes."""
INTERVALS_COUNT = 2
"""Below that the intervals count so many times as much as the spread, which so few cells know to a third only. Of 100
to 300 pairs of runs of equal code, of 7 to 50 rounds each, 2 to 3 % showed a change by both, 5 to 11 % by the spread
alone."""
_WITHIN = statistics.NormalDist().inv_cdf((1 + LEVEL) / 2)
FEWEST_FOR_NOISE = 5
"""Under this many cells their spread says nothing; then a change must exceed the widest interval."""
MEMORY_STEP_BYTES = 2 * 1024 * 1024
"""Memory changes under a huge page are not told: allocators take it in steps, and a whole run may stand one step higher
than the next (seen: 1 MiB more in each sample of a run, of equal code)."""
FIGURES = (Role.TIME.figure, Role.MEMORY.figure, Role.SIZE.figure)
"""Of every operation, as far as it has them."""


class CompareError(Exception):
    """The two runs cannot be compared, or there is nothing to compare."""


class ChangeVerdict(Enum):
    """What became of a cell's figure from the first run to the second."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "no change"
    UNJUDGED = "too few rounds"


@dataclass(frozen=True)
class Change:
    """One figure of one cell in both runs. `shift` is as measured, `ratio` without the drift."""

    cell: Cell
    figure: str
    before: float
    after: float
    shift: Shift
    ratio: float
    verdict: ChangeVerdict
    libraries: tuple[str, ...]
    """'pandas 3.1.0 -> 3.1.1' for each library of the cell that has another version."""


@dataclass(frozen=True)
class Drift:
    """What shifted all times of an operation alike, as a ratio; `yardstick` is raw I/O's own shift, None without."""

    operation: str
    ratio: float
    yardstick: float | None
    noises: Mapping[Cell, float]
    """Ratios of a cell beyond 1 + noise are more than noise."""
    cells: int

    @property
    def noise(self) -> float:
        """The noise of a usual cell."""
        return statistics.median(self.noises.values())


@dataclass(frozen=True)
class RunComparison:
    """Everything that two runs say together."""

    before: Run
    after: Run
    changes: tuple[Change, ...]
    drifts: tuple[Drift, ...]
    newly_failing: tuple[tuple[Cell, str], ...]
    """Cells with figures before and none after, and why."""
    newly_working: tuple[Cell, ...]
    failing_in_both: tuple[Cell, ...]
    """Cells that failed in both runs: nothing changed, and nothing is known of them."""
    only_before: tuple[Cell, ...]
    only_after: tuple[Cell, ...]
    libraries: tuple[str, ...]
    """Every library whose version differs."""
    differences: tuple[str, ...]
    """Why the runs should not be compared, where the user insisted."""

    @property
    def regressions(self) -> tuple[Change, ...]:
        """Confirmed changes for the worse."""
        return tuple(change for change in self.changes if change.verdict is ChangeVerdict.WORSE)

    @property
    def improvements(self) -> tuple[Change, ...]:
        """Confirmed changes for the better."""
        return tuple(change for change in self.changes if change.verdict is ChangeVerdict.BETTER)

    @property
    def failed(self) -> bool:
        """Whether something is worse: a figure, or a cell that has none any more."""
        return bool(self.regressions or self.newly_failing)


def compare(before: Run, after: Run, *, least_change: float = LEAST_CHANGE, anyway: bool = False) -> RunComparison:
    """Compare two runs cell by cell. `least_change` as a share: 0.1 tells what changed by more than 10 %.

    Raises CompareError when the runs come from different machines or data (unless `anyway`), and when they have no
    figure in common.
    """
    differences = check_comparable(before, after, anyway=anyway)
    ours, theirs = (_by_cell(run) for run in (before, after))
    common = [cell for cell in ours if cell in theirs]
    measured = [cell for cell in common if ours[cell].figures and theirs[cell].figures]
    if not any(not cell.variant.is_raw_io for cell in measured):
        raise CompareError(
            f"{before.folder.name} and {after.folder.name} have no measured cell in common.\n"
            "  Measure the same suite, data sets, rows and conditions in both."
        )
    drifts = tuple(_drifts(measured, ours, theirs))
    least_bytes = max(smallest_shown(before.info), smallest_shown(after.info))
    libraries = _library_changes(before, after)
    changes = []
    for cell in measured:
        if cell.variant.is_raw_io:
            continue
        for figure in FIGURES:
            change = _change(cell, figure, ours[cell], theirs[cell], drifts, least_change, least_bytes)
            if change is not None:
                changes.append(replace(change, libraries=_of_cell(libraries, theirs[cell].library)))
    return RunComparison(
        before,
        after,
        tuple(changes),
        drifts,
        tuple(_newly_failing(common, ours, theirs)),
        tuple(cell for cell in common if theirs[cell].figures and not ours[cell].figures),
        tuple(cell for cell in common if _failed(ours[cell]) and _failed(theirs[cell])),
        tuple(cell for cell in ours if cell not in theirs),
        tuple(cell for cell in theirs if cell not in ours),
        tuple(f"{name} {old or 'absent'} -> {new or 'absent'}" for name, (old, new) in libraries.items()),
        differences,
    )


def check_comparable(before: Run, after: Run, *, anyway: bool) -> tuple[str, ...]:
    """Why the runs should not be compared; raises CompareError for it unless `anyway`."""
    differences = tuple(_differences(before, after))
    if differences and not anyway:
        raise CompareError(f"{differences[0]}, so the runs are not comparable.\n  `anyway=True` compares them anyway.")
    return differences


def _failed(summary: CellSummary) -> bool:
    return not summary.figures and any(failure.is_failure for failure in summary.failures)


def _by_cell(run: Run) -> dict[Cell, CellSummary]:
    """The cells of a run, machine aside: that both are the same machine's is checked apart."""
    return {replace(cell, machine=""): summary for cell, summary in summarise(run.samples).items()}


def _differences(before: Run, after: Run) -> Iterable[str]:
    machines = [sorted({sample.machine for sample in run.samples}) for run in (before, after)]
    if machines[0] != machines[1]:
        yield f"the runs are of different machines: {', '.join(machines[0])} and {', '.join(machines[1])}"
    for name in ("cpu", "cores", "memory_bytes", "virtualisation"):
        one, other = (getattr(run.info.machine, name) for run in (before, after))
        # What a run does not tell differs from nothing.
        if None not in (one, other) and one != other:
            yield f"the machine's {name.removesuffix('_bytes')} differs: {one} and {other}"
    digests = [{sample.dataset: sample.dataset_digest for sample in run.samples} for run in (before, after)]
    for name in sorted(digests[0].keys() & digests[1].keys()):
        if digests[0][name] != digests[1][name]:
            yield f"the data of {name} differ: digest {digests[0][name][:12]} and {digests[1][name][:12]}"


def _values(summary: CellSummary, figure: str, least: int) -> list[float]:
    yardstick = least if figure == "peak_private_bytes" else 0
    return [float(max(value, yardstick)) for value in summary.by_round.get(figure, {}).values()]


def _drifts(
    measured: Sequence[Cell], ours: Mapping[Cell, CellSummary], theirs: Mapping[Cell, CellSummary]
) -> Iterable[Drift]:
    """For each operation the median shift of the times of its cells; and the noise around that, for which all cells are
    needed: six of one operation tell their spread too badly (of 420 pairs of equal runs 7 % showed a change by it, 4 %
    by that of both operations)."""
    by_operation: dict[str, dict[Cell, Shift]] = {}
    for cell in measured:
        shift = shift_ratio(_values(theirs[cell], "wall_ns", 0), _values(ours[cell], "wall_ns", 0))
        if shift is not None:
            by_operation.setdefault(cell.operation, {})[cell] = shift
    middles = {
        operation: statistics.median(math.log(shift.ratio) for shift in shifts.values())
        for operation, shifts in by_operation.items()
    }
    all_shifts = {cell: shift for shifts in by_operation.values() for cell, shift in shifts.items()}
    distances = {cell: abs(math.log(shift.ratio) - middles[cell.operation]) for cell, shift in all_shifts.items()}
    noises = _noises(distances, len(middles), all_shifts)
    for operation, shifts in by_operation.items():
        yardsticks = [math.log(shift.ratio) for cell, shift in shifts.items() if cell.variant.is_raw_io]
        yardstick = statistics.median(yardsticks) if yardsticks else None
        of_yardsticks = max((abs(value - (yardstick or 0.0)) for value in yardsticks), default=0.0)
        yield Drift(
            operation,
            math.exp(middles[operation]),
            None if yardstick is None else math.exp(yardstick),
            {cell: math.expm1(max(noises[cell], of_yardsticks)) for cell in shifts},
            len(shifts),
        )


def _noises(distances: Mapping[Cell, float], operations: int, shifts: Mapping[Cell, Shift]) -> dict[Cell, float]:
    """As logarithms: so many standard deviations of each cell's shift that chance seldom goes beyond. The deviation is
    what the cell's interval says, of a cell with a narrow one what those of all say, corrected by how the distances of
    all cells from their drifts compare with that; or the spread of these distances, where it is surely more."""
    count = len(distances)
    widths = {cell: _log_width(shift) for cell, shift in shifts.items()}
    if count - operations < FEWEST_FOR_NOISE:
        return dict.fromkeys(widths, max(widths.values(), default=0.0))
    usual = statistics.median(widths.values())
    said = {cell: max(width, usual) / (2 * _WITHIN) for cell, width in widths.items()}
    # The drifts are taken from the same cells: without the correction few cells look calmer than they are.
    corrected = _TO_DEVIATION * math.sqrt(count / (count - operations))
    spread = corrected * statistics.median(distances.values())
    deviations = max(statistics.NormalDist().inv_cdf(1 - FALSE_CHANGES / 2 / count), LEAST_NOISE_DEVIATIONS)
    if spread >= SURELY_MORE * usual / (2 * _WITHIN):
        return {cell: deviations * max(spread, deviation) for cell, deviation in said.items()}
    times_said = corrected * statistics.median(distance / said[cell] for cell, distance in distances.items())
    believed = math.sqrt((times_said**2 + INTERVALS_COUNT) / (1 + INTERVALS_COUNT))
    return {cell: deviations * believed * deviation for cell, deviation in said.items()}


def _log_width(shift: Shift) -> float:
    return math.log(shift.high / shift.low) if shift.low and shift.high else 0.0


def _change(
    cell: Cell,
    figure: str,
    before: CellSummary,
    after: CellSummary,
    drifts: Sequence[Drift],
    least_change: float,
    least_bytes: int,
) -> Change | None:
    values = _values(before, figure, least_bytes), _values(after, figure, least_bytes)
    shift = shift_ratio(values[1], values[0])
    if shift is None:
        return None
    if len({*values[0]}) == len({*values[1]}) == 1 and figure == "size_bytes":
        # What never varies needs no five rounds.
        shift = Shift(shift.ratio, shift.ratio, shift.ratio)
    drift = next((found for found in drifts if found.operation == cell.operation), None)
    taken_out = drift.ratio if drift and figure == "wall_ns" else 1.0
    noise = 0.0
    if figure == "wall_ns" and drift:
        noise = drift.noises[cell]
    elif figure == "peak_private_bytes":
        # A run without its probe's error may show peaks of 0.
        noise = max(*map(_spread, values), MEMORY_STEP_BYTES) / max(statistics.median(values[0]), 1)
    ratio = shift.ratio / taken_out
    return Change(
        cell,
        figure,
        statistics.median(values[0]),
        statistics.median(values[1]),
        shift,
        ratio,
        _verdict(shift, ratio, taken_out, max(noise, least_change)),
        (),
    )


def _spread(values: Sequence[float]) -> float:
    """How far the rounds of one run lie from each other."""
    return max(values) - min(values)


def _verdict(shift: Shift, ratio: float, drift: float, limit: float) -> ChangeVerdict:
    if shift.low is None or shift.high is None:
        return ChangeVerdict.UNJUDGED
    if ratio > 1 + limit and shift.low / drift > 1:
        return ChangeVerdict.WORSE
    if ratio < 1 / (1 + limit) and shift.high / drift < 1:
        return ChangeVerdict.BETTER
    return ChangeVerdict.SAME


def _newly_failing(
    common: Iterable[Cell], ours: Mapping[Cell, CellSummary], theirs: Mapping[Cell, CellSummary]
) -> Iterable[tuple[Cell, str]]:
    for cell in common:
        if ours[cell].figures and not theirs[cell].figures:
            failures = theirs[cell].failures
            yield cell, f"{failures[0].kind}: {failures[0].reason}" if failures else "no sample was counted"


def _library_changes(before: Run, after: Run) -> dict[str, tuple[str | None, str | None]]:
    old, new = before.info.libraries, after.info.libraries
    return {name: (old.get(name), new.get(name)) for name in sorted({*old, *new}) if old.get(name) != new.get(name)}


_SHARED_LIBRARIES = ("python", "numpy", "pandas", "pyarrow")
"""Whatever the format, these take part in every cell."""


def _of_cell(libraries: Mapping[str, tuple[str | None, str | None]], main: str) -> tuple[str, ...]:
    """The changed libraries that take part in a cell: its engine's and the shared ones."""
    names = {main.split()[0] if main else "", *_SHARED_LIBRARIES}
    changed = {name: versions for name, versions in libraries.items() if name in names}
    return tuple(f"{name} {old or 'absent'} -> {new or 'absent'}" for name, (old, new) in changed.items())
