"""What the pilot round says of the full size: time, memory and disk, before a counted round is spent.

Predictions are straight lines through what few rows took. They err on the high side, because the fixed cost of a call
is scaled too; they decide order, number of rounds and what cannot run here, and are never shown as figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bench_runner.results.records import Sample

PILOT_ROWS = 20_000
"""The pilot round uses so many rows, of smaller tables a fifth (rule 15)."""
PILOT_BYTES = 16_000_000
"""The pilot round uses no more than this of rows that are large, such as images (rule 15)."""
SMALL_ROWS, SMALL_BYTES = 50_000, 16_000_000
"""A data set of at most both has no pilot round, because its first counted round is as quick (rule 15)."""
QUICK_BYTES = 50_000_000
"""In place of the bytes where one quick round is asked for, of which a pilot round would be half (rule 15)."""
DEAR_NS, VERY_DEAR_NS = 10 * 10**9, 60 * 10**9
"""An operation that is predicted to take longer is dear, or very dear; dear ones are last in a round (rule 15)."""
ROUNDS, DEAR_ROUNDS, VERY_DEAR_ROUNDS = 7, 3, 1
"""Counted rounds of a cell, of a dear one, and of a very dear one (rule 15)."""
UNPILOTED_NEED = 10
"""Memory is made ready for so many times the data where nothing had a pilot round (rule 1)."""
MEMORY_SHARE = 0.8
"""What is predicted to need more than this share of the available memory is not run (rule 5)."""


@dataclass(frozen=True)
class Prediction:
    """What one execution of a chain at full size will need: the time of each operation that passed, in ns."""

    walls_ns: Mapping[str, int]
    peak_bytes: int
    size_bytes: int
    piloted: bool = True
    """Whether it was measured in a pilot round; else its times are what is known from elsewhere, 0 where nothing is."""

    @property
    def slowest_ns(self) -> int:
        """Its slowest operation."""
        return max(self.walls_ns.values(), default=0)

    @property
    def total_ns(self) -> int:
        """All of its operations."""
        return sum(self.walls_ns.values())

    @property
    def dear(self) -> bool:
        """Whether it comes in the last block of each round."""
        return self.slowest_ns > DEAR_NS

    def rounds(self, operations: Iterable[str]) -> int:
        """How many counted rounds a cell gets, when nobody says otherwise, that needs these operations for a sample."""
        slowest_ns = max((self.walls_ns.get(operation, 0) for operation in operations), default=0)
        if slowest_ns > VERY_DEAR_NS:
            return VERY_DEAR_ROUNDS
        return DEAR_ROUNDS if slowest_ns > DEAR_NS else ROUNDS


def pilot_rows(rows: int, size_bytes: int) -> int:
    """How many rows (or images) round 0 uses of a data set of that size: 20,000, a fifth of a small one, 16 MB of
    large rows; at least one."""
    fitting = max(1, PILOT_BYTES * rows // max(size_bytes, 1))
    return min(rows, PILOT_ROWS, max(1_000, rows // 5), fitting)


def is_small(rows: int, size_bytes: int, *, quick: bool = False) -> bool:
    """Whether a counted round on the data set costs no more than a pilot round on others. `quick`: it is the only
    one."""
    return rows <= SMALL_ROWS and size_bytes <= (QUICK_BYTES if quick else SMALL_BYTES)


def without_pilot(walls_ns: Mapping[str, int], size_bytes: int) -> Prediction:
    """For a table so small that nothing has to be measured of it beforehand: what each operation takes as far as it is
    known, and memory for several times the data."""
    return Prediction(walls_ns, peak_bytes=UNPILOTED_NEED * size_bytes, size_bytes=size_bytes, piloted=False)


def seen(prediction: Prediction, samples: Sequence[Sample]) -> Prediction:
    """What was predicted without a pilot round, with the times that a counted round has shown in place of guesses."""
    if prediction.piloted:
        return prediction
    shown = {name: wall_ns for name, wall_ns in _walls_ns(samples).items() if name in prediction.walls_ns}
    return replace(prediction, walls_ns={**prediction.walls_ns, **shown})


def used_bytes(samples: Sequence[Sample]) -> int:
    """Memory and page cache that the dearest of these samples has used; 0 where none has figures."""
    return max(
        (
            max(sample.figures.get(name, 0) for name in ("peak_private_bytes", "peak_rss_bytes"))
            + sample.figures.get("allocated_bytes", sample.figures.get("resident_before_bytes", 0))
            for sample in samples
        ),
        default=0,
    )


def predict(samples: Sequence[Sample], rows: int) -> Prediction:
    """Scale one execution of a chain, of which these samples were measured, to `rows` rows."""
    scale = rows / max(samples[0].rows, 1)
    return Prediction(
        walls_ns={operation: int(wall_ns * scale) for operation, wall_ns in _walls_ns(samples).items()},
        peak_bytes=int(max(sample.figures.get("peak_private_bytes", 0) for sample in samples) * scale),
        size_bytes=int(max(sample.figures.get("allocated_bytes", 0) for sample in samples) * scale),
    )


def _walls_ns(samples: Sequence[Sample]) -> dict[str, int]:
    """Of those that have figures: the call, and the sync behind it."""
    return {
        sample.operation: _timed_ns(sample.figures) + sample.figures.get("sync_ns", 0)
        for sample in samples
        if "wall_ns" in sample.figures
    }


def _timed_ns(figures: Mapping[str, int]) -> int:
    """Of a training loop both epochs, because they grow with the rows, and a batch of it does not."""
    return figures["calls_ns"] if "epoch_rows" in figures else figures["wall_ns"]
