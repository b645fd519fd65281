"""Rule 1: bring the machine to rest before every sample, and prove it with a small control.

It runs in the worker, as the last thing before the clean slate and the clock, because rest does not last: a virtual
machine hands free memory back to its host every few seconds, and what was ready a second ago is slow again. Measured
with 192 MB written to the page cache, 54 to 66 ms where memory is ready, 400 to 800 ms where it is not: right after
making it ready 10 of 10 writes were quick, 0.3 s later 9, 1 s later 6, 3 s later none.

The memory that goes back and forth is that of whole huge pages, which large writes and large arrays take. Touching it
in small pages leaves it as it was, so it is touched as huge pages. Where the host takes no memory back, touching it
gains nothing: `examine` finds that out, and the control still tells when it was wrong.

The control (a 64 MB write, a 64 MB allocation) tells what a storage benchmark cannot see from inside: write-back of
earlier samples, and memory that the host has not backed.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bench_runner.clock import now_ns, pause
from bench_runner.machine import linux

CONTROL_BYTES = 64 * 1024 * 1024
"""The control writes so much, and touches so much fresh memory (rule 1)."""
BLOCK_BYTES = 1024 * 1024
"""The control writes one block of this size many times (rule 1)."""
UNWRITTEN_LIMIT_BYTES = 16 * 1000 * 1000
"""A sample waits until at most so much of the system's page cache is unwritten (rule 1)."""
WRITE_BACK_LIMIT_S = 30.0
"""It waits no longer than this (rule 1)."""
TRIES = 3
"""Settling is tried so often before the sample is taken all the same, and not counted (rule 1)."""
READY_BYTES = 900 * 1000 * 1000
"""So much memory is made ready without asking whether it stays (rule 1). One guest kept about 1 GiB of free memory: all
beyond was back at the host before it could be used: touching 900 MB took 0.2 s, 3 GB 7 s, each time again."""
READY_STEP = 1.5
"""Where a sample needs more, so many times as much is tried, until enough stays (rule 1)."""
SLOW_FACTOR = 1.5
"""A control that takes so many times the run's best means that the machine is not at rest (rule 1). Of 160 controls at
rest about two in a hundred were (docs/method.md)."""
CALIBRATIONS = 5
"""So many controls come before the first sample, so that the run's best is known when it begins (rule 1)."""
EXAMINED_BYTES = 256 * 1024 * 1024
"""So much is touched to examine whether the host takes memory back (rule 1)."""
GAIN_FACTOR = 1.5
"""Memory was taken back that takes so many times as long to touch as right after it was touched (rule 1)."""


@dataclass(frozen=True)
class Control:
    """What the 64 MB write and the 64 MB allocation took."""

    write_ns: int
    allocate_ns: int


@dataclass(frozen=True)
class Rest:
    """The state in which a sample starts."""

    control: Control
    settled: bool
    settle_ns: int
    why_not: str = ""
    tries: int = 1


@dataclass(frozen=True)
class Readiness:
    """Whether memory is made ready before every sample, why, and how much at most: what goes beyond does not stay, or
    was never needed."""

    touches: bool
    why: str
    most_bytes: int = READY_BYTES


ALWAYS = Readiness(True, "nothing was examined, and it does no harm")


def examine(leave_alone: Callable[[], object], usable_bytes: int) -> Readiness:
    """Whether this machine's host takes memory back: by touching the same amount at first, at once again, and after
    `leave_alone` has spent some seconds otherwise. `usable_bytes` is what may be used, of which half is made ready; the
    control's own memory always is."""
    size_bytes = max(min(EXAMINED_BYTES, usable_bytes // 4), CONTROL_BYTES)
    amount = f"{size_bytes // 2**20} MiB"
    readiness = Readiness(True, "", max(min(READY_BYTES, usable_bytes // 2), CONTROL_BYTES))
    first_ns, ready_ns = _touch_ns(size_bytes), _touch_ns(size_bytes)
    if first_ns > GAIN_FACTOR * ready_ns:
        why = f"touching {amount} took {first_ns / ready_ns:.1f} times as long at first as after it"
        return replace(readiness, why=why)
    leave_alone()
    later_ns = _touch_ns(size_bytes)
    if later_ns > GAIN_FACTOR * ready_ns:
        why = f"touching {amount} took {later_ns / ready_ns:.1f} times as long some seconds later"
        return replace(readiness, why=why)
    slowest = max(first_ns, later_ns) / ready_ns
    why = f"{amount} that were left alone took {slowest:.1f} times as long as right after a touch"
    return replace(readiness, touches=False, why=why)


def _touch_ns(size_bytes: int) -> int:
    started = now_ns()
    linux.touch_memory(size_bytes)
    return now_ns() - started


class Settler:
    """Brings one working folder's file system and the machine's memory to rest; remembers the best control.

    The run keeps one for each working folder, and each worker makes one of its own with the run's best.
    """

    def __init__(self, folder: Path, best: Control | None = None, readiness: Readiness = ALWAYS) -> None:
        """`folder` is a folder on the file system that is worked on: controls are written there."""
        self._folder = folder
        self.best = best
        self.readiness = readiness
        self._keeps_no_more = False

    def calibrate(self) -> None:
        """Find a best control before the first sample."""
        for _ in range(CALIBRATIONS):
            self.settle(0)

    def learn(self, control: Control) -> None:
        """Take a control that a worker has seen into the run's best."""
        best = self.best or control
        self.best = Control(min(best.write_ns, control.write_ns), min(best.allocate_ns, control.allocate_ns))

    def learn_from(self, rest: Rest) -> None:
        """Take in what a worker has seen. A control that only touching has cured shows that the host takes memory back,
        whatever was found before."""
        self.learn(rest.control)
        if not self.readiness.touches and rest.settled and rest.tries > 1:
            self.readiness = Readiness(True, "a control was slow, and quick again when memory had been touched")

    def examine_more(self, need_bytes: int, usable_bytes: Callable[[], int]) -> None:
        """Find out whether the machine keeps more memory ready than is known, where a sample needs more: what stays is
        touched again as quickly, byte for byte, as what is known to stay. At most half of what may be used is touched,
        which the limits of a container decide too."""
        while self.readiness.touches and self.readiness.most_bytes < need_bytes and not self._keeps_no_more:
            size_bytes = int(self.readiness.most_bytes * READY_STEP)
            if size_bytes > usable_bytes() // 2:
                return
            known_bytes = min(READY_BYTES, self.readiness.most_bytes)
            _touch_ns(known_bytes)
            known_ns = _touch_ns(known_bytes) / known_bytes
            _touch_ns(size_bytes)
            again_ns = max(_touch_ns(size_bytes), _touch_ns(size_bytes)) / size_bytes
            if again_ns > GAIN_FACTOR * known_ns:
                self._keeps_no_more = True
            else:
                self.readiness = replace(self.readiness, most_bytes=size_bytes)

    def settle(self, need_bytes: int) -> Rest:
        """Wait until the machine is at rest, at most three tries; `need_bytes` is what the sample is expected to use,
        of memory and of page cache together.

        Raises OSError when the control cannot be written, as on a full disk.
        """
        started = now_ns()
        for times in range(1, TRIES + 1):
            control, why_not = self._try(times * need_bytes, touch=self.readiness.touches or times > 1)
            if not why_not:
                break
        return Rest(control, not why_not, now_ns() - started, why_not, times)

    def _try(self, need_bytes: int, *, touch: bool) -> tuple[Control, str]:
        quiet = self._write_back()
        if touch:
            # Never less than the control's own: of a small need it would tell that its own memory was not ready.
            ready_bytes = min(max(need_bytes, CONTROL_BYTES), self.readiness.most_bytes)
            linux.touch_memory(min(ready_bytes, linux.available_bytes() // 2))
        control = self._control()
        self.learn(control)
        assert self.best is not None
        if not quiet:
            return (
                control,
                f"over {UNWRITTEN_LIMIT_BYTES // 10**6} MB were still unwritten after {WRITE_BACK_LIMIT_S:.0f} s",
            )
        if control.write_ns > SLOW_FACTOR * self.best.write_ns:
            return control, f"a 64 MB write took {control.write_ns / self.best.write_ns:.1f} times the run's best"
        if control.allocate_ns > SLOW_FACTOR * self.best.allocate_ns:
            return (
                control,
                f"touching 64 MB took {control.allocate_ns / self.best.allocate_ns:.1f} times the run's best",
            )
        return control, ""

    def _write_back(self) -> bool:
        """Sync the file system and wait for other writers; False when the limit passes first."""
        linux.sync_file_system(self._folder)
        deadline = now_ns() + int(WRITE_BACK_LIMIT_S * 1e9)
        while linux.unwritten_bytes() > UNWRITTEN_LIMIT_BYTES:
            if now_ns() > deadline:
                return False
            pause(0.02)
        return True

    def _control(self) -> Control:
        path = self._folder / "control"
        # One small block many times: of 64 MB of its own the process would time the page faults, not the writing.
        written = 0
        try:
            started = now_ns()
            with path.open("wb", buffering=0) as stream, linux.anonymous_memory(BLOCK_BYTES) as block:
                while written < CONTROL_BYTES and (size := stream.write(block)):
                    written += size
            write_ns = now_ns() - started
        except OSError as error:
            # A failed write names no file.
            raise OSError(error.errno, f"the 64 MB control: {error.strerror}", str(path)) from error
        finally:
            path.unlink(missing_ok=True)
        if written < CONTROL_BYTES:
            raise OSError(errno.ENOSPC, "no space for the 64 MB control", str(path))
        return Control(write_ns, _touch_ns(CONTROL_BYTES))
