"""The size of a table that is stored in memory, and the times to save and read it.

These costs only decide which variants are measured. No report shows them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from adapters.losses import Loss
from bench_runner.clock import now_ns
from bench_runner.operations.targets import Target
from bench_runner.worker import verify
from format_bench.errors import ConversionError

READS = 3
"""Number of times that a copy is read. The fastest of these readings counts, because other programs can only slow a
reading down."""


@dataclass(frozen=True)
class Costs:
    """Size in bytes and times in ns."""

    size: float = 0.0
    read: float = 0.0
    save: float = 0.0

    def __add__(self, other: Costs) -> Costs:
        return Costs(self.size + other.size, self.read + other.read, self.save + other.save)

    def __sub__(self, other: Costs) -> Costs:
        return Costs(self.size - other.size, self.read - other.read, self.save - other.save)

    def __mul__(self, factor: float) -> Costs:
        return Costs(self.size * factor, self.read * factor, self.save * factor)

    @classmethod
    def sum(cls, several: Iterable[Costs]) -> Costs:
        """Return the sum of several costs."""
        total = cls()
        for each in several:
            total += each
        return total


@dataclass(frozen=True)
class Objective:
    """What is minimized: a weighted mean of the logarithms of three ratios. The ratios are size, read time and save
    time, each divided by its value in `usual`.

    `weights` has the weights of 'size', 'read' and 'save'.
    """

    weights: Mapping[str, float]
    usual: Costs

    def of(self, costs: Costs) -> float:
        """Return the logarithm of the score of these costs. It is 0 for the costs `usual`; lower is better."""
        total = sum(self.weights.values())
        return sum(
            weight / total * math.log(max(getattr(costs, name), 1e-9) / max(getattr(self.usual, name), 1e-9))
            for name, weight in self.weights.items()
        )


def measured(
    table: pa.Table,
    save: Callable[[pa.Table], pa.Buffer],
    read: Callable[[pa.Buffer], pa.Table],
    losses: Sequence[Loss],
) -> Costs:
    """Store the table, read it READS times, and return the costs. Raises ConversionError if the table that is read
    differs in more than the declared `losses`. A table without rows is not compared: its categories are not stored."""
    began_ns = now_ns()
    stored = save(table)
    save_ns = now_ns() - began_ns
    read_ns = math.inf
    for _ in range(READS):
        began_ns = now_ns()
        got = read(stored)
        read_ns = min(read_ns, now_ns() - began_ns)
    problems = verify.compare(table, got, Target(kind="arrow"), losses).problems if table.num_rows else ()
    if problems:
        raise ConversionError(f"A trial copy differs from the table: {'; '.join(problems[:3])}.", "Report this bug.")
    return Costs(stored.size, read_ns, save_ns)
