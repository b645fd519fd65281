"""Counters of a worker process before and after timing: memory, bytes read and written, and started processes."""

from __future__ import annotations

import gc

from bench_runner.machine import linux
from bench_runner.machine.process_tree import started_cpu_ns, started_memory, total, tree_io_bytes
from bench_runner.worker.messages import Measured
from bench_runner.worker.settle import Rest


class Watch:
    """Counters of this process before and after timing: memory, bytes read and written, and started processes."""

    def __init__(self) -> None:
        """Read the counters. Create this object as the last step before timing."""
        # Read the counters of started processes first, because reading them allocates memory, which must not happen
        # between resetting the memory peak and the start of timing.
        self._started_cpu_ns, self._started = started_cpu_ns(), started_memory()
        linux.reset_high_water()
        self._high_water_bytes = linux.high_water_bytes()
        self._before = linux.own_memory()
        self.moved = tree_io_bytes()
        self._collections = _full_collections()

    def stop(self) -> None:
        """Read the counters again. Call this as the first step after timing."""
        self.at_end = linux.own_memory()
        self._peak_bytes = linux.high_water_bytes()
        self._collected = _full_collections() > self._collections

    def started_cpu_ns(self) -> int:
        """Return the CPU time, since the start, of processes that the library started. Call this only after `stop`,
        because the call would otherwise change the worker's own figures."""
        return max(started_cpu_ns() - self._started_cpu_ns, 0)

    def measured(self, rest: Rest, started_ns: int, *, thorough: bool) -> Measured:
        """Return a message with the figures computed from the counters. `thorough` is whether all garbage was collected
        before timing."""
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
