"""Predictions of time, memory and disk at full size, made from the pilot round before any counted round.

Predictions scale the figures of few rows linearly. They are rather too high than too low, because the fixed costs of a
call are scaled too. They decide the order, the number of rounds and which chains cannot run here. They are never shown
as figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bench_runner.results.records import Sample

PILOT_ROWS = 20_000
"""Largest number of rows in the pilot round. Smaller tables use a fifth of their rows (rule 15)."""
PILOT_BYTES = 16_000_000
"""Largest number of bytes in the pilot round if rows are large, such as images (rule 15)."""
SMALL_ROWS, SMALL_BYTES = 50_000, 16_000_000
"""A data set that exceeds neither size has no pilot round, because its first counted round takes no longer (rule
15)."""
QUICK_BYTES = 50_000_000
"""Replaces SMALL_BYTES in a quick run of one round, where a pilot round would take half of the run (rule 15)."""
FAST_NS, SLOW_NS, VERY_SLOW_NS = 10**9, 10 * 10**9, 60 * 10**9
"""An operation is fast if its predicted time is at most FAST_NS. Above SLOW_NS it is slow and comes last in a round,
and above VERY_SLOW_NS it is very slow (rule 15)."""
FAST_ROUNDS, ROUNDS, SLOW_ROUNDS, VERY_SLOW_ROUNDS = 9, 7, 3, 1
"""Counted rounds of a cell that is fast, usual, slow or very slow (rule 15)."""
UNPILOTED_NEED = 10
"""Memory made ready if there was no pilot round, as a multiple of the data size (rule 1)."""
MEMORY_SHARE = 0.8
"""A chain is not run if it is predicted to need more than this share of the available memory (rule 5)."""


@dataclass(frozen=True)
class Prediction:
    """The predicted time in ns of each operation that passed, with the memory and disk for one execution at full
    size."""

    walls_ns: Mapping[str, int]
    peak_bytes: int
    size_bytes: int
    piloted: bool = True
    """Whether the prediction is based on a pilot round. Otherwise times are from other runs, or 0 if unknown."""

    @property
    def slowest_ns(self) -> int:
        """Time of the chain's slowest operation."""
        return max(self.walls_ns.values(), default=0)

    @property
    def total_ns(self) -> int:
        """Total time of the chain's operations."""
        return sum(self.walls_ns.values())

    @property
    def is_slow(self) -> bool:
        """Whether the chain is in the last block of each round."""
        return self.slowest_ns > SLOW_NS

    def rounds(self, operations: Iterable[str]) -> int:
        """Return the default number of counted rounds of a cell whose samples need these operations."""
        slowest_ns = max((self.walls_ns.get(operation, 0) for operation in operations), default=0)
        if slowest_ns > VERY_SLOW_NS:
            return VERY_SLOW_ROUNDS
        if slowest_ns > SLOW_NS:
            return SLOW_ROUNDS
        return FAST_ROUNDS if slowest_ns <= FAST_NS else ROUNDS


def pilot_rows(rows: int, size_bytes: int) -> int:
    """Return the number of rows (or images) in round 0 for a data set of that size: 20,000, a fifth of a small data
    set, or 16 MB of large rows. The result is at least 1."""
    fitting = max(1, PILOT_BYTES * rows // max(size_bytes, 1))
    return min(rows, PILOT_ROWS, max(1_000, rows // 5), fitting)


def is_small(rows: int, size_bytes: int, *, quick: bool = False) -> bool:
    """Return whether a counted round on the data set takes no longer than a pilot round on other data. `quick` means
    that it is the only round."""
    return rows <= SMALL_ROWS and size_bytes <= (QUICK_BYTES if quick else SMALL_BYTES)


def without_pilot(walls_ns: Mapping[str, int], size_bytes: int) -> Prediction:
    """Return the prediction for a table too small for a pilot round. It has known times, and several times the data
    size as memory."""
    return Prediction(walls_ns, peak_bytes=UNPILOTED_NEED * size_bytes, size_bytes=size_bytes, piloted=False)


def seen(prediction: Prediction, samples: Sequence[Sample]) -> Prediction:
    """Return a prediction that was made without a pilot round, with its guesses replaced by times of a counted
    round."""
    if prediction.piloted:
        return prediction
    shown = {name: wall_ns for name, wall_ns in _walls_ns(samples).items() if name in prediction.walls_ns}
    return replace(prediction, walls_ns={**prediction.walls_ns, **shown})


def used_bytes(samples: Sequence[Sample]) -> int:
    """Return the largest sum of memory and page cache that one of these samples used; 0 if none has figures."""
    return max(
        (
            max(sample.figures.get(name, 0) for name in ("peak_private_bytes", "peak_rss_bytes"))
            + sample.figures.get("allocated_bytes", sample.figures.get("resident_before_bytes", 0))
            for sample in samples
        ),
        default=0,
    )


def predict(samples: Sequence[Sample], rows: int) -> Prediction:
    """Scale the figures of one execution of a chain to `rows` rows."""
    scale = rows / max(samples[0].rows, 1)
    return Prediction(
        walls_ns={operation: int(wall_ns * scale) for operation, wall_ns in _walls_ns(samples).items()},
        peak_bytes=int(max(sample.figures.get("peak_private_bytes", 0) for sample in samples) * scale),
        size_bytes=int(max(sample.figures.get("allocated_bytes", 0) for sample in samples) * scale),
    )


def _walls_ns(samples: Sequence[Sample]) -> dict[str, int]:
    """Return the time of the call plus the sync after it, for samples with figures."""
    return {
        sample.operation: _timed_ns(sample.figures) + sample.figures.get("sync_ns", 0)
        for sample in samples
        if "wall_ns" in sample.figures
    }


def _timed_ns(figures: Mapping[str, int]) -> int:
    """Return the time of both epochs of a training loop. It grows with the rows, unlike the time of one batch."""
    return figures["calls_ns"] if "epoch_rows" in figures else figures["wall_ns"]
