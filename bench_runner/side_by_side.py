"""Two environments measured in turn, a few rounds of each, so that what the machine does meanwhile hits both alike.

Runs one after the other differ by whatever the machine was doing: on a shared host single cells by several per cent,
however many rounds they have (docs/publishing.md, 'Two versions side by side'). Each turn is a `run --resume` by the
environment's own interpreter. This module compares nothing, and knows no more of a run than its folder.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bench_runner.clock import now_ns
from bench_runner.errors import RunError
from bench_runner.measuring import Heeding, signals_stop
from bench_runner.records import read_run
from bench_runner.session import Watcher

TURN_S = 20.0
"""About how long the rounds of a turn take, if a round is not longer; starting it takes some seconds besides. How long
turns are matters little: the machine's speed is another already after a round or two (of 100 rounds of 12 cells the
times of neighbours correlate by 0.12, those five rounds apart by 0.03)."""
SOME_FAILED = 1
"""The exit code of a run in which some cells failed, and the rest was measured."""
Side = TypeVar("Side")


@dataclass(frozen=True)
class Environment:
    """One of the two: `name` is 'before' or 'after', `python` the interpreter, `folder` where its run lies."""

    name: str
    python: Path
    folder: Path


def check(environment: Environment) -> None:
    """Raises RunError when the environment's interpreter cannot run Format Bench."""
    # The links stay: a virtual environment is found by the name under which its interpreter was called.
    command = [str(environment.python.absolute()), "-P", "-c", "import bench_runner.cli"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise RunError(
            f"--{environment.name} {environment.python}: {error.strerror}\n"
            "  name the interpreter of an environment, e.g. old/.venv/bin/python"
        ) from None
    if done.returncode != 0:
        said = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise RunError(
            f"--{environment.name} {environment.python}: Format Bench does not start there: {said}\n"
            f"  install it in that environment, from the checkout: {environment.python} -m pip install -e ."
        )


def turns(sides: Sequence[Side], rounds: int, most: Callable[[], int]) -> Iterator[tuple[Side, int]]:
    """(side, how many rounds it is to have after its turn), until each has `rounds`. The first turns are of one round,
    the later ones of as many as `most` says by then; who goes first alternates."""
    upto, forward = 0, True
    while upto < rounds:
        upto = min(upto + (most() if upto else 1), rounds)
        yield from ((side, upto) for side in (sides if forward else sides[::-1]))
        forward = not forward


def measure_in_turn(
    environments: Sequence[Environment],
    words: Sequence[str],
    rounds: int,
    watcher: Watcher,
    look: Callable[[], object],
) -> None:
    """Take `rounds` rounds of each environment into its folder, in turn; `words` are arguments of the command `run`.
    What lies in a folder already is not measured again. `look` is called after the first turn of each: it may raise
    what makes all further rounds useless.

    Raises RunError when a turn cannot be taken, KeyboardInterrupt after Ctrl-C or SIGTERM (with everything measured
    kept).
    """
    heeding = Heeding(watcher)
    with signals_stop(heeding):
        heeding.stage("side by side")
        costs_s: dict[str, float] = {}
        looked = False
        for environment, upto in turns(environments, rounds, lambda: max(map(_rounds_a_turn, environments))):
            if upto > 1 and not looked:
                look()
                looked = True
            already = rounds_there(environment.folder)
            if already >= upto:
                continue
            left_s = _seconds_left(environments, environment, upto, rounds, costs_s)
            heeding.step(f"{environment.name}, up to round {upto} of {rounds}", left_s)
            began = now_ns()
            _take_turn(environment, words, upto)
            # The first turn makes data and probes besides: what it took says little of the next.
            costs_s[environment.name] = (now_ns() - began) / 1e9 / (upto - already)
        if not looked:
            look()


def rounds_there(folder: Path) -> int:
    """How many rounds the run in the folder has in full; 0 where there is none, or its last part was stopped."""
    if not (folder / "run.json").exists():
        return 0
    info = read_run(folder).info
    return 0 if info.get("partial", True) else info.get("rounds_asked") or 0


def _rounds_a_turn(environment: Environment) -> int:
    """As many as fill a turn, going by what those that are there took."""
    stages = read_run(environment.folder).info.get("stages_ns", {})
    took_ns = [spent_ns for name, spent_ns in stages.items() if name.startswith("round ")]
    return max(int(TURN_S * 1e9 * len(took_ns) / max(sum(took_ns), 1)), 1)


def _seconds_left(
    environments: Sequence[Environment], now: Environment, upto: int, rounds: int, costs_s: dict[str, float]
) -> float | None:
    """Of all turns to come; None before each has had one."""
    if any(environment.name not in costs_s for environment in environments):
        return None
    return sum(costs_s[each.name] * (rounds - rounds_there(each.folder)) for each in environments)


def _take_turn(environment: Environment, words: Sequence[str], upto: int) -> None:
    """Have the environment measure what its run lacks of so many rounds."""
    command = [str(environment.python.absolute()), "-P", "-m", "bench_runner.cli", "run", *words]
    command += ["--rounds", str(upto), "--out", str(environment.folder)]
    if (environment.folder / "run.json").exists():
        command.append("--resume")
    # A session of its own keeps Ctrl-C, which goes to the whole foreground group, from reaching it twice.
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        try:
            _, said = child.communicate()
        except BaseException:
            # It removes its working files and ends.
            child.send_signal(signal.SIGTERM)
            child.wait()
            raise
    # A full disk ends a run with the same code as failed cells do.
    if child.returncode not in (0, SOME_FAILED) or rounds_there(environment.folder) < upto:
        # Behind the usage, where the words were wrong.
        last_words = said.strip().rpartition("rror: ")[2] or f"its run ended with exit code {child.returncode}"
        raise RunError(f"{environment.name}: {last_words}")
