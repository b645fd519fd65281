"""Compare two runs: which times, sizes and memory peaks changed by more than noise.

A change counts if the interval of its ratio excludes 1 and the ratio exceeds the noise between the two runs. The noise
of times is the spread of the shifts of all cells, and the noise of memory peaks is the spread of their rounds. A shift
that all cells share is drift of the machine, which is estimated, reported and removed. reports.text.comparison shows
the result.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from bench_runner.results.records import Cell, Run
from bench_runner.results.statistics import LEVEL, CellSummary, Shift, shift_ratio, smallest_shown, summarise
from reports.analysis.columns import Role
from reports.analysis.sequential import Decision, decision

LEAST_CHANGE = 0.05
"""Smaller changes are not reported, because the time of the same code can differ as much at another memory address."""
LEAST_NOISE_DEVIATIONS = 3.0
"""The noise of a cell between two runs is at least this many standard deviations of its shift."""
FALSE_CHANGES = 0.05
"""Allowed probability that two runs of the same code show any change. It follows that with more cells, a change must
exceed more standard deviations."""
_TO_DEVIATION = 1.4826
"""Factor from the median of absolute deviations to the standard deviation of normal noise."""
SURELY_MORE = 1.5
"""If a dozen cells spread this many times as much as their intervals predict, this is more than chance, and the two
runs differ as a whole."""
INTERVALS_COUNT = 2
"""If the spread is below SURELY_MORE, weight of the intervals relative to the observed spread. A dozen cells determine
the spread only to about a third. Of 100 to 300 pairs of runs of equal code, with 7 to 50 rounds each, 2 to 3 % showed
a change if intervals and spread were combined, and 5 to 11 % with the spread alone."""
_WITHIN = statistics.NormalDist().inv_cdf((1 + LEVEL) / 2)
FEWEST_FOR_NOISE = 5
"""With fewer cells, their spread is meaningless, and a change must exceed the widest interval instead."""
MEMORY_STEP_BYTES = 2 * 1024 * 1024
"""Memory changes below this size, a huge page, are not reported. Allocators take memory in steps, and all samples of
one run may be a step higher than those of the next run (observed: 1 MiB more in each sample with equal code)."""
FIGURES = (Role.TIME.figure, Role.MEMORY.figure, Role.SIZE.figure)
"""Figures that are compared, for every operation that has them."""


class CompareError(Exception):
    """The two runs cannot be compared, or there is nothing to compare."""


class ChangeVerdict(Enum):
    """How a cell's figure changed from the first run to the second."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "no change"
    UNJUDGED = "too few rounds"


@dataclass(frozen=True)
class Change:
    """One figure of one cell in both runs. `shift` is as measured, `ratio` has the drift removed."""

    cell: Cell
    figure: str
    before: float
    after: float
    shift: Shift
    ratio: float
    verdict: ChangeVerdict
    libraries: tuple[str, ...]
    """'pandas 3.1.0 -> 3.1.1' for each library of the cell whose version differs."""


@dataclass(frozen=True)
class Drift:
    """The common shift of all times of an operation, as a ratio. `yardstick` is raw I/O's shift, None without it."""

    operation: str
    ratio: float
    yardstick: float | None
    noises: Mapping[Cell, float]
    """The noise of each cell. A ratio above 1 + noise is a change."""
    cells: int

    @property
    def noise(self) -> float:
        """The median noise of the cells."""
        return statistics.median(self.noises.values())


@dataclass(frozen=True)
class RunComparison:
    """The result of comparing two runs."""

    before: Run
    after: Run
    changes: tuple[Change, ...]
    drifts: tuple[Drift, ...]
    newly_failing: tuple[tuple[Cell, str], ...]
    """Cells with figures only in the first run, and why the second has none."""
    newly_working: tuple[Cell, ...]
    failing_in_both: tuple[Cell, ...]
    """Cells that failed in both runs, so that nothing is known about them."""
    only_before: tuple[Cell, ...]
    only_after: tuple[Cell, ...]
    libraries: tuple[str, ...]
    """Libraries whose versions differ."""
    differences: tuple[str, ...]
    """Why the runs should not be compared; not empty only if the user compares them anyway."""

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
        """Whether a figure is worse, or a cell has no figures any more."""
        return bool(self.regressions or self.newly_failing)


def compare(
    before: Run,
    after: Run,
    *,
    least_change: float = LEAST_CHANGE,
    anyway: bool = False,
    most_rounds: int | None = None,
) -> RunComparison:
    """Compare two runs cell by cell. `least_change` is a share: 0.1 reports changes of more than 10 %.

    Set `most_rounds`, the limit of rounds, if the runs were measured in turn and compared several times meanwhile.
    reports.analysis.sequential then judges the times, because the usual rule is valid only for a single comparison.

    Raises CompareError if the runs come from different machines or data (unless `anyway`), or have no figure in common.
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
    if most_rounds is not None:
        # The machine affects runs in turn alike, so a shift that all cells share is a change too.
        drifts = tuple(replace(drift, ratio=1.0) for drift in drifts)
    least_bytes = max(smallest_shown(before.info), smallest_shown(after.info))
    libraries = library_changes(before, after)
    changes = []
    for cell in measured:
        if cell.variant.is_raw_io:
            continue
        for figure in FIGURES:
            change = _change(cell, figure, ours[cell], theirs[cell], drifts, least_change, least_bytes, most_rounds)
            if change is not None:
                changes.append(replace(change, libraries=libraries_of_cell(libraries, theirs[cell].library)))
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
    """Return why the runs should not be compared. Raises CompareError for the first reason unless `anyway`."""
    differences = tuple(_differences(before, after))
    if differences and not anyway:
        raise CompareError(f"{differences[0]}, so the runs are not comparable.\n  `anyway=True` compares them anyway.")
    return differences


def _failed(summary: CellSummary) -> bool:
    return not summary.figures and any(failure.is_failure for failure in summary.failures)


def _by_cell(run: Run) -> dict[Cell, CellSummary]:
    """Return the cells of a run without their machine, which `_differences` checks."""
    return {replace(cell, machine=""): summary for cell, summary in summarise(run.samples).items()}


def _differences(before: Run, after: Run) -> Iterable[str]:
    machines = [sorted({sample.machine for sample in run.samples}) for run in (before, after)]
    if machines[0] != machines[1]:
        yield f"the runs are of different machines: {', '.join(machines[0])} and {', '.join(machines[1])}"
    for name in ("cpu", "cores", "memory_bytes", "virtualisation"):
        one, other = (getattr(run.info.machine, name) for run in (before, after))
        # A fact that a run did not record is not a difference.
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
    """Yield for each operation the median shift of the times of its cells, and the noise around it.

    The noise is estimated from the cells of all operations, because the six cells of one operation are too few. Of 420
    pairs of equal runs, 7 % showed a change by the spread of one operation, and 4 % by the spread of both operations.
    """
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
    """Return the noise of each cell as a logarithm: a multiple of the standard deviation of its shift.

    The multiple is chosen so that chance seldom exceeds it. The deviation follows from the cell's interval, or from the
    median interval if that is wider. It is corrected by a factor: the observed distances from the drift, relative to
    the distances that the intervals predict. If the distances spread clearly more than the intervals predict, their own
    standard deviation is used instead.
    """
    count = len(distances)
    widths = {cell: _log_width(shift) for cell, shift in shifts.items()}
    if count - operations < FEWEST_FOR_NOISE:
        return dict.fromkeys(widths, max(widths.values(), default=0.0))
    usual = statistics.median(widths.values())
    said = {cell: max(width, usual) / (2 * _WITHIN) for cell, width in widths.items()}
    # The drifts are estimated from the same cells, so without this correction few cells would seem to vary too little.
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
    most_rounds: int | None,
) -> Change | None:
    values = _values(before, figure, least_bytes), _values(after, figure, least_bytes)
    shift = shift_ratio(values[1], values[0])
    if shift is None:
        return None
    if len({*values[0]}) == len({*values[1]}) == 1 and figure == "size_bytes":
        # A size that never varies does not need five rounds.
        shift = Shift(shift.ratio, shift.ratio, shift.ratio)
    drift = next((found for found in drifts if found.operation == cell.operation), None)
    taken_out = drift.ratio if drift and figure == "wall_ns" else 1.0
    noise = 0.0
    if figure == "wall_ns" and drift:
        noise = drift.noises[cell]
    elif figure == "peak_private_bytes":
        # A run that did not record the error of its memory probe may have peaks of 0.
        noise = max(*map(_spread, values), MEMORY_STEP_BYTES) / max(statistics.median(values[0]), 1)
    ratio = shift.ratio / taken_out
    if most_rounds is not None and figure == "wall_ns":
        verdict = _sequential_verdict(values, shift, most_rounds, least_change)
    else:
        verdict = _verdict(shift, ratio, taken_out, max(noise, least_change))
    return Change(
        cell,
        figure,
        statistics.median(values[0]),
        statistics.median(values[1]),
        shift,
        ratio,
        verdict,
        (),
    )


def _spread(values: Sequence[float]) -> float:
    """Return the range of the rounds of one run."""
    return max(values) - min(values)


def _verdict(shift: Shift, ratio: float, drift: float, limit: float) -> ChangeVerdict:
    if shift.low is None or shift.high is None:
        return ChangeVerdict.UNJUDGED
    if ratio > 1 + limit and shift.low / drift > 1:
        return ChangeVerdict.WORSE
    if ratio < 1 / (1 + limit) and shift.high / drift < 1:
        return ChangeVerdict.BETTER
    return ChangeVerdict.SAME


def _sequential_verdict(
    values: tuple[Sequence[float], Sequence[float]], shift: Shift, most_rounds: int, least_change: float
) -> ChangeVerdict:
    if shift.low is None:
        return ChangeVerdict.UNJUDGED
    changed = decision(values[1], values[0], most_rounds) is Decision.CHANGED
    if changed and shift.ratio > 1 + least_change:
        return ChangeVerdict.WORSE
    if changed and shift.ratio < 1 / (1 + least_change):
        return ChangeVerdict.BETTER
    return ChangeVerdict.SAME


def decided(
    before: Run, after: Run, most_rounds: int, already: Collection[tuple[str, str]] = ()
) -> set[tuple[str, str]] | None:
    """Return each (variant, operation) that needs no further sample in two runs that are measured in turn; None if all
    need none.

    None is needed if each of its times is known to have changed or not, or fails or is missing in one run. If samples
    were merely not counted, because the machine was busy, further rounds are needed. What was decided `already` stays
    decided.
    """
    ours, theirs = (_by_cell(run) for run in (before, after))
    common = [cell for cell in ours if cell in theirs]
    measured = [cell for cell in common if ours[cell].rounds and theirs[cell].rounds]
    values = {cell: (_values(theirs[cell], "wall_ns", 0), _values(ours[cell], "wall_ns", 0)) for cell in measured}
    undecided = [cell for cell in measured if decision(*values[cell], most_rounds) is Decision.OPEN]
    undecided += [cell for cell in common if any(_is_only_uncounted(runs[cell]) for runs in (ours, theirs))]
    open_ones = {(cell.variant, cell.operation) for cell in undecided if not cell.variant.is_raw_io} - set(already)
    known: set[tuple[str, str]] = {(cell.variant, cell.operation) for cell in ours if not cell.variant.is_raw_io}
    return known - open_ones if open_ones else None


def _is_only_uncounted(summary: CellSummary) -> bool:
    return bool(summary.uncounted) and not summary.rounds and not summary.failures


def _newly_failing(
    common: Iterable[Cell], ours: Mapping[Cell, CellSummary], theirs: Mapping[Cell, CellSummary]
) -> Iterable[tuple[Cell, str]]:
    for cell in common:
        if ours[cell].figures and not theirs[cell].figures:
            failures = theirs[cell].failures
            yield cell, f"{failures[0].kind}: {failures[0].reason}" if failures else "no sample was counted"


def library_changes(before: Run, after: Run) -> dict[str, tuple[str | None, str | None]]:
    """Return each library whose version differs, with both versions, None where it is absent."""
    old, new = before.info.libraries, after.info.libraries
    return {name: (old.get(name), new.get(name)) for name in sorted({*old, *new}) if old.get(name) != new.get(name)}


_SHARED_LIBRARIES = ("python", "numpy", "pandas", "pyarrow")
"""Libraries that take part in every cell, whatever the format."""


def libraries_of_cell(libraries: Mapping[str, tuple[str | None, str | None]], main: str) -> tuple[str, ...]:
    """Return the changed libraries that take part in a cell: its engine `main`, and those shared by all cells."""
    names = {main.split()[0] if main else "", *_SHARED_LIBRARIES}
    changed = {name: versions for name, versions in libraries.items() if name in names}
    return tuple(f"{name} {old or 'absent'} -> {new or 'absent'}" for name, (old, new) in changed.items())
