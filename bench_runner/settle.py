"""Rule 1: bring the machine to rest before every sample, and prove it with a small control.

The control (a 64 MB write, a 64 MB allocation) tells what a storage benchmark cannot see from inside: write-back of
earlier samples, and memory that the host of a virtual machine has not backed. This module knows nothing of samples
but the control's figures, which are stored with each.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path

from bench_runner import linux
from bench_runner.clock import now_ns, pause

CONTROL_BYTES = 64 * 1024 * 1024
UNWRITTEN_LIMIT_BYTES = 16 * 1000 * 1000
WRITE_BACK_LIMIT_S = 30.0
TRIES = 3
PAUSE_S = 0.5
SLOW_FACTOR = 1.3
"""A control this many times slower than the run's best means that the machine is not at rest."""


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


class Settler:
    """Brings one working folder's file system and the machine's memory to rest; remembers the run's best control."""

    def __init__(self, folder: Path) -> None:
        """`folder` is the working folder: controls are written to its file system."""
        self._folder = folder
        self._block = bytes(CONTROL_BYTES)
        self.best: Control | None = None

    def settle(self, need_bytes: int) -> Rest:
        """Wait until the machine is at rest, at most three tries; `need_bytes` is what the sample is expected to use.

        Raises OSError when the control cannot be written, as on a full disk.
        """
        started = now_ns()
        control, why_not = self._try()
        for retry in range(TRIES - 1):
            if not why_not:
                break
            if retry == 0 and not self._memory_is_slow(control):
                # Whatever slowed the write alone is rather gone in a moment than cured by half a minute of touching.
                pause(PAUSE_S)
            else:
                # On a virtual machine pages that the host has not backed are slow at their first touch only.
                linux.touch_memory(min(2 * need_bytes + CONTROL_BYTES, linux.available_bytes() // 2))
            control, why_not = self._try()
        return Rest(control, not why_not, now_ns() - started, why_not)

    def _memory_is_slow(self, control: Control) -> bool:
        return self.best is not None and control.allocate_ns > SLOW_FACTOR * self.best.allocate_ns

    def _try(self) -> tuple[Control, str]:
        quiet = self._write_back()
        control = self._control()
        best = self.best or control
        self.best = Control(min(best.write_ns, control.write_ns), min(best.allocate_ns, control.allocate_ns))
        if not quiet:
            return (
                control,
                f"over {UNWRITTEN_LIMIT_BYTES // 10**6} MB were still unwritten after {WRITE_BACK_LIMIT_S:.0f} s",
            )
        if control.write_ns > SLOW_FACTOR * self.best.write_ns:
            return control, f"a 64 MB write took {control.write_ns / self.best.write_ns:.1f} times the run's best"
        if self._memory_is_slow(control):
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
        try:
            started = now_ns()
            with path.open("wb", buffering=0) as stream:
                written = stream.write(self._block)
            write_ns = now_ns() - started
        finally:
            path.unlink(missing_ok=True)
        if written != CONTROL_BYTES:
            raise OSError(errno.ENOSPC, "no space for the 64 MB control", str(path))
        started = now_ns()
        linux.touch_memory(CONTROL_BYTES)
        return Control(write_ns, now_ns() - started)
