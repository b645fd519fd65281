"""Reading all rows in mini-batches, twice, as a training loop does.

The order of the rows in each epoch depends on the digest of the data, so that all variants, rounds, runs and machines
read the same rows. There is no training step: each batch is touched, and the next batch is requested. The worker
verifies the epochs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa

from adapters.contract import Images, ImageStorage
from bench_runner.clock import Laps, now_ns
from bench_runner.operations import targets
from bench_runner.operations.operation import READ_ALL, Operation, OperationContext, Sampling
from bench_runner.operations.parameters import count, word
from bench_runner.operations.streams import orders, pieces, torch_loader
from bench_runner.operations.tables.take import generator
from data_generator.images import is_images

EPOCHS = 2
"""Passes through all rows. The second pass shows effects of what a library caches or learns in the first."""
MOST_EPOCH_NS = 10 * 10**9
"""A first epoch that would take longer ends at this time, with the rows read so far. The second epoch reads the same
number of rows."""
MOST_KEPT_BYTES = 160 * 10**6
"""Largest size of the rows of an epoch, because all batches are kept until they are verified."""

BETWEEN = "between"
"""Name of the lap between epochs, which no figure includes."""

STORED, SHUFFLED, BLOCKS, BUFFER = "stored", "shuffled", "blocks", "buffer"


@dataclass(frozen=True)
class TrainingCopy:
    """A stored copy open for training."""

    pieces: Callable[[np.ndarray], Iterator[Any]]
    """Return rows in the given order, in the pieces that the engine returns: batches or, for `blocks`, windows of
    blocks."""
    close: Callable[[], None]
    is_target: bool = False
    """Whether pieces already have the form of the target, so that they need no conversion."""


@dataclass
class Epoch:
    """The batches of one pass through the rows, and the time at which each batch was in private memory."""

    started_ns: int
    there_ns: list[int] = field(default_factory=list)
    batches: list[Any] = field(default_factory=list)
    ended_ns: int = 0
    cut: bool = False
    """Whether the epoch ended early because it took too long."""

    @property
    def wall_ns(self) -> int:
        """Time from start to end."""
        return self.ended_ns - self.started_ns

    @property
    def gaps_ns(self) -> list[int]:
        """Time from each batch to the next."""
        return [later - earlier for earlier, later in itertools.pairwise(self.there_ns)]

    @property
    def rows(self) -> int:
        """Number of rows in all batches."""
        return sum(map(length, self.batches))


def length(batch: Any) -> int:
    """Return the number of rows or images of a batch."""
    return len(batch.arrays) if isinstance(batch, Images) else batch.num_rows


@dataclass(frozen=True)
class Batches(Operation):
    """Read all rows of the closed copy into private memory, batch by batch, twice. If an engine can neither read rows
    by number nor read in batches, everything is read first and batches are selected in memory."""

    rows: int = count(64, spelled=True)
    order: str = word(SHUFFLED, STORED, BLOCKS, BUFFER, spelled=True)
    workers: str = word("0", "2")

    name: ClassVar[str] = "batches"
    meaning: ClassVar[str] = "read all of the data twice in mini-batches, in an order chosen by the digest of the data"

    @property
    def title(self) -> str:
        """For example 'batches of 64, shuffled' or 'batches of 64, stored, 2 workers'."""
        return f"batches of {self.rows:,}, {self.order}" + f", {self.workers} workers" * (self.workers != "0")

    @property
    def target_kinds(self) -> tuple[str, ...]:
        """Arrow tables and images."""
        return ("arrow", "images")

    @property
    def sampling(self) -> Sampling:
        """Two passes through all rows."""
        return "epochs"

    @property
    def needs(self) -> tuple[str, ...]:
        """torch, if batches are loaded in other processes."""
        return ("torch",) if self._in_processes else ()

    @property
    def _in_processes(self) -> bool:
        return self.workers != "0"

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a refusal reason if there is only one batch, or if the order is not possible for such data."""
        if rows <= self.rows:
            return f"batches of {self.rows:,} need more than the {rows:,} rows of the data"
        if self._in_processes and self.order in (STORED, BUFFER):
            return f"workers={self.workers} read rows by their numbers: use order=shuffled or order=blocks"
        if self.order == BUFFER and not is_images(schema):
            return "order=buffer draws images one by one: for a table use order=blocks"
        return None

    def fallback(self, adapter: Any) -> str:
        """Return READ_ALL if the engine has no call for this order."""
        in_turn = self.order in (STORED, BUFFER)
        own = adapter.offers.batches if in_turn else adapter.offers.take is not None
        return "" if own else READ_ALL

    def take_input(self, stage: OperationContext, rows: int) -> list[np.ndarray]:
        """Return, for each epoch, the numbers of the first `rows` rows in the order of the epoch, up to the number that
        can be kept in memory."""
        if self._in_processes:
            torch_loader.load()
        make = {
            STORED: lambda random, rows: np.arange(rows, dtype=np.int64),
            SHUFFLED: orders.permuted,
            BLOCKS: orders.in_blocks,
            BUFFER: orders.buffered,
        }[self.order]
        row_bytes = max(stage.dataset.stat().st_size // max(stage.rows, 1), 1)
        most = max(MOST_KEPT_BYTES // row_bytes, 2 * self.rows)
        return [make(generator(stage.digest, f"{self.spelled}/{epoch}"), rows)[:most] for epoch in range(1, EPOCHS + 1)]

    def open(self, stage: OperationContext, location: Path) -> TrainingCopy:
        """Open the stored copy for this order. If the engine has no call for the order, read everything."""
        return self._in_others(stage, location) if self._in_processes else self.open_here(stage, location)

    def _in_others(self, stage: OperationContext, location: Path) -> TrainingCopy:
        adapter = stage.adapter
        loader = torch_loader.Loader(
            torch_loader.Requests(
                self.open_here,
                adapter.variant,
                adapter.threads,
                stage.target,
                stage.dataset,
                stage.digest,
                stage.rows,
                location,
            )
        )
        return TrainingCopy(lambda numbers: loader.pieces(tuple(self._requests(numbers))), loader.close, is_target=True)

    def open_here(self, stage: OperationContext, location: Path) -> TrainingCopy:
        """Open the stored copy in this process."""
        adapter = stage.adapter
        if self.fallback(adapter):
            return self._read_all(stage, location)
        if isinstance(adapter, ImageStorage):
            images = adapter.open(location)
            if self.order == BUFFER:
                return TrainingCopy(lambda numbers: self._drawn(images.batches, numbers), images.close)
            if self.order == STORED:
                return TrainingCopy(lambda numbers: _there(images.batches)(self.rows), images.close)
            return TrainingCopy(lambda numbers: map(_there(images.take), self._requests(numbers)), images.close)
        columns = stage.schema.names
        if self.order == STORED:
            table = adapter.open(location)
            return TrainingCopy(lambda numbers: _there(table.batches)(columns, self.rows), table.close)
        table = adapter.open_rows(location)
        take = _there(table.take)
        return TrainingCopy(lambda numbers: (take(part, columns) for part in self._requests(numbers)), table.close)

    def _requests(self, numbers: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the rows of each request. A request is a batch or, for `blocks`, all batches of a window, so that
        neighbouring rows are read together."""
        window = orders.NEIGHBOUR_ROWS * orders.WINDOW_BLOCKS
        size = self.rows * max(window // self.rows, 1) if self.order == BLOCKS else self.rows
        return (numbers[start : start + size] for start in range(0, len(numbers), size))

    def _drawn(self, batches: Callable[[int], Iterator[Images]] | None, numbers: np.ndarray) -> Iterator[Images]:
        """Yield images drawn from a buffer, which is filled in stored order."""
        waiting: dict[int, tuple[np.ndarray, int]] = {}
        stored = _there(batches)(self.rows)
        came = handed = 0
        for part in self._requests(numbers):
            handed += len(part)
            while came < handed + orders.BUFFER_ROWS and (batch := next(stored, None)) is not None:
                waiting |= dict(enumerate(zip(batch.arrays, batch.labels, strict=True), came))
                came += len(batch.arrays)
            # Missing images are noticed when the rows of the epoch are counted.
            drawn = [waiting.pop(number) for number in part.tolist() if number in waiting]
            yield Images([array for array, _ in drawn], [label for _, label in drawn])

    def _read_all(self, stage: OperationContext, location: Path) -> TrainingCopy:
        adapter = stage.adapter
        everything = targets.from_native(adapter.read(location), stage.target, adapter.native_read)
        if isinstance(everything, Images):

            def some(numbers: np.ndarray) -> Any:
                asked = numbers.tolist()
                return Images([everything.arrays[each] for each in asked], [everything.labels[each] for each in asked])
        else:
            # Join the chunks once. Otherwise each `take` on a table of many chunks would join them.
            table = everything.combine_chunks()

            def some(numbers: np.ndarray) -> Any:
                if self.order == STORED:
                    return table.slice(int(numbers[0]), len(numbers))
                return table.take(pa.array(numbers))

        return TrainingCopy(lambda numbers: map(some, self._requests(numbers)), lambda: None, is_target=True)

    def epoch(
        self,
        stage: OperationContext,
        source: TrainingCopy,
        numbers: np.ndarray,
        laps: Laps,
        opened_ns: int | None = None,
    ) -> Epoch:
        """Make one pass through the rows with these numbers. In stored order only their count matters.

        The first pass includes the opening, which began at `opened_ns`. Only the first pass ends early if it takes too
        long.
        """
        found = Epoch(now_ns() if opened_ns is None else opened_ns)
        latest_ns = math.inf
        if opened_ns is None:
            laps.lap(BETWEEN)
        else:
            latest_ns = opened_ns + MOST_EPOCH_NS
        whole = len(numbers) == stage.rows
        handed = 0
        pieces = source.pieces(numbers)
        for piece in pieces:
            laps.lap("engine_ns")
            result = piece
            if not source.is_target:
                result = targets.from_native(piece, stage.target, stage.adapter.native_read)
            laps.lap("convert_ns")
            _touch(result)
            laps.lap("touch_ns")
            for batch in self._batches_of(result):
                found.batches.append(batch)
                found.there_ns.append(now_ns())
                handed += length(batch)
            # A source that gives too many rows is wrong. Only one more request can show that.
            if handed >= len(numbers) + whole:
                break
            if handed < len(numbers) and found.there_ns[-1] > latest_ns:
                found.cut = True
                break
        if isinstance(pieces, Generator):
            # Close a generator that was not exhausted.
            pieces.close()
        laps.lap("engine_ns")
        found.ended_ns = now_ns()
        return found

    def _batches_of(self, result: Any) -> Iterator[Any]:
        """Yield the batches of a window of blocks, as views into the window. Yield any other result unchanged."""
        size = length(result)
        if self.order != BLOCKS or size <= self.rows:
            yield result
            return
        for start in range(0, size, self.rows):
            if isinstance(result, Images):
                yield Images(result.arrays[start : start + self.rows], result.labels[start : start + self.rows])
            else:
                yield result.slice(start, self.rows)

    def run(self, stage: OperationContext, held: list[np.ndarray], location: Path, laps: Laps) -> list[Epoch]:
        """Open the copy and read all rows twice. The second pass reads as many rows as the first."""
        source = self.open(stage, location)
        found: list[Epoch] = []
        for numbers in held:
            found.append(self.epoch(stage, source, numbers[: found[0].rows] if found else numbers, laps))
        source.close()
        return found

    def expected_rows(self, stage: OperationContext, held: Any) -> np.ndarray:
        """Return the row numbers of the epoch."""
        return cast(np.ndarray, held)


def _touch(result: Any) -> None:
    # Touch only the rows of a table, because a batch may be a slice of a larger table.
    if isinstance(result, Images):
        targets.touch(result)
    else:
        pieces.touch(result)


def _there(call: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return a call that the adapter's `offers` declare to exist."""
    assert call is not None
    return call
