"""Predictions of time, memory and disk at full size from the pilot round, before a counted round is spent.

Predictions scale the figures of few rows linearly. They are too high rather than too low, because fixed costs of a call
are scaled too. They decide the order, the number of rounds and what cannot run here, and are never shown as figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bench_runner.results.records import Sample

PILOT_ROWS = 20_000
"""Most rows of the pilot round; smaller tables use a fifth of theirs (rule 15)."""
PILOT_BYTES = 16_000_000
"""Most bytes of the pilot round for large rows, such as images (rule 15)."""
SMALL_ROWS, SMALL_BYTES = 50_000, 16_000_000
"""A data set of at most both sizes has no pilot round, because its first counted round takes no longer (rule 15)."""
QUICK_BYTES = 50_000_000
"""Replaces SMALL_BYTES in a run of one quick round, where a pilot round would be half of the run (rule 15)."""
FAST_NS, SLOW_NS, VERY_SLOW_NS = 10**9, 10 * 10**9, 60 * 10**9
"""An operation predicted to take at most 1 s is fast; over 10 s it is slow and comes last in a round, over 60 s very
slow (rule 15)."""
FAST_ROUNDS, ROUNDS, SLOW_ROUNDS, VERY_SLOW_ROUNDS = 9, 7, 3, 1
"""Counted rounds of a fast cell, of a usual one, of a slow one, and of a very slow one (rule 15)."""
UNPILOTED_NEED = 10
"""Memory made ready without a pilot round, as a multiple of the data (rule 1)."""
MEMORY_SHARE = 0.8
"""Share of the available memory beyond which a predicted need means that the chain is not run (rule 5)."""


@dataclass(frozen=True)
class Prediction:
    """The predicted need of one execution of a chain at full size: the time of each operation that passed, in ns."""

    walls_ns: Mapping[str, int]
    peak_bytes: int
    size_bytes: int
    piloted: bool = True
    """Whether it is based on a pilot round; else times are from elsewhere, or 0 if unknown."""

    @property
    def slowest_ns(self) -> int:
        """Time of its slowest operation."""
        return max(self.walls_ns.values(), default=0)

    @property
    def total_ns(self) -> int:
        """Time of all of its operations."""
        return sum(self.walls_ns.values())

    @property
    def is_slow(self) -> bool:
        """Whether it is in the last block of each round."""
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
    """Return the rows (or images) of round 0 for a data set of that size: 20,000, a fifth of a small one, 16 MB of
    large rows; at least one."""
    fitting = max(1, PILOT_BYTES * rows // max(size_bytes, 1))
    return min(rows, PILOT_ROWS, max(1_000, rows // 5), fitting)


def is_small(rows: int, size_bytes: int, *, quick: bool = False) -> bool:
    """Return whether a counted round on the data set costs no more than a pilot round on others. `quick`: it is the
    only round."""
    return rows <= SMALL_ROWS and size_bytes <= (QUICK_BYTES if quick else SMALL_BYTES)


def without_pilot(walls_ns: Mapping[str, int], size_bytes: int) -> Prediction:
    """Return the prediction for a table too small for a pilot round: known times, and memory for several times the
    data."""
    return Prediction(walls_ns, peak_bytes=UNPILOTED_NEED * size_bytes, size_bytes=size_bytes, piloted=False)


def seen(prediction: Prediction, samples: Sequence[Sample]) -> Prediction:
    """Return a prediction made without a pilot round with the times of a counted round instead of guesses."""
    if prediction.piloted:
        return prediction
    shown = {name: wall_ns for name, wall_ns in _walls_ns(samples).items() if name in prediction.walls_ns}
    return replace(prediction, walls_ns={**prediction.walls_ns, **shown})


def used_bytes(samples: Sequence[Sample]) -> int:
    """Return the largest memory and page cache that one of these samples used; 0 if none has figures."""
    return max(
        (
            max(sample.figures.get(name, 0) for name in ("peak_private_bytes", "peak_rss_bytes"))
            + sample.figures.get("allocated_bytes", sample.figures.get("resident_before_bytes", 0))
            for sample in samples
        ),
        default=0,
    )


def predict(samples: Sequence[Sample], rows: int) -> Prediction:
    """Scale one execution of a chain, with these samples, to `rows` rows."""
    scale = rows / max(samples[0].rows, 1)
    return Prediction(
        walls_ns={operation: int(wall_ns * scale) for operation, wall_ns in _walls_ns(samples).items()},
        peak_bytes=int(max(sample.figures.get("peak_private_bytes", 0) for sample in samples) * scale),
        size_bytes=int(max(sample.figures.get("allocated_bytes", 0) for sample in samples) * scale),
    )


def _walls_ns(samples: Sequence[Sample]) -> dict[str, int]:
    """Return the time of the call and of the sync after it, for samples with figures."""
    return {
        sample.operation: _timed_ns(sample.figures) + sample.figures.get("sync_ns", 0)
        for sample in samples
        if "wall_ns" in sample.figures
    }


def _timed_ns(figures: Mapping[str, int]) -> int:
    """Return the time of both epochs of a training loop, which grow with the rows, unlike a batch of it."""
    return figures["calls_ns"] if "epoch_rows" in figures else figures["wall_ns"]
