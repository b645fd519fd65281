"""Bring the machine to rest before every sample, and check the result with a small control measurement (rule 1).

The machine is at rest if the data of earlier samples are written to the device, and if free memory is *ready*. Memory
is ready if the host of a virtual machine has already provided it, so that its next use is fast. Bringing the machine to
rest is the last step in the worker before freeing memory and timing, because the state does not last. A virtual machine
returns free memory to its host every few seconds. Writing 192 MB to the page cache took 54 to 66 ms with ready memory,
and 400 to 800 ms otherwise. Of 10 writes each, 10 were fast directly after making memory ready, 9 after 0.3 s, 6 after
1 s, and none after 3 s.

Memory is made ready by touching it, that is by writing to it once. Virtual machines return memory in huge pages, so
memory is touched in huge pages. If the host never reclaims memory, touching has no use. `examine` finds out whether the
host reclaims memory, and the control measurements show if that finding was wrong.

A control measurement is a 64 MB write and a 64 MB allocation. It detects two states that are not directly visible:
write-back of earlier samples, and memory that is not ready.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bench_runner.clock import now_ns, pause
from bench_runner.machine import linux

CONTROL_BYTES = 64 * 1024 * 1024
"""Number of bytes that the control measurement writes. The control measurement also touches (writes to) the same amount
of new memory (rule 1)."""
BLOCK_BYTES = 1024 * 1024
"""Size of the block that the control measurement writes repeatedly (rule 1)."""
UNWRITTEN_LIMIT_BYTES = 16 * 1000 * 1000
"""Largest number of bytes in the page cache that are not yet written to the device when a sample starts (rule 1)."""
WRITE_BACK_LIMIT_S = 30.0
"""Longest wait, in seconds, until the page cache is written to the device (rule 1)."""
TRIES = 3
"""Number of attempts to bring the machine to rest. If all attempts fail, the sample is taken anyway, but does not count
in results (rule 1)."""
READY_BYTES = 900 * 1000 * 1000
"""Number of bytes of memory that are made ready without checking whether they stay ready (rule 1). One virtual machine
kept about 1 GiB of free memory and returned the rest to its host before the memory could be used. On that machine,
touching 900 MB took 0.2 s. Touching 3 GB took 7 s, and touching the same 3 GB again took as long."""
READY_STEP = 1.5
"""If a sample needs more memory than is known to stay ready, larger amounts are tried. Each is larger than the one
before by this factor (rule 1)."""
SLOW_FACTOR = 1.5
"""The machine is not at rest if a control measurement takes more than this factor times the run's shortest time (rule
1). Of 160 control measurements of a machine at rest, about 2 % took longer (docs/method.md)."""
CALIBRATIONS = 5
"""Number of control measurements before the first sample, which determine the run's shortest times (rule 1)."""
EXAMINED_BYTES = 256 * 1024 * 1024
"""Number of bytes that are touched to examine whether the host reclaims memory (rule 1)."""
GAIN_FACTOR = 1.5
"""Memory is touched twice in a row. If the first touch takes more than this factor times as long as the second, the
host had reclaimed the memory before (rule 1)."""


@dataclass(frozen=True)
class Control:
    """Duration of the 64 MB write and of the 64 MB allocation of a control measurement."""

    write_ns: int
    allocate_ns: int


@dataclass(frozen=True)
class Rest:
    """The state of the machine in which a sample starts, and the time and number of attempts needed to reach it."""

    control: Control
    settled: bool
    settle_ns: int
    why_not: str = ""
    tries: int = 1


@dataclass(frozen=True)
class Readiness:
    """Whether memory is made ready (touched) before every sample, and the reason. `most_bytes` is the largest amount
    that is known to stay ready. No more memory than this is made ready."""

    touches: bool
    why: str
    most_bytes: int = READY_BYTES


ALWAYS = Readiness(True, "not examined; touching does no harm")


def examine(leave_alone: Callable[[], object], usable_bytes: int) -> Readiness:
    """Find out whether this machine's host reclaims unused memory, so that memory must be made ready before samples.

    The function touches an amount of memory twice. Then it calls `leave_alone`, which does other work for some seconds,
    and touches the same amount again. The returned `most_bytes` is at most half of `usable_bytes`, but at least as much
    as the control measurement uses.
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
    """Brings the file system of a working folder and the machine's memory to rest, and stores the shortest times of the
    control measurements. The runner has one settler for each working folder. Each worker process creates its own
    settler from the shortest times of the runner's settler."""

    def __init__(self, folder: Path, best: Control | None = None, readiness: Readiness = ALWAYS) -> None:
        """`folder` is on the file system to bring to rest. Control measurements write their file in `folder`."""
        self._folder = folder
        self.best = best
        self.readiness = readiness
        self._keeps_no_more = False

    def calibrate(self) -> None:
        """Take the control measurements before the first sample, which determine the shortest times."""
        for _ in range(CALIBRATIONS):
            self.settle(0)

    def learn(self, control: Control) -> None:
        """Lower the shortest time for writing, or for allocating memory, if this control measurement took less time."""
        best = self.best or control
        self.best = Control(min(best.write_ns, control.write_ns), min(best.allocate_ns, control.allocate_ns))

    def learn_from(self, rest: Rest) -> None:
        """Update the settler with the state in which a worker's sample started. If a control measurement was slow until
        memory was touched, the host reclaims memory, even if `examine` found that it does not."""
        self.learn(rest.control)
        if not self.readiness.touches and rest.settled and rest.tries > 1:
            self.readiness = Readiness(True, "a control was slow, and fast again after touching memory")

    def examine_more(self, need_bytes: int, usable_bytes: Callable[[], int]) -> None:
        """If a sample needs more memory than is known to stay ready, find out whether a larger amount stays ready.

        Each amount is touched repeatedly. A larger amount stays ready if touching it again takes about as long per byte
        as touching the known amount again. `usable_bytes` returns the memory that the process may use; at most half of
        it is touched.
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
        """Wait until the machine is at rest, in at most three attempts, and return its state. `need_bytes` is the
        expected memory use of the sample, including its page cache. Raises OSError if the file of the control
        measurement cannot be written, for example on a full disk."""
        started = now_ns()
        for times in range(1, TRIES + 1):
            control, why_not = self._try(times * need_bytes, touch=self.readiness.touches or times > 1)
            if not why_not:
                break
        return Rest(control, not why_not, now_ns() - started, why_not, times)

    def _try(self, need_bytes: int, *, touch: bool) -> tuple[Control, str]:
        quiet = self._write_back()
        if touch:
            # Make at least as much memory ready as the control measurement uses. Otherwise it might be slow.
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
        """Sync the file system and wait until the data of other processes are written too. Return False if this takes
        too long."""
        linux.sync_file_system(self._folder)
        deadline = now_ns() + int(WRITE_BACK_LIMIT_S * 1e9)
        while linux.unwritten_bytes() > UNWRITTEN_LIMIT_BYTES:
            if now_ns() > deadline:
                return False
            pause(0.02)
        return True

    def _control(self) -> Control:
        path = self._folder / "control"
        # Write one small block many times. With a source of 64 MB, page faults would be timed in addition to writing.
        written = 0
        try:
            started = now_ns()
            with path.open("wb", buffering=0) as stream, linux.anonymous_memory(BLOCK_BYTES) as block:
                while written < CONTROL_BYTES and (size := stream.write(block)):
                    written += size
            write_ns = now_ns() - started
        except OSError as error:
            # The error of a failed write lacks the file name.
            raise OSError(
                error.errno, f"the control measurement cannot write its 64 MB: {error.strerror}", str(path)
            ) from error
        finally:
            path.unlink(missing_ok=True)
        if written < CONTROL_BYTES:
            raise OSError(errno.ENOSPC, "no space for the 64 MB of the control measurement", str(path))
        return Control(write_ns, _touch_ns(CONTROL_BYTES))
