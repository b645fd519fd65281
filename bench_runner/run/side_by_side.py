"""Measure two Python environments alternately, a few rounds at a time, so that changes of the machine's speed affect
both environments alike.

Two consecutive runs differ because the load of the machine changes. On a shared host, single times of two runs differ
by several per cent, however many rounds the runs have (docs/publishing.md, 'Two versions side by side'). The
interpreter of each environment executes `run`, which waits after each turn (bench_runner.run.turns). A run that ends
instead, as in older versions of Format Bench, is continued by `run --resume`. This module does not compare results. It
only reads how many rounds are done and how long they took.
"""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from bench_runner.clock import now_ns
from bench_runner.errors import RunError
from bench_runner.results.records import read_run
from bench_runner.run.interruption import stopped_by_signals
from bench_runner.run.turns import CONTROL_VARIABLE, DONE, PAUSED_VARIABLE, Turn
from bench_runner.run.watcher import Watcher

TURN_S = 40.0
"""Approximate seconds of measuring in a turn. Some turns are longer or shorter, so that every look (see LOOK_ROUNDS)
comes right after a turn. The exact value matters little, because the machine's speed changes within one or two rounds.
In a run of 100 rounds, the correlation between the times of neighbouring rounds was 0.12. Between rounds that were five
rounds apart it was 0.03."""
LOOK_ROUNDS = 10
"""Number of rounds after which `decided` is called again (a look) to find operations that need no more rounds."""
LAST_ROUNDS = 5
"""Number of latest rounds whose duration is used to plan the next turn."""
SOME_FAILED = 1
"""Exit code of a run in which some measurements failed and the others succeeded."""
START = (
    # prctl(2) with PR_SET_PDEATHSIG ends the child in an orderly way when this process ends, even if it is killed.
    f"import ctypes; ctypes.CDLL(None).prctl(1, {signal.SIGTERM.value}); from format_bench.cli import main; main()"
)
"""Python code that the interpreter of an environment executes. The command's arguments follow this code."""
Side = TypeVar("Side")


@dataclass(frozen=True)
class Environment:
    """One of the two Python environments. `name` is 'before' or 'after', `python` is the path of the interpreter, and
    `folder` is the result folder of the run in this environment."""

    name: str
    python: Path
    folder: Path

    def started(self, code: str, words: Sequence[str] = ()) -> dict[str, Any]:
        """Return the keyword arguments of subprocess.Popen that execute `code` in this environment, without access to
        the packages of the current environment."""
        # Do not resolve links, because Python finds a virtual environment by the path with which it was called.
        command = [str(self.python.absolute()), "-P", "-c", code, *words]
        shared = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        return {"args": command, "env": shared}


def check(environment: Environment) -> None:
    """Raise RunError if the environment's interpreter cannot run Format Bench."""
    where = f"`{environment.name}={str(environment.python)!r}`"
    try:
        started = environment.started("import format_bench.cli")
        done = subprocess.run(**started, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise RunError(
            f"{where} cannot be started ({error.strerror}).",
            "Name the interpreter of an environment, e.g. old/.venv/bin/python.",
            parameter=environment.name,
            given=str(environment.python),
        ) from None
    if "unknown option -p" in done.stderr.lower():
        raise RunError(
            f"{where} is a Python older than 3.11.",
            "Create the environment with a newer version.",
            parameter=environment.name,
            given=str(environment.python),
        )
    if done.returncode != 0:
        said = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise RunError(
            f"{where} cannot start Format Bench: {said}",
            f"Install Format Bench there, from the checkout: {environment.python} -m pip install -e .",
            parameter=environment.name,
            given=str(environment.python),
        )


def turns(sides: Sequence[Side], rounds: int, most: Callable[[], int]) -> Iterator[tuple[Side, int]]:
    """Yield one (side, total) for each turn, where `total` is the number of rounds that the side has after the turn.
    Stop when each side has `rounds` rounds. In the first turn each side measures one round, in later turns about the
    number of rounds that `most` returns. Turns end at every multiple of LOOK_ROUNDS. The sides alternate in going
    first."""
    upto, forward = 0, True
    while upto < rounds:
        upto = min(upto + (_to_next_end(upto, most()) if upto else 1), rounds)
        yield from ((side, upto) for side in (sides if forward else sides[::-1]))
        forward = not forward


def _to_next_end(done: int, fit: int) -> int:
    """Return the number of rounds of a turn that begins after `done` rounds, if `fit` rounds fit into TURN_S. If they
    do not reach the next look, divide the rounds before the look into turns of equal length."""
    to_look = LOOK_ROUNDS - done % LOOK_ROUNDS
    if fit >= to_look:
        return to_look + (fit - to_look) // LOOK_ROUNDS * LOOK_ROUNDS
    return math.ceil(to_look / round(to_look / fit))


def measure_in_turn(
    environments: Sequence[Environment],
    words: Sequence[str],
    rounds: int,
    watcher: Watcher,
    look: Callable[[], object],
    decided: Callable[[Collection[tuple[str, str]]], Collection[tuple[str, str]] | None] = lambda already: already,
) -> None:
    """Measure at most `rounds` rounds with each environment, alternately. Each environment has its own result folder.

    `words` are arguments of the command `run`. Rounds that the folders already have are not measured again. `look` is
    called once, after both environments have their first round. `look` may raise an error if further rounds would be
    useless. `decided` is called after every LOOK_ROUNDS rounds, with the pairs that its last call returned. `decided`
    returns the pairs (variant, operation) that need no further samples, or None to end the measurement.

    Raises RunError if a turn fails, RecordError if a folder holds something other than a run, and KeyboardInterrupt
    after Ctrl-C or SIGTERM. All samples are kept.
    """
    with stopped_by_signals() as stop, _runs() as runs:
        watcher.stage("side by side")
        costs_s: dict[str, float] = {}
        looked = False
        looked_at = 0
        paused: Collection[tuple[str, str]] = ()
        for environment, upto in turns(environments, rounds, lambda: max(map(_rounds_a_turn, environments))):
            if upto > 1 and not looked:
                look()
                looked = True
            already = rounds_there(environment.folder, rounds)
            if already >= upto:
                continue
            both = min(rounds_there(each.folder, rounds) for each in environments)
            if both - looked_at >= LOOK_ROUNDS:
                looked_at = both
                found = decided(paused)
                if found is None:
                    return
                paused = found
            step = f"{environment.name}, up to round {upto} of {rounds}"
            stop.check()
            watcher.step(step, _seconds_left(environments, rounds, costs_s))
            began = now_ns()
            _take_turn(runs, environment, words, Turn(upto, tuple(sorted(paused))))
            # The first turn also generates data and tests the memory probes, so its duration is no estimate for later
            # turns.
            if already:
                costs_s[environment.name] = (now_ns() - began) / 1e9 / (upto - already)


def rounds_there(folder: Path, most: int) -> int:
    """Return the number of complete rounds of the run in the folder. The last round of a run that was stopped may be
    incomplete. So for a stopped run, take the number of rounds that were requested, but at most `most`, and return one
    less."""
    if not (folder / "run.json").exists():
        return 0
    info = read_run(folder).info
    if info.rounds_asked is None:
        return 0
    return max(min(info.rounds_asked, most) - 1, 0) if info.partial else info.rounds_asked


def _rounds_a_turn(environment: Environment) -> int:
    """Return the number of rounds that fit into a turn, at least 1. The duration of a round is estimated by the longest
    of the last LAST_ROUNDS rounds. A shorter round may have repeated only a few samples, and earlier rounds may include
    operations that are paused now."""
    stages_ns = read_run(environment.folder).info.stages_ns
    spent_ns = [spent for name, spent in stages_ns.items() if name.startswith("round ") and spent > 0]
    return max(int(TURN_S * 1e9 / max(spent_ns[-LAST_ROUNDS:], default=TURN_S * 1e9)), 1)


def _seconds_left(environments: Sequence[Environment], rounds: int, costs_s: dict[str, float]) -> float | None:
    """Return the expected seconds of all remaining turns. Return None as long as the duration of a round is unknown for
    an environment."""
    if any(environment.name not in costs_s for environment in environments):
        return None
    lacking = {each.name: max(rounds - rounds_there(each.folder, rounds), 0) for each in environments}
    return sum(costs_s[name] * count for name, count in lacking.items())


@dataclass
class _Run:
    """The process of a run, the socket that controls its turns, and the file with its standard error."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    said: IO[bytes]
    is_waiting: bool = False

    def completes_turn(self) -> bool:
        """Wait until the run has completed its turn and waits, or has ended. Return whether it waits."""
        with suppress(OSError):
            self.is_waiting = self.control.recv(len(DONE)) == DONE
        return self.is_waiting

    def take(self, turn: Turn) -> bool:
        """Send the next turn to the waiting run. Then do the same as `completes_turn`."""
        self.is_waiting = False
        with suppress(OSError):
            # msgspec's own encoder refuses subclasses of str, such as Variant.
            self.control.sendall(json.dumps(msgspec.structs.asdict(turn)).encode() + b"\n")
        return self.completes_turn()

    def end(self) -> tuple[int, str]:
        """Wait for the end of the process, which a waiting run reaches by itself. Return the process's exit code and
        its standard error."""
        self.control.close()
        code = self.process.wait()
        with self.said:
            self.said.seek(0)
            return code, self.said.read().decode(errors="replace")


@contextmanager
def _runs() -> Iterator[dict[str, _Run]]:
    """Yield an empty dict for the runs of the environments, and end these runs at the end."""
    runs: dict[str, _Run] = {}
    try:
        yield runs
    except BaseException:
        for run in runs.values():
            if not run.is_waiting:
                # On SIGTERM the run removes its working files and ends.
                run.process.send_signal(signal.SIGTERM)
        raise
    finally:
        for run in runs.values():
            run.end()


def _started(environment: Environment, words: Sequence[str], turn: Turn) -> _Run:
    """Start a run of the environment, which takes its first turn."""
    resumed = ["--resume"] if (environment.folder / "run.json").exists() else []
    words = ["run", *words, "--rounds", str(turn.rounds), "--out", str(environment.folder), *resumed]
    control, control_run = socket.socketpair()
    # In memory, because a run must be able to say that the disk is full.
    said = os.fdopen(os.memfd_create("standard error"), "w+b")
    started = environment.started(START, words)
    started["env"] |= {PAUSED_VARIABLE: json.dumps(turn.paused), CONTROL_VARIABLE: str(control_run.fileno())}
    with control_run:
        # Ctrl-C reaches the whole foreground process group. In a separate session the run does not receive it twice.
        process = subprocess.Popen(
            **started,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
            pass_fds=(control_run.fileno(),),
        )
    return _Run(process, control, said)


def _take_turn(runs: dict[str, _Run], environment: Environment, words: Sequence[str], turn: Turn) -> None:
    """Measure the environment's missing rounds of the turn. `runs` has the waiting runs."""
    name = environment.name
    if name in runs:
        is_waiting = runs[name].take(turn)
    else:
        runs[name] = _started(environment, words, turn)
        is_waiting = runs[name].completes_turn()
    if is_waiting:
        return
    code, said = runs.pop(name).end()
    # Check the rounds too, because a run on a full disk ends with the same code as a run with failed cells.
    if code not in (0, SOME_FAILED) or rounds_there(environment.folder, turn.rounds) < turn.rounds:
        raise RunError(f"{name}: {_last_words(said, code)}")


def _last_words(said: str, code: int) -> str:
    """Return the error message in `said`, the output of a run. If there is none, return the last line of the output and
    the exit code."""
    lines = said.strip().splitlines()
    for number, line in enumerate(lines):
        if line.startswith(("error: ", "Error: ")):
            return "\n".join([line.partition(": ")[2], *lines[number + 1 :]])
    # Progress lines of the run may precede the error.
    if any(line.lower().startswith("stopped") for line in lines):
        return "its run was stopped"
    return f"its run ended with exit code {code}" + (f": {lines[-1]}" if lines else "")
