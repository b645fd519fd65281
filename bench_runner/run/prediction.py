"""Predict the time, memory and disk space of operations on the whole data. Predictions are based on figures of the same
operations on few rows, which the pilot round measures.

The figures of few rows are scaled linearly. Predictions tend to be too high, because the fixed costs of a call are
scaled too. Predictions decide the order of chains, the number of rounds, and which chains this machine cannot run.
Predictions are never shown as results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bench_runner.results.records import Sample

PILOT_ROWS = 20_000
"""Largest number of rows in the pilot round. Smaller tables use a fifth of their rows (rule 15)."""
PILOT_BYTES = 16_000_000
"""Largest size of the data of the pilot round. This limit matters only if rows are large, such as images (rule 15)."""
SMALL_ROWS, SMALL_BYTES = 50_000, 16_000_000
"""A data set has no pilot round if it has at most SMALL_ROWS rows and at most SMALL_BYTES bytes, because its first
round takes no longer than a pilot round (rule 15)."""
QUICK_BYTES = 50_000_000
"""Used instead of SMALL_BYTES in a quick run. A quick run has one round, so a pilot round could take half of its time
(rule 15)."""
FAST_NS, SLOW_NS, VERY_SLOW_NS = 10**9, 10 * 10**9, 60 * 10**9
"""An operation is fast if its predicted time is at most FAST_NS. Above SLOW_NS the operation is slow, and comes last in
a round. Above VERY_SLOW_NS it is very slow (rule 15)."""
FAST_ROUNDS, ROUNDS, SLOW_ROUNDS, VERY_SLOW_ROUNDS = 9, 7, 3, 1
"""Counted rounds of a cell that is fast, usual, slow or very slow (rule 15)."""
UNPILOTED_NEED = 10
"""Expected memory of an operation without a pilot round, as a multiple of the data size (rule 1)."""
CHAIN_MEMORY_SHARE = 0.8
"""A chain is not run if it is predicted to need more than this share of the available memory (rule 5)."""


@dataclass(frozen=True)
class Prediction:
    """The predicted time in ns of each operation of a chain, and the memory and disk space of the chain, for one
    execution on the whole data. Operations that failed on few rows have no time."""

    walls_ns: Mapping[str, int]
    peak_bytes: int
    size_bytes: int
    piloted: bool = True
    """Whether the prediction is based on a pilot round. Otherwise times are from other runs, or 0 if unknown."""

    @property
    def slowest_ns(self) -> int:
        """Predicted time of the chain's slowest operation in ns."""
        return max(self.walls_ns.values(), default=0)

    @property
    def total_ns(self) -> int:
        """Total predicted time of the chain's operations in ns."""
        return sum(self.walls_ns.values())

    @property
    def is_slow(self) -> bool:
        """Whether the chain is slow. Slow chains come last in each round."""
        return self.slowest_ns > SLOW_NS

    def rounds(self, operations: Iterable[str]) -> int:
        """Return the default number of rounds for measuring these operations together. The slowest operation
        decides."""
        slowest_ns = max((self.walls_ns.get(operation, 0) for operation in operations), default=0)
        if slowest_ns > VERY_SLOW_NS:
            return VERY_SLOW_ROUNDS
        if slowest_ns > SLOW_NS:
            return SLOW_ROUNDS
        return FAST_ROUNDS if slowest_ns <= FAST_NS else ROUNDS


def pilot_rows(rows: int, size_bytes: int) -> int:
    """Return the number of rows (or images) of the pilot round for a data set of `rows` rows and `size_bytes` bytes.
    The result is the smallest of: PILOT_ROWS, a fifth of the rows (but at least 1,000), and the rows that fit into
    PILOT_BYTES."""
    fitting = max(1, PILOT_BYTES * rows // max(size_bytes, 1))
    return min(rows, PILOT_ROWS, max(1_000, rows // 5), fitting)


def is_small(rows: int, size_bytes: int, *, quick: bool = False) -> bool:
    """Return whether a data set is so small that it needs no pilot round. `quick` means that the run has only one
    round."""
    return rows <= SMALL_ROWS and size_bytes <= (QUICK_BYTES if quick else SMALL_BYTES)


def without_pilot(walls_ns: Mapping[str, int], size_bytes: int) -> Prediction:
    """Return the prediction for a data set that is too small for a pilot round. `walls_ns` are times that are known
    from earlier runs. The predicted memory is a multiple of the data size."""
    return Prediction(walls_ns, peak_bytes=UNPILOTED_NEED * size_bytes, size_bytes=size_bytes, piloted=False)


def seen(prediction: Prediction, samples: Sequence[Sample]) -> Prediction:
    """Return the prediction with its times replaced by the times of `samples`. Return a prediction from a pilot round
    unchanged."""
    if prediction.piloted:
        return prediction
    shown = {name: wall_ns for name, wall_ns in _walls_ns(samples).items() if name in prediction.walls_ns}
    return replace(prediction, walls_ns={**prediction.walls_ns, **shown})


def used_bytes(samples: Sequence[Sample]) -> int:
    """Return the largest memory use of a sample in bytes, including page cache. Return 0 if no sample has figures."""
    return max(
        (
            max(sample.figures.get(name, 0) for name in ("peak_private_bytes", "peak_rss_bytes"))
            + sample.figures.get("allocated_bytes", sample.figures.get("resident_before_bytes", 0))
            for sample in samples
        ),
        default=0,
    )


def predict(samples: Sequence[Sample], rows: int) -> Prediction:
    """Return the prediction for `rows` rows, scaled from the samples of one execution of a chain."""
    scale = rows / max(samples[0].rows, 1)
    return Prediction(
        walls_ns={operation: int(wall_ns * scale) for operation, wall_ns in _walls_ns(samples).items()},
        peak_bytes=int(max(sample.figures.get("peak_private_bytes", 0) for sample in samples) * scale),
        size_bytes=int(max(sample.figures.get("allocated_bytes", 0) for sample in samples) * scale),
    )


def _walls_ns(samples: Sequence[Sample]) -> dict[str, int]:
    """Return the time of each operation in ns, including the sync after the call. Samples without a time are
    ignored."""
    return {
        sample.operation: _timed_ns(sample.figures) + sample.figures.get("sync_ns", 0)
        for sample in samples
        if "wall_ns" in sample.figures
    }


def _timed_ns(figures: Mapping[str, int]) -> int:
    """Return the measured time in ns. For a training loop, return the time of both epochs, because the time of a single
    batch does not grow with the number of rows of the table."""
    return figures["calls_ns"] if "epoch_rows" in figures else figures["wall_ns"]
