"""Measure the CPU time, memory, device reads and network bytes of service processes during the measured time.

Services are servers from which a worker reads a stored copy. The figures of services are separate from the figures of
the worker. The worker runs in a sandbox and cannot observe services itself. So the worker signals before the measured
time begins and after it has ended, and each time waits until the launcher has observed the services.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench_runner.machine import linux
from bench_runner.machine.linux import MemoryLevel
from bench_runner.machine.process_tree import ProcessTree, cpu_of_ns, total
from bench_runner.run.services.proxy import passed_bytes

FIGURES = ("node_cpu_ns", "node_device_bytes", "wire_bytes")
"""Figures that are totals over the measured time. If a call was repeated, these totals are divided by the number of
calls."""


def per_call(figures: Mapping[str, int], calls: int) -> dict[str, int]:
    """Return the figures of one call if `calls` calls were measured together. Totals are divided by `calls`, but memory
    is not."""
    return {name: value // calls if name in FIGURES else value for name, value in figures.items()}


def is_fetched_anew(figures: Mapping[str, int], held_bytes: int) -> bool:
    """Return whether a call to a service transferred more bytes than the client holds in memory, `held_bytes` (rule
    19).

    If so, the client has fetched the data from the service and not from the client's own memory. `figures` are the
    figures of one call. Return False if there are no services.
    """
    return "wire_bytes" in figures and figures["wire_bytes"] > held_bytes


class ServiceMonitor:
    """Observes processes and their child processes during the measured time."""

    def __init__(self, processes: Sequence[int], counters: Path | None) -> None:
        """`counters` is the file with a proxy's byte counts. With None, the loopback interface's counts are used, which
        include headers."""
        self._trees = [ProcessTree(process) for process in processes]
        self._readers = [linux.MemoryReader(process) for process in processes]
        self._processes, self._counters = tuple(processes), counters
        self._before: dict[str, int] = {}
        self._level = self._highest = 0
        self.figures: dict[str, int] = {}
        """The figures, empty until the measured time has ended."""
        self.device_bytes = 0
        """Bytes that the services read from devices during the measured time, over all calls."""

    @property
    def running(self) -> bool:
        """Whether the measured time has begun and not ended."""
        return bool(self._before) and not self.figures

    def begin(self) -> None:
        """Take the first reading, just before the measured time begins."""
        self._level = self._highest = self.private_bytes()
        self._before = self._sums()

    def end(self) -> None:
        """Take the last reading, after the measured time has ended, and compute the figures."""
        sums = self._sums()
        self._highest = max(self._highest, self.private_bytes())
        passed = {name: max(sums[name] - self._before[name], 0) for name in FIGURES}
        self.device_bytes = passed["node_device_bytes"]
        self.figures = {
            **passed,
            "node_memory_bytes": self._level,
            "node_peak_memory_bytes": self._highest - self._level,
        }

    def private_bytes(self) -> int:
        """Return the current private memory of all processes."""
        levels: list[MemoryLevel] = [level for reader in self._readers if (level := reader.read()) is not None]
        for tree in self._trees:
            tree.look()
            levels.append(tree.memory())
        private_bytes = total(levels).private_bytes
        if self.running:
            self._highest = max(self._highest, private_bytes)
        return private_bytes

    def close(self) -> None:
        """Close open files."""
        for tree in self._trees:
            tree.close()
        for reader in self._readers:
            reader.close()

    def _sums(self) -> dict[str, int]:
        wire_bytes = passed_bytes(self._counters) if self._counters else linux.loopback_bytes()
        cpu_ns = sum(map(cpu_of_ns, self._processes))
        return dict(zip(FIGURES, (cpu_ns, self._read_bytes(), wire_bytes), strict=True))

    def _read_bytes(self) -> int:
        return sum(linux.io_bytes(process).device_read for process in self._processes)
