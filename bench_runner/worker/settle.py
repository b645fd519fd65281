"""Bring the machine to rest before every sample, and check the result with a small control measurement (rule 1).

This is the last step in the worker before the clean slate and timing, because rest does not last. A virtual machine
returns free memory to its host every few seconds, and memory that was ready a second ago is slow again. Writing 192 MB
to the page cache took 54 to 66 ms with memory ready, and 400 to 800 ms without. Of 10 writes each, 10 were fast right
after making memory ready, 9 after 0.3 s, 6 after 1 s, and none after 3 s.

The guest returns memory in whole huge pages, which large writes and large arrays use. Touching memory in small pages
has no effect, so it is touched as huge pages. If the host reclaims no memory, touching gains nothing. `examine` finds
out whether the host does, and the control measurement shows if that finding was wrong.

The control measurement (a 64 MB write, a 64 MB allocation) detects two states that a storage benchmark cannot see
directly: write-back of earlier samples, and memory that the host has not backed.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bench_runner.clock import now_ns, pause
from bench_runner.machine import linux

CONTROL_BYTES = 64 * 1024 * 1024
"""Bytes that the control measurement writes, and bytes of fresh memory that it touches (rule 1)."""
BLOCK_BYTES = 1024 * 1024
"""Size of the block that the control measurement writes repeatedly (rule 1)."""
UNWRITTEN_LIMIT_BYTES = 16 * 1000 * 1000
"""A sample starts only when at most this much of the system's page cache is unwritten (rule 1)."""
WRITE_BACK_LIMIT_S = 30.0
"""Longest wait in seconds for unwritten data (rule 1)."""
TRIES = 3
"""Attempts to settle. After the last attempt the sample is taken anyway, but it is not counted (rule 1)."""
READY_BYTES = 900 * 1000 * 1000
"""Memory made ready without checking whether it stays ready (rule 1). One guest kept about 1 GiB of free memory, and
returned any more to the host before use. Touching 900 MB took 0.2 s, touching 3 GB took 7 s, and both took as long
again the next time."""
READY_STEP = 1.5
"""If a sample needs more memory than is known to stay ready, the amount that is tried grows by this factor (rule 1)."""
SLOW_FACTOR = 1.5
"""The machine is not at rest if a control measurement takes longer than the run's best by this factor (rule 1). Of 160
control measurements at rest, about 2 % did (docs/method.md)."""
CALIBRATIONS = 5
"""Number of control measurements before the first sample, which determine the run's best (rule 1)."""
EXAMINED_BYTES = 256 * 1024 * 1024
"""Memory touched to examine whether the host reclaims memory (rule 1)."""
GAIN_FACTOR = 1.5
"""Memory was reclaimed if touching it takes longer by this factor than touching it again immediately (rule 1)."""


@dataclass(frozen=True)
class Control:
    """Duration of the 64 MB write and of the 64 MB allocation of a control measurement."""

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
    """Whether and why memory is made ready before every sample, and the upper limit. More memory would not stay ready,
    or no sample has needed more."""

    touches: bool
    why: str
    most_bytes: int = READY_BYTES


ALWAYS = Readiness(True, "not examined; touching does no harm")


def examine(leave_alone: Callable[[], object], usable_bytes: int) -> Readiness:
    """Return whether this machine's host reclaims memory.

    Touches the same amount of memory twice, and again after `leave_alone`, which spends some seconds on other work. Up
    to half of `usable_bytes` may be made ready, but at least the amount that the control measurement uses.
    """
    size_bytes = max(min(EXAMINED_BYTES, usable_bytes // 4), CONTROL_BYTES)
    amount = f"{size_bytes // 2**20} MiB"
    readiness = Readiness(True, "", max(min(READY_BYTES, usable_bytes // 2), CONTROL_BYTES))
    first_ns, ready_ns = _touch_ns(size_bytes), _touch_ns(size_bytes)
    if first_ns > GAIN_FACTOR * ready_ns:
        why = f"touching {amount} took {first_ns / ready_ns:.1f} times as long the first time as the second time"
        return replace(readiness, why=why)
    leave_alone()
    later_ns = _touch_ns(size_bytes)
    if later_ns > GAIN_FACTOR * ready_ns:
        why = f"touching {amount} took {later_ns / ready_ns:.1f} times as long some seconds later"
        return replace(readiness, why=why)
    slowest = max(first_ns, later_ns) / ready_ns
    why = f"touching {amount} of idle memory took {slowest:.1f} times as long as right after a touch"
    return replace(readiness, touches=False, why=why)


def _touch_ns(size_bytes: int) -> int:
    started = now_ns()
    linux.touch_memory(size_bytes)
    return now_ns() - started


class Settler:
    """Bring the file system of one working folder and the machine's memory to rest, and remember the best control
    measurement. The run has one settler for each working folder. Each worker creates its own, with the run's best."""

    def __init__(self, folder: Path, best: Control | None = None, readiness: Readiness = ALWAYS) -> None:
        """`folder` is on the file system to settle. Control measurements are written there."""
        self._folder = folder
        self.best = best
        self.readiness = readiness
        self._keeps_no_more = False

    def calibrate(self) -> None:
        """Find the best control measurement before the first sample."""
        for _ in range(CALIBRATIONS):
            self.settle(0)

    def learn(self, control: Control) -> None:
        """Update the run's best with a worker's control measurement."""
        best = self.best or control
        self.best = Control(min(best.write_ns, control.write_ns), min(best.allocate_ns, control.allocate_ns))

    def learn_from(self, rest: Rest) -> None:
        """Update with the state of a worker's sample. If only touching memory made a slow control measurement fast, the
        host reclaims memory, whatever `examine` found before."""
        self.learn(rest.control)
        if not self.readiness.touches and rest.settled and rest.tries > 1:
            self.readiness = Readiness(True, "a control was slow, and fast again after touching memory")

    def examine_more(self, need_bytes: int, usable_bytes: Callable[[], int]) -> None:
        """Find out whether more memory stays ready, if a sample needs more than the amount known to stay ready.

        Memory that stays ready takes as long per byte to touch again as memory that is known to stay ready. At most
        half of the usable memory is touched. The usable memory also depends on the limits of a container.
        """
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
        """Wait until the machine is at rest, with at most three attempts. `need_bytes` is the expected use of the
        sample, including its page cache. Raises OSError if the control file cannot be written, as on a full disk."""
        started = now_ns()
        for times in range(1, TRIES + 1):
            control, why_not = self._try(times * need_bytes, touch=self.readiness.touches or times > 1)
            if not why_not:
                break
        return Rest(control, not why_not, now_ns() - started, why_not, times)

    def _try(self, need_bytes: int, *, touch: bool) -> tuple[Control, str]:
        quiet = self._write_back()
        if touch:
            # Make at least the memory of the control measurement ready, because otherwise that memory might be slow.
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
        """Sync the file system and wait until other processes' data are written. Return False if that takes too
        long."""
        linux.sync_file_system(self._folder)
        deadline = now_ns() + int(WRITE_BACK_LIMIT_S * 1e9)
        while linux.unwritten_bytes() > UNWRITTEN_LIMIT_BYTES:
            if now_ns() > deadline:
                return False
            pause(0.02)
        return True

    def _control(self) -> Control:
        path = self._folder / "control"
        # Write one small block many times. With 64 MB of source memory, page faults would be timed instead of writing.
        written = 0
        try:
            started = now_ns()
            with path.open("wb", buffering=0) as stream, linux.anonymous_memory(BLOCK_BYTES) as block:
                while written < CONTROL_BYTES and (size := stream.write(block)):
                    written += size
            write_ns = now_ns() - started
        except OSError as error:
            # The error of a failed write lacks the file name.
            raise OSError(error.errno, f"the 64 MB control: {error.strerror}", str(path)) from error
        finally:
            path.unlink(missing_ok=True)
        if written < CONTROL_BYTES:
            raise OSError(errno.ENOSPC, "no space for the 64 MB control", str(path))
        return Control(write_ns, _touch_ns(CONTROL_BYTES))
