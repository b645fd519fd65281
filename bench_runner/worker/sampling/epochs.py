"""Measure a loader of mini-batches (docs/operations.md).

A sample reads all rows of an open stored copy in batches, and then reads them a second time. Each of these passes is an
epoch. This module times the epochs, checks that each row occurred once in an epoch, and computes how well the rows were
shuffled.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

from adapters.contract import Images
from bench_runner.clock import Laps, now_ns
from bench_runner.machine.process_tree import tree_io_bytes
from bench_runner.operations import Batches, Epoch
from bench_runner.operations.streams import orders, pieces
from bench_runner.operations.streams.batches import STORED, length
from bench_runner.worker.messages import MeasureTask
from bench_runner.worker.phase import PHASE_AFTER, PHASE_CLOCK, PHASE_READY, enter
from bench_runner.worker.prepared import Prepared, distinct_bytes, stored_bytes
from bench_runner.worker.sampling.block import CACHED_SHARE, empty_call_ns
from bench_runner.worker.sampling.sampled import Sampled
from bench_runner.worker.verification import Pair
from bench_runner.worker.verify import Mismatch
from bench_runner.worker.watch import Watch

_PARTS = ("engine_ns", "convert_ns", "touch_ns", "cpu_ns")
GAP_PERCENTILE = 99
"""This percentile of the waiting times between batches is reported as a figure."""


def sample(prepared: Prepared, task: MeasureTask, phase: mmap.mmap) -> Sampled:
    """Return the measurement of two epochs. All batches stay in memory until they are verified. The measured peak
    memory therefore includes all rows, and is not reported as the loader's memory."""
    stage, operation, location = prepared.stage, cast(Batches, prepared.operation), prepared.location
    watched = task.served is not None
    enter(phase, PHASE_READY, watched=watched)
    watch = Watch()
    laps = Laps()

    phase[0] = PHASE_CLOCK
    started = now_ns()
    laps.start()
    source = operation.open(stage, location)
    first = operation.epoch(stage, source, prepared.held[0], laps, started)
    between = tree_io_bytes()
    second = operation.epoch(stage, source, prepared.held[1][: first.rows], laps)
    laps.stop()
    watch.stop()
    enter(phase, PHASE_AFTER, watched=watched)
    laps.parts["cpu_ns"] += watch.started_cpu_ns()
    moved, both = tree_io_bytes(), [first, second]
    source.close()
    asked_bytes = [between.asked_since(watch.moved), moved.asked_since(between)]
    fetched_bytes = moved.device_read - watch.moved.device_read
    measured = watch.measured(prepared.rest, started, thorough=prepared.thorough)
    measured.figures |= {**prepared.first_call} | figures(operation, prepared.held, both, laps.parts, stage.rows)
    measured.figures |= {
        "asked_bytes": per_batch(sum(asked_bytes), operation, both),
        "device_read_bytes": per_batch(fetched_bytes, operation, both),
        "empty_ns": empty_call_ns(second.batches[-1]),
        **distinct_bytes(task, prepared),
    }
    measured.tells_memory = False
    measured.device_bytes_of_all = fetched_bytes
    copy_bytes = stored_bytes(stage, location) * first.rows // max(stage.rows, 1)
    measured.cached = not operation.fallback_in(stage) and is_cached(asked_bytes, both, copy_bytes)
    return Sampled(measured, prepared.held, both)


def figures(
    operation: Batches, asked: Sequence[np.ndarray], epochs: Sequence[Epoch], parts: Mapping[str, int], rows: int
) -> dict[str, int]:
    """Return the figures of a sample by name. Other operations report times and bytes per call; here they are reported
    per batch. A value per batch is the total of both epochs, divided by the rows read, times the rows of a batch.

    `asked` has the row numbers of each epoch in the requested order, `parts` has the total duration of each timed step
    in all epochs, and `rows` is the number of rows of the table. Raises Mismatch if an epoch has no batch.
    """
    for place, epoch in enumerate(epochs, 1):
        if not epoch.batches:
            raise Mismatch(f"epoch {place} returned no batch")
    handed = sum(epoch.rows for epoch in epochs)
    found = {
        "wall_ns": _of_a_batch(sum(epoch.wall_ns for epoch in epochs), operation, handed),
        **{name: _of_a_batch(parts[name], operation, handed) for name in _PARTS},
        "calls_ns": sum(epoch.wall_ns for epoch in epochs),
        "repetitions": sum(len(epoch.batches) for epoch in epochs),
        "first_batch_ns": epochs[0].there_ns[0] - epochs[0].started_ns,
        "epoch_1_ns": epochs[0].wall_ns,
        "epoch_2_ns": epochs[1].wall_ns,
        "epoch_rows": epochs[0].rows,
        "result_bytes": _of_a_batch(_bytes(epochs), operation, handed),
    }
    gaps_ns = [gap for epoch in epochs for gap in epoch.gaps_ns]
    if gaps_ns:
        found["gap_p99_ns"] = int(np.percentile(gaps_ns, GAP_PERCENTILE))
    if orders.can_tell(rows, operation.rows):
        ordered = [numbers[: epoch.rows] for numbers, epoch in zip(asked, epochs, strict=True)]
        for name, measure in (("locality_permille", orders.locality), ("parts_permille", orders.parts)):
            # Take the epoch that is less shuffled.
            found[name] = round(1000 * max(measure(numbers, rows, operation.rows) for numbers in ordered))
    return found


def per_batch(value: int, operation: Batches, epochs: Sequence[Epoch]) -> int:
    """Return the average of `value` per batch, where `value` is a total over all epochs. The average is computed as if
    all batches had the operation's full size."""
    return _of_a_batch(value, operation, sum(epoch.rows for epoch in epochs))


def _of_a_batch(value: int, operation: Batches, handed_rows: int) -> int:
    return value * operation.rows // max(handed_rows, 1)


def _bytes(epochs: Iterable[Epoch]) -> int:
    return sum(_nbytes(batch) for epoch in epochs for batch in epoch.batches)


def _nbytes(batch: Any) -> int:
    if isinstance(batch, Images):
        return sum(array.nbytes for array in batch.arrays)
    return int(batch.nbytes)


def is_cached(asked_bytes: Sequence[int], epochs: Sequence[Epoch], copy_bytes: int) -> bool:
    """Return whether the library kept data of the first epoch in its own memory and used these data in the second epoch
    (rule 19). `copy_bytes` is the stored size of an epoch's rows. If the first epoch requested far fewer bytes than
    it returned and than are stored, return False. The number of requested bytes shows nothing then, for example because
    the file is memory-mapped."""
    first, second = asked_bytes
    return first >= CACHED_SHARE * min(_bytes(epochs[:1]), copy_bytes) and second < CACHED_SHARE * first


# --- check that each row occurred once, and in order ------------------------------------------------------------------


def parts(prepared: Prepared, asked: Sequence[np.ndarray], given: Sequence[Epoch]) -> Sequence[Pair]:
    """Return one Pair for each epoch. The Pair has the epoch's batches joined into one table, and the numbers of the
    expected rows. Raises Mismatch for too few or too many rows, or for batches of a wrong size."""
    operation, columns = cast(Batches, prepared.operation), prepared.stage.schema.names
    found: list[Pair] = []
    for place, (numbers, epoch) in enumerate(zip(asked, given, strict=True), 1):
        wanted = numbers if place == 1 else numbers[: given[0].rows]
        _check(operation, wanted, epoch, place)
        found.append(Pair(wanted, _whole(epoch.batches), columns, wanted[: epoch.rows]))
    return found


def _whole(batches: Sequence[Any]) -> Any:
    """Return all batches of an epoch joined into one."""
    if not isinstance(batches[0], Images):
        try:
            return pieces.joined(batches)
        except pa.ArrowException as error:
            raise Mismatch(f"a column has different types in different batches: {error}") from error
    images = Images([], [])
    for batch in batches:
        images.arrays.extend(batch.arrays)
        images.labels.extend(batch.labels)
    return images


def _check(operation: Batches, wanted: np.ndarray, epoch: Epoch, place: int) -> None:
    left = len(wanted)
    for number, batch in enumerate(epoch.batches, 1):
        size = length(batch)
        most = min(operation.rows, left)
        # In stored order, a table's batches end at the ends of its row groups.
        if not (0 < size <= most if operation.order == STORED else size == most > 0):
            raise Mismatch(f"epoch {place}, batch {number} has {size:,} rows, expected {max(most, 0):,}")
        left -= size
    if left and not epoch.cut:
        raise Mismatch(f"epoch {place} returned {epoch.rows:,} rows, expected {len(wanted):,}")
