"""Measure how reliable `compare` is: `make selfbench-compare` prints its false alarms and the slowdowns it finds.

Real runs of a small suite are compared in all pairs. Nothing changed between them, so every reported regression is a
false alarm. Then the times of one cell in the later run of each pair are increased, which plants a true regression. The
smallest planted slowdown that is found shows what is detectable despite the machine's noise.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from bench_runner.errors import BenchError
from bench_runner.operations import SAVE, VERIFYING
from bench_runner.plan.planning import make_plan
from bench_runner.request import Request
from bench_runner.results.records import Cell, Run, Sample, changed, read_run
from bench_runner.results.statistics import summarise
from bench_runner.run.measuring import measure
from bench_runner.run.options import Options
from bench_runner.run.side_by_side import LOOK_ROUNDS, TURN_S, rounds_there, turns
from bench_runner.suites import SUITES
from format_bench.progress import watching
from reports.analysis.compare import Change, ChangeVerdict, RunComparison, compare, decided
from reports.analysis.sequential import FALSE_CHANGES
from tests.selfbench.costs import Check, keep_runs, print_checks, steadiness

RUNS = 7
"""Seven runs make 21 pairs. In the same time, few runs of many rounds reveal smaller changes than many short runs."""
ROWS = 20_000
ROUNDS = 240
"""The maximum of `side-by-side`."""
MOST_MINUTES = 10.0
"""Target for the duration of a pair."""
FORMATS = ("csv", "hdf5-table", "json")
"""Few enough to finish within an hour and a half, with cells of 50 to 200 ms at this number of rows."""
START_S = 4.5
"""Seconds that a run takes before its first round and after its last."""
TURN_CHANGE_S = 1.7
"""Seconds that a turn takes beside its rounds: six turns of 10 to 19 rounds took 10 s more than their rounds."""
TURN_ROUNDS = 8
"""About the length of a turn of `side-by-side`."""
LEAST_NS, MOST_NS = 50 * 10**6, 200 * 10**6
"""Median time of the cells in which slowdowns are planted. All cells are compared."""
PLANTED = 1.10
LARGER = (1.25, 1.5, 2.0)
"""Further planted slowdowns, without a target."""
LEAST_CHANGE = 0.05


def runs(folder: Path, rows: int, rounds: int, number: int) -> list[Run]:
    """Return real runs of the same suite, measured a few rounds at a time in turn, like those of `side-by-side`.

    Runs and rounds that are already in the folder are not measured again.
    """
    chosen = tuple(f"^{name}\\[" for name in FORMATS)
    request = Request(datasets=("^eq$",), formats=chosen, tracks=("plain",), rows=rows)
    plan = make_plan([SUITES["tabular"]], request)
    places = [folder / f"{rows}-rows-{rounds}-rounds-in-turn-{index:02d}" for index in range(number)]
    for place, upto in turns(places, rounds, lambda: TURN_ROUNDS):
        if rounds_there(place, rounds) >= upto:
            continue
        options = Options(rounds=upto, fidelity=False, resume=(place / "run.json").exists())
        with watching() as watcher:
            measure(plan, request, options, place, ["selfbench"], watcher)
    return [read_run(place) for place in places]


def planted(run: Run, cell: Cell, factor: float) -> Run:
    """Return the run with all times of one cell multiplied by the factor."""
    samples = (_slower(sample, factor) if sample.cell == cell else sample for sample in run.samples)
    return replace(run, samples=tuple(samples))


def _slower(sample: Sample, factor: float) -> Sample:
    if "wall_ns" not in sample.figures:
        return sample
    return changed(sample, figures={**sample.figures, "wall_ns": int(sample.figures["wall_ns"] * factor)})


def cells(run: Run) -> list[Cell]:
    """Return the cells with a median of 50 to 200 ms, in a fixed order."""
    found = [
        cell
        for cell, summary in summarise(run.samples).items()
        if not cell.variant.is_raw_io
        and "wall_ns" in summary.figures
        and LEAST_NS <= summary.figures["wall_ns"].median <= MOST_NS
    ]
    return sorted(found, key=repr)


def slower(found: RunComparison) -> set[tuple[str, str]]:
    """Return (operation, variant) of every time that is reported as worse."""
    return {
        (change.cell.operation, change.cell.variant)
        for change in found.changes
        if change.verdict is ChangeVerdict.WORSE and change.figure == "wall_ns"
    }


def replayed(before: Run, after: Run, most_rounds: int) -> tuple[Run, Run]:
    """Return the part of both runs that `side-by-side` would have measured, with a look every LOOK_ROUNDS rounds."""
    ends: dict[tuple[str, str], int] = {}
    for rounds in range(LOOK_ROUNDS, most_rounds, LOOK_ROUNDS):
        found = decided(_until(before, ends, rounds), _until(after, ends, rounds), most_rounds, ends)
        if found is None:
            return _until(before, ends, rounds), _until(after, ends, rounds)
        ends = {cell: min(ends.get(cell, rounds), rounds) for cell in found}
    return _until(before, ends, most_rounds), _until(after, ends, most_rounds)


def _until(run: Run, ends: Mapping[tuple[str, str], int], rounds: int) -> Run:
    """Return the samples up to this round; for what is in `ends`, up to its own last round. A save and the read that
    verifies it are measured as long as one of them needs samples."""

    def end(sample: Sample) -> int:
        operations = (SAVE, VERIFYING) if sample.operation in (SAVE, VERIFYING) else (sample.operation,)
        return max(ends.get((sample.variant, operation), rounds) for operation in operations)

    return replace(run, samples=tuple(sample for sample in run.samples if sample.round <= end(sample)))


def minutes(parts: Iterable[tuple[Run, Run]]) -> float:
    """Return how long these parts of whole runs took, in minutes; `parts` are (whole run, part).

    A chain that has a sample in the part counts in full, because its other operations run as well. To its samples
    comes what the whole run spent beside its samples, by chain, the start of the run, and the time between turns.
    """
    total_ns = 0.0
    for whole, part in parts:
        taken_ns: Counter[tuple[str, int]] = Counter()
        for sample in whole.samples:
            taken_ns[sample.variant, sample.round] += sample.taken_ns
        spent_ns = sum(spent for stage, spent in whole.info.stages_ns.items() if stage.startswith("round "))
        beside_ns = max(spent_ns - taken_ns.total(), 0) / len(taken_ns)
        chains = {(sample.variant, sample.round) for sample in part.samples}
        rounds_ns = sum(taken_ns[chain] + beside_ns for chain in chains)
        total_ns += rounds_ns * (1 + TURN_CHANGE_S / TURN_S) + START_S * 1e9
    return total_ns / 60e9


def judged(measured: Sequence[Run], most_rounds: int) -> Iterator[Check]:
    """Yield the false and true regressions over all pairs, and how long a pair takes."""
    false_alarms: list[str] = []
    seen: Counter[float] = Counter()
    others, noises, took = 0, [], []
    pairs = list(itertools.combinations(measured, 2))
    for index, (before, after) in enumerate(pairs):
        pair = replayed(before, after, most_rounds)
        took.append(minutes(zip((before, after), pair, strict=True)))
        unchanged = compare(*pair, least_change=LEAST_CHANGE, most_rounds=most_rounds)
        if unchanged.failed:
            false_alarms.append(
                f"  {index}: {', '.join([*map(_described, unchanged.regressions), *_failing(unchanged)])}"
            )
        noises += [drift.noise for drift in unchanged.drifts]
        candidates = cells(after)
        cell = candidates[index % len(candidates)]
        for factor in (PLANTED, *LARGER):
            pair = replayed(before, planted(after, cell, factor), most_rounds)
            if factor == PLANTED:
                took.append(minutes(zip((before, after), pair, strict=True)))
            named = slower(compare(*pair, least_change=LEAST_CHANGE, most_rounds=most_rounds))
            found = (cell.operation, cell.variant) in named
            seen[factor] += found
            others += factor == PLANTED and len(named) > found
    count = len(pairs)
    yield Check("noise between two runs, median", f"{statistics.median(noises):.1%}", "-", None)
    count_false = len(false_alarms)
    most = max(1, round(FALSE_CHANGES * count))
    yield Check("pairs with a false alarm", f"{count_false} of {count}", f"at most {most}", count_false <= most)
    yield from (Check(line, "reported", "-", None) for line in false_alarms)
    least = round(0.9 * count)
    hits = seen[PLANTED]
    yield Check("pairs in which the planted 10 % is found", f"{hits} of {count}", f"at least {least}", hits >= least)
    for factor in LARGER:
        yield Check(f"  a planted {factor - 1:.0%}", f"{seen[factor]} of {count}", "-", None)
    yield Check("pairs in which another change is reported as well", f"{others} of {count}", "0", others == 0)
    middle, late = statistics.mean(took), statistics.quantiles(took, n=10)[-1]
    within = f"at most {MOST_MINUTES:g}"
    yield Check("minutes of a pair, mean", f"{middle:.1f}", within, middle <= MOST_MINUTES)
    yield Check("minutes of a pair, 90th percentile", f"{late:.1f}", within, late <= MOST_MINUTES)


def _described(change: Change) -> str:
    return f"{change.figure} of {change.cell.operation} {change.cell.variant} {change.ratio:.2f} times"


def _failing(found: RunComparison) -> list[str]:
    return [f"{cell.operation} {cell.variant}: {why}" for cell, why in found.newly_failing]


@click.command()
@click.option("--rows", default=ROWS, show_default=True, help="Rows of the measured table.")
@click.option(
    "--rounds", default=ROUNDS, show_default=True, help="Rounds of each run; more rounds reveal smaller changes."
)
@click.option("--number", default=RUNS, show_default=True, help="Number of runs, which are compared in all pairs.")
@keep_runs
def main(rows: int, rounds: int, number: int, kept: Path | None) -> None:
    """Print how often compare reports a false regression, and how often it finds a planted one."""
    print_checks("the machine itself", steadiness())
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="selfbench-") as folder:
        try:
            measured = runs(kept or Path(folder), rows, rounds, number)
        except BenchError as error:
            raise click.ClickException(str(error)) from None
        print_checks("compare", judged(measured, rounds))


if __name__ == "__main__":
    main()
