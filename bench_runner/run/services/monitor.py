"""What services do while a sample's clock runs, seen from outside: their CPU time, memory, device reads, the wire.

Rule 20 of the method: services that are measured have figures of their own. The worker cannot look at them, because it
is confined; so it says when its clock begins and has ended, and waits until that was seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench_runner.machine import linux
from bench_runner.machine.linux import MemoryLevel
from bench_runner.machine.process_tree import ProcessTree, cpu_of_ns, total
from bench_runner.run.services.proxy import passed_bytes

FIGURES = ("node_cpu_ns", "node_device_bytes", "wire_bytes")
"""Of all that was done between the two looks: of a block of calls each is divided by them."""


def per_call(figures: Mapping[str, int], calls: int) -> dict[str, int]:
    """The figures of a block of calls as those of one call: what was done is divided, what was held is not."""
    return {name: value // calls if name in FIGURES else value for name, value in figures.items()}


def is_fetched_anew(figures: Mapping[str, int], held_bytes: int) -> bool:
    """Whether a call of a service had more on the wire than its client holds (rule 19).

    Then it did not answer from that, and what is held are buffers of its connection. `figures` are of one call; where
    no service was asked nothing is said."""
    return "wire_bytes" in figures and figures["wire_bytes"] > held_bytes


class Beside:
    """Looks at some processes, and all that they start, from the begin of a clock to its end."""

    def __init__(self, processes: Sequence[int], counters: Path | None) -> None:
        """`counters` is the file in which a proxy counts; without one the loopback interface does, headers included."""
        self._trees = [ProcessTree(process) for process in processes]
        self._readers = [linux.MemoryReader(process) for process in processes]
        self._processes, self._counters = tuple(processes), counters
        self._before: dict[str, int] = {}
        self._level = self._highest = 0
        self.figures: dict[str, int] = {}
        """Empty until the clock has ended."""
        self.device_bytes = 0
        """What came from devices while the clock ran, of all calls together: what was read before proves nothing."""

    @property
    def running(self) -> bool:
        """Whether the clock has begun and not ended."""
        return bool(self._before) and not self.figures

    def begin(self) -> None:
        """The clock is about to begin."""
        self._level = self._highest = self.private_bytes()
        self._before = self._sums()

    def end(self) -> None:
        """The clock has ended: the figures are known."""
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
        """What all of them hold now."""
        levels: list[MemoryLevel] = [level for reader in self._readers if (level := reader.read()) is not None]
        for tree in self._trees:
            tree.look()
            levels.append(tree.memory())
        private_bytes = total(levels).private_bytes
        if self.running:
            self._highest = max(self._highest, private_bytes)
        return private_bytes

    def close(self) -> None:
        """Close what is kept open."""
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
