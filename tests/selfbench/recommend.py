"""Measure how reliable recommendations are: `make selfbench-recommend` prints their regret and how many are right.

For each table `recommend` answers under five weightings with a common screening. A full run then measures all
candidates in five rounds, and those that may be the best in twelve, without a time limit. The regret of a
recommendation is how much worse its score in the full run is than the best score there. The full run leaves out text
formats and Avro, which take much time and are far from the best under any weighting. Formats of every maturity are
accepted, because a larger choice allows a larger regret.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click

from bench_runner.data_kinds import TABLES
from bench_runner.request import Request
from bench_runner.results.records import Run, changed, read_run
from bench_runner.run.choosing import SCREENING, measure_for_choice, measure_race
from bench_runner.run.options import Options
from bench_runner.run.session import Race
from format_bench.progress import watching
from reports.analysis.recommendation.candidates import summary_of
from reports.analysis.recommendation.eligibility import eligible
from reports.analysis.recommendation.preferences import STAGES, Preferences, parse_weights
from reports.analysis.recommendation.race import contending, may_win
from reports.analysis.recommendation.recommend import Recommendation, recommend
from tests.selfbench.costs import Check, keep_runs, made_once, print_checks, steadiness

DATA_SETS = (
    *("eq", "int", "float", "bool", "str", "core", "bi", "classic", "geo", "log", "ml"),
    "tpch-lineitem[scale=0.01]",
    "synthetic[int=20]",
    "synthetic[float=20]",
    "synthetic[str=4,strings=words,length=60]",
    "synthetic[str=10,strings=varying]",
    "synthetic[int=5,float=5,nulls=0.3]",
    "synthetic[bool=40]",
    "synthetic[int=1]",
    "synthetic[int=2,float=2,bool=2,str=2,strings=words,nulls=0.1]",
)
WEIGHTINGS = (
    "read=3,size=2,save=1",
    "read=1",
    "size=1,read=1",
    "save=2,read=1",
    "read=1,size=1,save=1,read_memory=1,save_memory=1",
)
ROWS, BUDGET_S, FULL_ROUNDS = 50_000, 120.0, 12
FAR = ("^xml", "^excel", "^csv", "^json", "^avro")
SMALL_REGRET, LARGE_REGRET, SURE = 0.05, 0.25, 0.9


@dataclass(frozen=True)
class Trial:
    """One table under one weighting."""

    table: str
    weighting: str
    regret: float
    probability: float | None
    right: bool
    """Whether the same variant is best in the full run."""
    of_halves: tuple[float, ...]
    """Regret of the best variant of one half of the full run's rounds, judged by the other half. It is due to noise
    alone, so a short measurement cannot be expected to do better."""


def runs(folder: Path, table: str, rows: int, budget_s: float) -> tuple[list[Run], Run]:
    """Return the short runs of a table, one for each weighting, and its full run.

    Runs that are already in the folder are not measured again.
    """
    request = Request(datasets=(table,), rows=None if table.startswith("tpch") else rows)
    stem = f"{table}-{rows}-rows"
    short = made_once(folder / f"{stem}-short-{budget_s:g}-s", lambda place: _ask(place, request, budget_s))
    full = made_once(folder / f"{stem}-full-{FULL_ROUNDS}-rounds", lambda place: _measure_in_full(place, request))
    return [read_run(short / str(number)) for number in range(len(WEIGHTINGS))], read_run(full)


def _ask(folder: Path, request: Request, budget_s: float) -> None:
    """Measure what `recommend` does under each weighting, with the screening of the first one."""
    first = folder / "0"
    first.mkdir(parents=True)
    options, command = Options(fidelity=False), ["selfbench"]
    with watching() as watcher:
        run = measure_for_choice(
            request,
            options,
            lambda: first,
            command,
            watcher,
            kind=TABLES,
            budget_s=budget_s,
            may_win=partial(_near, weightings=WEIGHTINGS[:1], chosen=may_win),
            contending=partial(_near, weightings=WEIGHTINGS[:1], chosen=contending),
        )
        screening = read_run(first / SCREENING)
        for number, text in enumerate(WEIGHTINGS[1:], start=1):
            place = folder / str(number)
            place.mkdir()
            chosen = changed(request, formats=tuple(_near(screening, [text], may_win)))
            # The same budget, because its own screening would have taken as long.
            same_budget = replace(options, budget_s=run.info.budget_s)
            race = Race(partial(_near, weightings=[text], chosen=contending), screening)
            measure_race(chosen, same_budget, place, command, watcher, race, TABLES)


def _measure_in_full(folder: Path, request: Request) -> None:
    """Measure all candidates, and those that may be the best under some weighting in more rounds."""
    folder.mkdir(parents=True, exist_ok=True)
    race = Race(partial(_near, weightings=WEIGHTINGS, chosen=contending), None)
    with watching() as watcher:
        measure_race(
            changed(request, formats_not=FAR),
            Options(rounds=FULL_ROUNDS),
            folder,
            ["selfbench"],
            watcher,
            race,
            kind=TABLES,
        )


def _near(run: Run, weightings: Sequence[str], chosen: Callable[[Recommendation], Sequence[str]]) -> list[str]:
    """Return the variants chosen under some weighting, and those without figures."""
    ((_, candidates),) = summary_of(run).questions.items()
    variants = [variant for text in weightings for variant in chosen(_asked(run, text))]
    variants += [candidate.variant for candidate in candidates if candidate.unknown]
    return list(dict.fromkeys(variants))


def trials(table: str, short: Sequence[Run], full: Run) -> Iterator[Trial]:
    """Yield a trial for each weighting: its short run compared with the full run."""
    for text, run in zip(WEIGHTINGS, short, strict=True):
        first = _asked(run, text).ranked[0]
        scores = _scores(_asked(full, text))
        variant = first.candidate.variant
        # Variants left out of the full run have no score there; they count as the largest regret.
        score = scores.get(variant, math.inf)
        yield Trial(table, text, score - 1, first.probability, score == 1, tuple(_of_halves(full, text)))


def _of_halves(full: Run, weighting: str) -> Iterator[float]:
    halves = [
        replace(full, samples=tuple(sample for sample in full.samples if sample.round % 2 == parity))
        for parity in (0, 1)
    ]
    for chosen, judging in (halves, reversed(halves)):
        best = _asked(chosen, weighting).ranked[0].candidate.variant
        yield _scores(_asked(judging, weighting)).get(best, math.inf) - 1


def _asked(run: Run, weighting: str) -> Recommendation:
    wish = Preferences(weights=parse_weights(weighting, ()), accept=STAGES[-1])
    ((_, candidates),) = summary_of(run).questions.items()
    kept, dropped = eligible(candidates, wish, 0)
    return recommend(kept, dropped, wish)


def _scores(found: Recommendation) -> Mapping[str, float]:
    return {each.candidate.variant: each.score for each in found.ranked}


def judged(found: Sequence[Trial]) -> Iterator[Check]:
    """Yield the regrets, and how many confident recommendations are right, over all tables and weightings."""
    regrets = [trial.regret for trial in found]
    small, largest = _small(regrets), max(regrets)
    met = small >= 0.95 * len(regrets)
    yield Check("recommendations with a regret of at most 5 %", f"{small} of {len(regrets)}", "95 of 100", met)
    yield Check("largest regret", f"{largest:.1%}", "at most 25 %", largest <= LARGE_REGRET)
    by_noise = [regret for trial in found for regret in trial.of_halves]
    noise = f"{_small(by_noise)} of {len(by_noise)}, {max(by_noise):.1%}"
    yield Check("  both, between halves of the full run (noise)", noise, "-", None)
    sure = [trial for trial in found if trial.probability is not None and trial.probability >= SURE]
    right = sum(trial.right for trial in sure)
    claims_hold = right >= 0.85 * len(sure) if sure else None
    yield Check("claims of at least 0.9 that are right", f"{right} of {len(sure)}", "at least 85 %", claims_hold)
    for trial in sorted(found, key=lambda trial: -trial.regret)[:5]:
        yield Check(f"  {trial.table}, {trial.weighting}", f"{trial.regret:.1%}", "-", None)


def _small(regrets: Sequence[float]) -> int:
    return sum(regret <= SMALL_REGRET for regret in regrets)


@click.command()
@click.option("--rows", default=ROWS, show_default=True, help="Rows of each table.")
@click.option("--tables", default=len(DATA_SETS), show_default=True, help="Number of tables.")
@click.option(
    "--budget", "budget_s", default=BUDGET_S, show_default=True, help="Time of a short measurement, in seconds."
)
@keep_runs
def main(rows: int, tables: int, budget_s: float, kept: Path | None) -> None:
    """Print how much recommendations lose compared with a full run, and how often confident ones are right."""
    print_checks("the machine itself", steadiness())
    click.echo("regrets by table under the five weightings (!: another variant is best in the full run)")
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="selfbench-") as folder:
        found: list[Trial] = []
        for table in DATA_SETS[:tables]:
            measured = list(trials(table, *runs(kept or Path(folder), table, rows, budget_s)))
            # Printed at once, so that a later failure does not lose an hour of measurements.
            regrets = ", ".join(f"{trial.regret:.1%}{'' if trial.right else '!'}" for trial in measured)
            click.echo(f"  {table}: {regrets}")
            found += measured
        print_checks("recommend", judged(found))


if __name__ == "__main__":
    main()
