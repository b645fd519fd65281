"""Measure the overhead of Format Bench and how reliable its figures are: `make selfbench`.

Machines are noisy, so these are benchmarks rather than tests: each line shows a measurement and its target, and most
comparisons are within one run. The runner is used in the same way as from the command line.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import click

from bench_runner.clock import Laps, now_ns
from bench_runner.machine import doctor
from bench_runner.operations.operation import REPETITIONS
from bench_runner.plan.planning import make_plan
from bench_runner.request import Request
from bench_runner.results.records import Cell, Run, changed
from bench_runner.results.statistics import CellSummary, Ratio, ranking, ratio_interval, summarise
from bench_runner.run.measuring import PROJECT_ROOT, measure
from bench_runner.run.options import Options
from bench_runner.suites import SUITES
from bench_runner.worker.sampling.block import call_all
from data_generator.cache import prepare
from data_generator.catalogue import resolve
from data_generator.dataset import Dataset
from data_generator.generated.profiles import PROFILES
from format_bench.progress import watching

Name = TypeVar("Name")

ROWS = 1_000_000
ROUNDS = 5
"""At least five: ties need five rounds, and without ties reversed untied pairs cannot be counted."""
SLOW = ("xml", "excel")
LONG_ENOUGH_NS = 50 * 10**6


@dataclass(frozen=True)
class Check:
    """One printed line: what was measured, the measurement, the target, and whether it is met."""

    what: str
    measured: str
    target: str
    met: bool | None
    """None if the machine was too noisy to decide."""


MARKS = {True: "met", False: "NOT MET", None: "too noisy to decide"}


def accounts(run: Run) -> Iterator[Check]:
    """Divide the wall time of the counted rounds: measured + prepare + settle + verify + harness."""
    measured = [sample for sample in run.samples if sample.round > 0 and sample.figures]
    samples = [sample for sample in measured if not sample.cell.variant.is_raw_io]
    yardsticks = [sample for sample in measured if sample.cell.variant.is_raw_io]
    wall = sum(spent for stage, spent in run.info.stages_ns.items() if stage.startswith("round "))

    def total(*names: str) -> int:
        return sum(sample.figures.get(name, 0) for sample in [*samples, *yardsticks] for name in names)

    parts = {
        "measured": total("wall_ns", "sync_ns"),
        "prepare": total("prepare_ns"),
        "settle": total("settle_ns"),
        "verify": total("verify_ns"),
    }
    parts["harness"] = wall - sum(parts.values())
    limits = {"harness": 0.05, "verify": 0.10, "prepare": 0.20}
    for name, part in parts.items():
        limit = limits.get(name)
        share = part / wall
        target = f"at most {limit:.0%}" if limit else "-"
        yield Check(f"{name}, share of {wall / 1e9:.0f} s", f"{share:.1%}", target, limit is None or share <= limit)
    overhead = statistics.median(sample.figures["harness_ns"] for sample in samples) / 1e9
    yield Check("harness overhead, median per sample", f"{overhead:.3f} s", "at most 0.1 s", overhead <= 0.1)


def making_data() -> Iterator[Check]:
    """Time generating the synthetic and realistic tables and the images, and generating and caching the long table."""
    for names, limit in ((("eq", "int", "float", "bool", "str"), 0.3), (PROFILES, 4.0)):
        for name in names:
            dataset = resolve(name, {}, rows=ROWS)
            seconds = min(_seconds(partial(_make, dataset)) for _ in range(3))
            yield Check(f"make {name}, {ROWS:,} rows", f"{seconds:.2f} s", f"at most {limit} s", seconds <= limit)
    for name, limit in (("cifar-like", 3), ("imagenet-like", 5)):
        seconds = _seconds(partial(_make, resolve(name, {})))
        yield Check(f"make {name}", f"{seconds:.1f} s", f"at most {limit} s", seconds <= limit)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        dataset = resolve("webface", {})
        seconds = _seconds(lambda: prepare(dataset, Path(folder)))
    yield Check(f"make webface, {dataset.rows:,} rows", f"{seconds:.0f} s", "at most 60 s", seconds <= 60)


def _make(dataset: Dataset) -> None:
    for _ in dataset.batches():
        pass


def starting() -> Iterator[Check]:
    """Time commands that only print text."""
    for words, limit in ((("--help",), 0.3), (("list", "formats"), 1.0)):
        command = [sys.executable, str(PROJECT_ROOT / "main.py"), *words]
        start = partial(subprocess.run, command, capture_output=True, check=True)
        seconds = statistics.median(_seconds(start) for _ in range(7))
        yield Check(f"format-bench {' '.join(words)}", f"{seconds:.2f} s", f"at most {limit} s", seconds <= limit)


def calls() -> Iterator[Check]:
    """Time the harness between two calls of a block, with calls that do nothing (rule 19)."""

    def nothing(handle: object, held: object) -> tuple[None, dict[str, int]]:
        laps = Laps()
        laps.start()
        laps.stop()
        return None, laps.parts

    between_ms = []
    for _ in range(REPETITIONS):
        started = now_ns()
        done = call_all(nothing, (None,), range(REPETITIONS))
        between_ms.append((now_ns() - started - sum(done.walls_ns)) / REPETITIONS / 1e6)
    each_ms = statistics.median(between_ms)
    yield Check("between two calls of a block", f"{each_ms:.4f} ms", "at most 0.3 ms", each_ms <= 0.3)


def steadiness() -> Iterator[Check]:
    """Measure how much equal computations differ on this machine, which limits all following figures."""
    finding = doctor.cpu_speed()
    yield Check(finding.what, finding.measured, "-", None)


def repeatability(first: Run, second: Run) -> Iterator[Check]:
    """Compare two consecutive runs: medians should agree within 10 %, and no untied pair should be reversed."""
    one, two = _cells(first), _cells(second)
    ratios = {
        cell: two[cell].figures["wall_ns"].median / one[cell].figures["wall_ns"].median
        for cell in one.keys() & two.keys()
        if one[cell].figures["wall_ns"].median >= LONG_ENOUGH_NS
    }
    near = sum(0.9 <= ratio <= 1.1 for ratio in ratios.values())
    share = near / len(ratios)
    yield Check("repeat: cells over 50 ms within 10 %", f"{near} of {len(ratios)}", "at least 95 %", share >= 0.95)
    for cell, ratio in sorted(ratios.items(), key=lambda item: item[1]):
        if not 0.9 <= ratio <= 1.1:
            yield Check(f"  {cell.operation} {cell.variant}", f"{ratio:.2f} times", "0.90 to 1.10", False)
    reversed_pairs = list(_reversed(one, two))
    yield Check("repeat: untied pairs reversed", str(len(reversed_pairs)), "0", not reversed_pairs)
    for pair in reversed_pairs:
        yield Check(f"  {pair}", "reversed", "-", False)


def _reversed(one: Mapping[Cell, CellSummary], two: Mapping[Cell, CellSummary]) -> Iterator[str]:
    """Yield pairs of variants of one operation that both runs rank with certainty, but in opposite order."""
    for operation in ("save", "read"):
        cells = [cell for cell in one.keys() & two.keys() if cell.operation == operation]
        for left in cells:
            for right in cells:
                if _certainly_faster(one, left, right) and _certainly_faster(two, right, left):
                    yield f"{operation}: {left.variant} and {right.variant}"


def _certainly_faster(summaries: Mapping[Cell, CellSummary], left: Cell, right: Cell) -> bool:
    ratios = ranking([summaries[left], summaries[right]], "wall_ns")
    loser = ratios.get(right)
    return loser is not None and loser.ratio > 1 and loser.tied is False


def isolation(forked: Run, spawned: Run) -> Iterator[Check]:
    """Check rule 18: the forkserver must not affect time or memory.

    The runs measure the same rounds in turn, so that drift of the machine's speed affects both. The printed line states
    if the interval is still too wide to decide.
    """
    one, two = _cells(forked), _cells(spawned)
    for figure, least in (("wall_ns", LONG_ENOUGH_NS), ("peak_private_bytes", 10**7)):
        for cell in sorted(one.keys() & two.keys(), key=str):
            if max(one[cell].figures[figure].median, two[cell].figures[figure].median) < least:
                continue
            ratio = ratio_interval(one[cell].by_round[figure], two[cell].by_round[figure])
            if ratio is not None:
                what = f"fork/spawn {figure} {cell.operation} {cell.variant}"
                yield Check(what, told(ratio), "0.95 to 1.05", within(ratio))


def told(ratio: Ratio) -> str:
    """Return the ratio and its interval, if there is one, as text such as '0.980 (0.95-1.02)'."""
    interval = "" if ratio.low is None or ratio.high is None else f" ({ratio.low:.2f}-{ratio.high:.2f})"
    return f"{ratio.ratio:.3f}{interval}"


def within(ratio: Ratio, least: float = 0.95, most: float = 1.05) -> bool | None:
    """Return whether the whole interval of the ratio is within the bounds, or None if it crosses one.

    In that case it would be chance on which side of the bound the median is.
    """
    if ratio.low is None or ratio.high is None:
        return None
    if ratio.high < least or ratio.low > most:
        return False
    return True if least <= ratio.low and ratio.high <= most else None


def _cells(run: Run) -> dict[Cell, CellSummary]:
    return {
        cell: summary
        for cell, summary in summarise(run.samples).items()
        if "wall_ns" in summary.figures and not cell.variant.is_raw_io
    }


def _seconds(work: Callable[[], object]) -> float:
    started = now_ns()
    work()
    return (now_ns() - started) / 1e9


def _run(folder: Path, isolate: str, rows: int, rounds: int) -> Run:
    request = Request(datasets=("^eq$",), formats_not=SLOW, tracks=("plain",), rows=rows)
    plan = make_plan([SUITES["tabular"]], request)
    options = Options(rounds=rounds, isolate=isolate, fidelity=False)
    folder.mkdir()
    with watching() as watcher:
        run, _ = measure(plan, request, options, folder, ["selfbench"], watcher)
    return run


def _in_turn(folder: Path, rows: int, rounds: int) -> tuple[Run, Run]:
    """Measure a forked and a spawned run round by round in turn, alternating which goes first."""
    taken: dict[str, list[Run]] = {"forkserver": [], "spawn": []}
    for number in range(rounds):
        order = list(taken) if number % 2 == 0 else list(taken)[::-1]
        for isolate in order:
            taken[isolate].append(_run(folder / f"{isolate}-{number}", isolate, rows, 1))
    forked, spawned = (_joined(runs) for runs in taken.values())
    return forked, spawned


def _joined(runs: Sequence[Run]) -> Run:
    """Join runs into one, whose round k is the first counted round of run k."""
    samples = [
        changed(sample, round=number)
        for number, run in enumerate(runs, 1)
        for sample in run.samples
        if sample.round > 0 and sample.counted
    ]
    return replace(runs[0], samples=tuple(samples))


keep_runs = click.option(
    "--runs",
    "kept",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the runs in this folder, and continue those that it has.",
)


def made_once(place: Path, make: Callable[[Path], None]) -> Path:
    """Make the folder if it is missing; start again after an interruption. Its name has to identify how it was made."""
    if not place.exists():
        unfinished = place.with_name("unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        make(unfinished)
        unfinished.rename(place)
    return place


def least_ns(
    times: int, calls: Mapping[Name, Callable[[], object]], clock: Callable[[], int] = now_ns
) -> dict[Name, int]:
    """Return the shortest time of each call in ns. Calls take turns, so that load on the machine affects all."""
    least: dict[Name, int] = {}
    for _ in range(times):
        for name, call in calls.items():
            started = clock()
            call()
            spent = clock() - started
            least[name] = min(least.get(name, spent), spent)
    return least


def print_checks(title: str, checks: Iterator[Check]) -> None:
    """Print one part, each line as soon as it is measured."""
    click.echo(title)
    for check in checks:
        mark = "" if check.target == "-" else MARKS[check.met]
        click.echo(f"  {check.what:<70} {check.measured:>20}  {check.target:<14} {mark}")


@click.command()
@click.option("--rows", default=ROWS, show_default=True, help="Rows of the measured table.")
@click.option("--rounds", default=ROUNDS, show_default=True, help="Rounds of each run.")
@click.option("--only", type=click.Choice(["start", "calls", "data", "repeat", "isolation"]), help="Run one part only.")
def main(rows: int, rounds: int, only: str | None) -> None:
    """Print the overhead and repeatability of Format Bench, each with its target."""
    if only in (None, "start"):
        print_checks("start", starting())
    if only in (None, "calls"):
        print_checks("calls", calls())
    if only in (None, "data"):
        print_checks("data", making_data())
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="selfbench-") as name:
        folder = Path(name)
        if only in (None, "repeat"):
            print_checks("the machine itself", steadiness())
            first = _run(folder / "first", "forkserver", rows, rounds)
            print_checks("where the time goes", accounts(first))
            second = _run(folder / "second", "forkserver", rows, rounds)
            print_checks("repeatability", repeatability(first, second))
        if only in (None, "isolation"):
            print_checks("isolation (rule 18)", isolation(*_in_turn(folder, rows, rounds)))


if __name__ == "__main__":
    main()
