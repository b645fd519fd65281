"""Compare two runs: find the times, sizes and memory peaks that changed by more than noise.

A cell is one operation on one data set with one variant under one set of conditions. A figure of a cell changed if two
conditions hold: the interval of its ratio (second run to first run) excludes 1, and the ratio exceeds the noise between
the two runs. A shift of times that several libraries share is drift of the machine. With few libraries, the shift of
raw I/O is the drift. Drift is estimated, reported and removed. The noise of times is the spread of the remaining shifts
of all cells. The noise of memory peaks is the spread between
rounds.

reports.text.comparison prints the result.
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
from reports.analysis.sequential import FALSE_CHANGES, Decision, can_show_change, decision

LEAST_CHANGE = 0.05
"""Smaller relative changes are not reported. The time of the same code can differ by this share if its memory address
differs."""
LEAST_NOISE_DEVIATIONS = 3.0
"""A change must exceed the noise of its measurement. The noise is at least this many standard deviations of the ratio
between the two runs (the shift)."""
FEWEST_LIBRARIES = 3
"""Fewest libraries, including raw I/O, whose times show the drift of the machine. With two, a change of one of them
could not be distinguished from drift."""
_RAW_IO = "raw I/O"
_TO_DEVIATION = 1.4826
"""Factor from the median of absolute deviations to the standard deviation of normal noise."""
SURELY_MORE = 1.5
"""The intervals of the measurements predict how far the ratios between two runs (the shifts) spread. If the observed
spread is at least this multiple of the predicted spread, the two runs differ as a whole: for a dozen measurements,
chance does not explain such a spread."""
INTERVALS_COUNT = 2
"""Below the limit SURELY_MORE, the noise combines the predicted spread (from the intervals) with the observed spread,
and this is the weight of the predicted spread. The observed spread has the weight 1. A dozen measurements determine the
observed spread only with an error of about a third. In 100 to 300 comparisons of runs of equal code, with 7 to 50
rounds each, 2 to 3 % reported a change if both were combined, and 5 to 11 % if only the observed spread was used."""
_WITHIN = statistics.NormalDist().inv_cdf((1 + LEVEL) / 2)
FEWEST_FOR_NOISE = 5
"""With fewer measurements, the spread of their shifts is meaningless. A change must then exceed the widest interval."""
MEMORY_STEP_BYTES = 2 * 1024 * 1024
"""Smaller memory changes are not reported. The value is the size of a huge page. Allocators take memory in steps, and
all samples of one run may be a step higher than the samples of the next run (observed: 1 MiB more in each sample with
equal code)."""
FIGURES = (Role.TIME.figure, Role.MEMORY.figure, Role.SIZE.figure)
"""The figures that are compared, for every operation that has them."""


class CompareError(Exception):
    """Raised if two runs cannot be compared, or if they have no figure in common."""


class ChangeVerdict(Enum):
    """How one figure changed from the first run to the second."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "no change"
    UNJUDGED = "too few rounds"


@dataclass(frozen=True)
class Change:
    """One figure (time, size or memory peak) in both runs. `shift` is the measured ratio of the runs with its interval.
    `ratio` is the same ratio without the drift, that is the shift that all times share."""

    cell: Cell
    figure: str
    before: float
    after: float
    shift: Shift
    ratio: float
    verdict: ChangeVerdict
    libraries: tuple[str, ...]
    """'pandas 3.1.0 -> 3.1.1' for each library that the measurement uses and whose version differs."""


@dataclass(frozen=True)
class Drift:
    """The shift that all times of an operation share, as a ratio."""

    operation: str
    ratio: float
    """The median over libraries. With fewer than FEWEST_LIBRARIES, the shift of raw I/O, or 1 if raw I/O was not
    measured or did not clearly change."""
    yardstick: float | None
    """The shift of raw I/O, or None if raw I/O was not measured."""
    libraries: int
    """Number of libraries that were measured, including raw I/O."""
    noises: Mapping[Cell, float]
    """The noise of each measurement. A ratio above 1 + noise counts as a change."""
    cells: int

    @property
    def noise(self) -> float:
        """The median noise of all measurements."""
        return statistics.median(self.noises.values())

    @property
    def is_shared(self) -> bool:
        """Whether the ratio is a shift that several libraries share."""
        return self.libraries >= FEWEST_LIBRARIES


@dataclass(frozen=True)
class RunComparison:
    """The result of comparing two runs."""

    before: Run
    after: Run
    changes: tuple[Change, ...]
    drifts: tuple[Drift, ...]
    newly_failing: tuple[tuple[Cell, str], ...]
    """Measurements (operation, data set and variant) that have figures only in the first run, each with the reason why
    the second run has none."""
    newly_working: tuple[Cell, ...]
    failing_in_both: tuple[Cell, ...]
    """Measurements (operation, data set and variant) that failed in the first run and in the second."""
    only_before: tuple[Cell, ...]
    only_after: tuple[Cell, ...]
    libraries: tuple[str, ...]
    """Libraries whose versions differ."""
    differences: tuple[str, ...]
    """Reasons against comparing the runs. There are none unless the user asked to compare the runs anyway."""

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
        """Whether a figure became worse, or a measurement that had figures in the first run has none in the second."""
        return bool(self.regressions or self.newly_failing)


def compare(
    before: Run, after: Run, *, least_change: float = LEAST_CHANGE, anyway: bool = False, most_rounds: int | None = None
) -> RunComparison:
    """Compare all measurements of two runs and return the changes. `least_change` is a share: 0.1 reports changes of
    more than 10 %.

    Set `most_rounds`, the largest number of rounds, if the two versions are measured in turn and compared several times
    during the measurement. The usual rule is valid only for a single comparison, so reports.analysis.sequential then
    judges the times, and no drift is removed.

    Raises CompareError if the runs come from different machines or data (unless `anyway`), or have no figure in common.
    """
    differences = check_comparable(before, after, anyway=anyway)
    ours, theirs = (_by_cell(run) for run in (before, after))
    common = [cell for cell in ours if cell in theirs]
    measured = [cell for cell in common if ours[cell].figures and theirs[cell].figures]
    if not any(not cell.variant.is_raw_io for cell in measured):
        raise CompareError(
            f"{before.folder.name} and {after.folder.name} have no measurement in common.\n"
            "  Measure the same suite, data sets, rows and conditions in both."
        )
    drifts = tuple(_drifts(measured, ours, theirs))
    if most_rounds is not None:
        # The machine affects both runs in the same way if they are measured in turn. A shift that all cells share is
        # therefore a change, not drift.
        drifts = tuple(replace(drift, ratio=1.0) for drift in drifts)
    least_bytes = max(smallest_shown(before.info), smallest_shown(after.info))
    libraries = library_changes(before, after)
    sequential = None if most_rounds is None else (most_rounds, _times(measured, ours, theirs))
    changes = []
    for cell in measured:
        if cell.variant.is_raw_io:
            continue
        for figure in FIGURES:
            change = _change(cell, figure, ours[cell], theirs[cell], drifts, least_change, least_bytes, sequential)
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
        tuple(f"{name} {old} -> {new}" for name, (old, new) in libraries.items()),
        differences,
    )


def check_comparable(before: Run, after: Run, *, anyway: bool) -> tuple[str, ...]:
    """Return reasons against comparing the runs. Raises CompareError with the first reason, unless `anyway` is set."""
    differences = tuple(_differences(before, after))
    if differences and not anyway:
        raise CompareError(f"{differences[0]}, so the runs are not comparable.\n  To compare anyway: `anyway=True`.")
    return differences


def _failed(summary: CellSummary) -> bool:
    return not summary.figures and any(failure.is_failure for failure in summary.failures)


def _by_cell(run: Run) -> dict[Cell, CellSummary]:
    """Return the summary of each cell of a run. A cell is one operation, data set, variant and set of conditions. The
    machine is not part of these cells, because `_differences` compares the machines."""
    return {replace(cell, machine=""): summary for cell, summary in summarise(run.samples).items()}


def _differences(before: Run, after: Run) -> Iterable[str]:
    machines = [sorted({sample.machine for sample in run.samples}) for run in (before, after)]
    if machines[0] != machines[1]:
        yield f"the runs are of different machines: {', '.join(machines[0])} and {', '.join(machines[1])}"
    for name in ("cpu", "cores", "memory_bytes", "virtualisation"):
        one, other = (getattr(run.info.machine, name) for run in (before, after))
        # If only one of the runs recorded a fact, it does not count as a difference.
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
    """Yield the `Drift` of each operation: the shift that its times share, and the noise around this shift.

    The drift is a median over libraries, not over cells, because otherwise a slower version of a library with most of
    the cells would count as drift. With fewer than FEWEST_LIBRARIES, the shift of raw I/O is the drift.

    The noise is estimated from the times of all operations, because the six times of one operation are too few. In 420
    comparisons of equal runs with two operations, 7 % reported a change if the noise was estimated for each operation
    alone, and 4 % if the noise was estimated from both operations together.
    """
    by_operation: dict[str, dict[Cell, Shift]] = {}
    for cell in measured:
        shift = shift_ratio(_values(theirs[cell], "wall_ns", 0), _values(ours[cell], "wall_ns", 0))
        if shift is not None:
            by_operation.setdefault(cell.operation, {})[cell] = shift
    all_shifts = {cell: shift for shifts in by_operation.values() for cell, shift in shifts.items()}
    library = {cell: _RAW_IO if cell.variant.is_raw_io else theirs[cell].library.split(" ")[0] for cell in all_shifts}
    middles: dict[str, float] = {}
    found: dict[str, int] = {}
    distances: dict[Cell, float] = {}
    uncertain: dict[str, float] = {}
    estimated = 0
    for operation, shifts in by_operation.items():
        of_library: dict[str, list[float]] = {}
        for cell, shift in shifts.items():
            of_library.setdefault(library[cell], []).append(math.log(shift.ratio))
        centres = {name: statistics.median(values) for name, values in of_library.items()}
        found[operation] = len(centres)
        if len(centres) >= FEWEST_LIBRARIES:
            middles[operation] = statistics.median(centres.values())
            centres = dict.fromkeys(centres, middles[operation])
            estimated += 1
        else:
            of_raw_io = [shift for cell, shift in shifts.items() if cell.variant.is_raw_io]
            middles[operation] = centres[_RAW_IO] if _excludes_1(of_raw_io) else 0.0
            uncertain[operation] = max(map(_log_width, of_raw_io), default=0.0) / 2
            estimated += len(centres)
        distances |= {cell: abs(math.log(shift.ratio) - centres[library[cell]]) for cell, shift in shifts.items()}
    noises = _noises(distances, estimated, all_shifts)
    for operation, shifts in by_operation.items():
        yardsticks = [math.log(shift.ratio) for cell, shift in shifts.items() if cell.variant.is_raw_io]
        yardstick = statistics.median(yardsticks) if yardsticks else None
        of_yardsticks = max((abs(value - (yardstick or 0.0)) for value in yardsticks), default=0.0)
        # With few libraries, the drift is as uncertain as raw I/O.
        of_yardsticks = max(of_yardsticks, uncertain.get(operation, 0.0))
        yield Drift(
            operation,
            math.exp(middles[operation]),
            None if yardstick is None else math.exp(yardstick),
            found[operation],
            {cell: math.expm1(max(noises[cell], of_yardsticks)) for cell in shifts},
            len(shifts),
        )


def _noises(distances: Mapping[Cell, float], estimated: int, shifts: Mapping[Cell, Shift]) -> dict[Cell, float]:
    """Return the noise of each measurement on a logarithmic scale. The noise is a multiple of the standard deviation of
    the measurement's shift (the ratio of the runs), chosen so that chance seldom exceeds it.

    The standard deviation is predicted from the interval of the measurement, or from the median interval if that is
    wider. The prediction is then corrected by a factor between 1 and the ratio of observed to predicted distances. A
    distance is how far a shift is from the drift (with few libraries, from the median of its own library), and
    `estimated` is the number of these centres. If the observed distances clearly exceed the predicted distances, the
    observed standard deviation is used instead, unless the predicted standard deviation is larger. With few
    measurements, the noise is the width of the widest interval.
    """
    count = len(distances)
    widths = {cell: _log_width(shift) for cell, shift in shifts.items()}
    if count - estimated < FEWEST_FOR_NOISE:
        return dict.fromkeys(widths, max(widths.values(), default=0.0))
    usual = statistics.median(widths.values())
    said = {cell: max(width, usual) / (2 * _WITHIN) for cell, width in widths.items()}
    # The drifts are estimated from the same shifts. Without this correction, the spread of a few shifts would be
    # underestimated.
    corrected = _TO_DEVIATION * math.sqrt(count / (count - estimated))
    spread = corrected * statistics.median(distances.values())
    deviations = max(statistics.NormalDist().inv_cdf(1 - FALSE_CHANGES / 2 / count), LEAST_NOISE_DEVIATIONS)
    if spread >= SURELY_MORE * usual / (2 * _WITHIN):
        return {cell: deviations * max(spread, deviation) for cell, deviation in said.items()}
    times_said = corrected * statistics.median(distance / said[cell] for cell, distance in distances.items())
    believed = math.sqrt((times_said**2 + INTERVALS_COUNT) / (1 + INTERVALS_COUNT))
    return {cell: deviations * believed * deviation for cell, deviation in said.items()}


def _excludes_1(shifts: Collection[Shift]) -> bool:
    """Return whether the intervals of all shifts exclude 1, on the same side. Return False without shifts."""
    ends = [(shift.low, shift.high) for shift in shifts]
    return bool(ends) and (
        all(low is not None and low > 1 for low, _ in ends) or all(high is not None and high < 1 for _, high in ends)
    )


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
    sequential: tuple[int, int] | None,
) -> Change | None:
    """Return the change of a figure. `sequential` is the largest number of rounds and the number of times that are
    compared, if the versions are measured in turn."""
    values = _values(before, figure, least_bytes), _values(after, figure, least_bytes)
    shift = shift_ratio(values[1], values[0])
    if shift is None:
        return None
    if len({*values[0]}) == len({*values[1]}) == 1 and figure == "size_bytes":
        # Five rounds are needed for an interval, but not for a size that is the same in every round.
        shift = Shift(shift.ratio, shift.ratio, shift.ratio)
    drift = next((found for found in drifts if found.operation == cell.operation), None)
    taken_out = drift.ratio if drift and figure == "wall_ns" else 1.0
    noise = 0.0
    if figure == "wall_ns" and drift:
        noise = drift.noises[cell]
    elif figure == "peak_private_bytes":
        # The median peak may be 0 if a run did not record the error of its memory probe.
        noise = max(*map(_spread, values), MEMORY_STEP_BYTES) / max(statistics.median(values[0]), 1)
    ratio = shift.ratio / taken_out
    if sequential is not None and figure == "wall_ns":
        verdict = _sequential_verdict(values, shift, sequential, least_change)
    else:
        verdict = _verdict(shift, ratio, taken_out, max(noise, least_change))
    return Change(cell, figure, statistics.median(values[0]), statistics.median(values[1]), shift, ratio, verdict, ())


def _spread(values: Sequence[float]) -> float:
    """Return the range of the values. From ten values on, a tenth at each end is left out, because the range of all
    values would grow with their number."""
    ordered = sorted(values)
    outside = len(ordered) // 10
    return ordered[-1 - outside] - ordered[outside]


def _verdict(shift: Shift, ratio: float, drift: float, limit: float) -> ChangeVerdict:
    if shift.low is None or shift.high is None:
        return ChangeVerdict.UNJUDGED
    if ratio > 1 + limit and shift.low / drift > 1:
        return ChangeVerdict.WORSE
    if ratio < 1 / (1 + limit) and shift.high / drift < 1:
        return ChangeVerdict.BETTER
    return ChangeVerdict.SAME


def _times(measured: Iterable[Cell], ours: Mapping[Cell, CellSummary], theirs: Mapping[Cell, CellSummary]) -> int:
    """Return the number of times that are compared."""
    return sum(bool(ours[cell].rounds and theirs[cell].rounds) for cell in measured if not cell.variant.is_raw_io)


def _sequential_verdict(
    values: tuple[Sequence[float], Sequence[float]], shift: Shift, sequential: tuple[int, int], least_change: float
) -> ChangeVerdict:
    before, after = values
    if not can_show_change(len(after), len(before), *sequential):
        return ChangeVerdict.UNJUDGED
    changed = decision(after, before, *sequential) is Decision.CHANGED
    if changed and shift.ratio > 1 + least_change:
        return ChangeVerdict.WORSE
    if changed and shift.ratio < 1 / (1 + least_change):
        return ChangeVerdict.BETTER
    return ChangeVerdict.SAME


def decided(
    before: Run, after: Run, most_rounds: int, already: Collection[tuple[str, str]] = ()
) -> set[tuple[str, str]] | None:
    """Return each (variant, operation) that needs no further sample while two versions are measured in turn. Return
    None if all are decided, so that no operation needs a further sample.

    A pair is decided if it is known of each of its times whether the time changed, or if the operation fails or is
    missing in one run. A pair is not decided if one run has no counted sample of the pair because the machine was busy.
    Each pair in `already` stays decided.
    """
    ours, theirs = (_by_cell(run) for run in (before, after))
    common = [cell for cell in ours if cell in theirs]
    measured = [cell for cell in common if ours[cell].rounds and theirs[cell].rounds]
    values = {cell: (_values(theirs[cell], "wall_ns", 0), _values(ours[cell], "wall_ns", 0)) for cell in measured}
    times = _times(measured, ours, theirs)
    undecided = [cell for cell in measured if decision(*values[cell], most_rounds, times) is Decision.OPEN]
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


def library_changes(before: Run, after: Run) -> dict[str, tuple[str, str]]:
    """Return both versions of each library that both runs used and whose version differs."""
    old, new = before.info.libraries, after.info.libraries
    return {name: (old[name], new[name]) for name in sorted(old.keys() & new.keys()) if old[name] != new[name]}


_SHARED_LIBRARIES = ("python", "numpy", "pandas", "pyarrow")
"""Libraries that every measurement uses, whatever the format."""


def libraries_of_cell(libraries: Mapping[str, tuple[str, str]], main: str) -> tuple[str, ...]:
    """Return the changed libraries that a measurement uses. These are the library `main` of the variant's engine, and
    the libraries that all measurements use."""
    names = {main.split()[0] if main else "", *_SHARED_LIBRARIES}
    changed = {name: versions for name, versions in libraries.items() if name in names}
    return tuple(f"{name} {old} -> {new}" for name, (old, new) in changed.items())
