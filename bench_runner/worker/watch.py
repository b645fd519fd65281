"""What a worker has before the clock and after it: memory, bytes moved, processes started."""

from __future__ import annotations

import gc

from bench_runner.machine import linux
from bench_runner.machine.process_tree import started_cpu_ns, started_memory, total
from bench_runner.worker.messages import Measured
from bench_runner.worker.settle import Rest


class Watch:
    """What the process had before the clock, and has after it: memory, bytes moved, processes started."""

    def __init__(self) -> None:
        """Look at everything; the last thing before the clock."""
        # First, so that looking at other processes takes no memory between the reset and the clock.
        self._started_cpu_ns, self._started = started_cpu_ns(), started_memory()
        linux.reset_high_water()
        self._high_water_bytes = linux.high_water_bytes()
        self._before = linux.own_memory()
        self.moved = linux.io_bytes()
        self._collections = _full_collections()

    def stop(self) -> None:
        """The first thing after the clock."""
        self.at_end = linux.own_memory()
        self._peak_bytes = linux.high_water_bytes()
        self._collected = _full_collections() > self._collections

    def started_cpu_ns(self) -> int:
        """CPU time of what the library has started. Never before the worker's own figures, which must be the same
        whether anything was started or not."""
        return max(started_cpu_ns() - self._started_cpu_ns, 0)

    def measured(self, rest: Rest, started_ns: int, *, thorough: bool) -> Measured:
        """What was seen from here; `thorough`: all garbage was collected before the clock."""
        before, at_end = total((self._before, self._started)), total((self.at_end, started_memory()))
        return Measured(
            started_ns=started_ns,
            private_before_bytes=before.private_bytes,
            private_end_bytes=at_end.private_bytes,
            resident_before_bytes=before.resident_bytes,
            rest=rest,
            collected=self._collected and not thorough,
            figures={"peak_rss_bytes": max(self._peak_bytes - self._high_water_bytes, 0)},
        )


def _full_collections() -> int:
    return int(gc.get_stats()[2]["collections"])
