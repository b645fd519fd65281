"""Observe services from outside while a sample's clock runs: CPU time, memory, device reads, bytes on the wire.

By rule 20 of the method, services have separate figures. The worker is confined and cannot observe them, so it signals
that its clock is about to begin or has ended, and waits until they were read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench_runner.machine import linux
from bench_runner.machine.linux import MemoryLevel
from bench_runner.machine.process_tree import ProcessTree, cpu_of_ns, total
from bench_runner.run.services.proxy import passed_bytes

FIGURES = ("node_cpu_ns", "node_device_bytes", "wire_bytes")
"""Totals between the two readings; for a block of calls they are divided by their number."""


def per_call(figures: Mapping[str, int], calls: int) -> dict[str, int]:
    """Return the figures of one call of a block: totals are divided by `calls`, memory is not."""
    return {name: value // calls if name in FIGURES else value for name, value in figures.items()}


def is_fetched_anew(figures: Mapping[str, int], held_bytes: int) -> bool:
    """Return whether a call of a service had more on the wire than its client holds (rule 19).

    Then it did not answer from what it holds, which must be buffers of its connection. `figures` are of one call.
    Without services, the answer is False.
    """
    return "wire_bytes" in figures and figures["wire_bytes"] > held_bytes


class ServiceMonitor:
    """Observes processes and their child processes from the beginning of a clock to its end."""

    def __init__(self, processes: Sequence[int], counters: Path | None) -> None:
        """`counters` is the file of a proxy's counts; without one the loopback interface counts, including headers."""
        self._trees = [ProcessTree(process) for process in processes]
        self._readers = [linux.MemoryReader(process) for process in processes]
        self._processes, self._counters = tuple(processes), counters
        self._before: dict[str, int] = {}
        self._level = self._highest = 0
        self.figures: dict[str, int] = {}
        """Empty until the clock has ended."""
        self.device_bytes = 0
        """Bytes read from devices while the clock ran, over all calls; earlier reads prove nothing."""

    @property
    def running(self) -> bool:
        """Whether the clock has begun and not ended."""
        return bool(self._before) and not self.figures

    def begin(self) -> None:
        """Take the first reading, just before the clock begins."""
        self._level = self._highest = self.private_bytes()
        self._before = self._sums()

    def end(self) -> None:
        """Take the last reading and compute the figures, after the clock has ended."""
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
        """Return the private memory of all processes now."""
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
