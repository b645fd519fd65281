"""Reading all rows in mini-batches, twice, as a training loop does.

A pass through all rows is called an epoch. The order of the rows in an epoch depends on the digest of the data, so that
all variants, rounds, runs and machines read the same rows. There is no training step. Instead, one byte in each page of
a batch is read, and then the next batch is requested. The worker process verifies the epochs.
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
from bench_runner.operations.operation import READ_ALL, Operation, OperationContext
from bench_runner.operations.parameters import count, word
from bench_runner.operations.streams import orders, pieces, torch_loader
from bench_runner.operations.tables.take import generator
from data_generator.images import is_images

EPOCHS = 2
"""Number of passes through all rows. The second pass shows the effect of data that a library kept from the first
pass."""
MOST_EPOCH_NS = 10 * 10**9
"""Time limit of the first epoch, in ns. If the first epoch takes longer, it ends early, and the second epoch reads only
as many rows as the first."""
MOST_KEPT_BYTES = 160 * 10**6
"""Largest total size of the rows of an epoch. The size is limited, because all batches stay in memory until they are
verified."""

BETWEEN = "between"
"""Name of the timed step between the two epochs, which no figure includes."""

STORED, SHUFFLED, BLOCKS, BUFFER = "stored", "shuffled", "blocks", "buffer"


@dataclass(frozen=True)
class TrainingCopy:
    """A stored copy that is open for reading batches."""

    pieces: Callable[[np.ndarray], Iterator[Any]]
    """Function that yields the rows with these numbers, in this order. A yielded piece is a batch or, for the order
    `blocks`, a window of several batches."""
    close: Callable[[], None]
    is_target: bool = False
    """Whether the pieces are already Arrow tables or images, so that they need no conversion."""


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
    """Open the stored copy and read all of its rows into private memory, batch by batch, twice. If an engine cannot
    read batches in the requested order, the whole table is read first and batches are selected in memory."""

    rows: int = count(64, spelled=True)
    order: str = word(SHUFFLED, STORED, BLOCKS, BUFFER, spelled=True)
    workers: str = word("0", "2")

    name: ClassVar[str] = "batches"
    meaning: ClassVar[str] = "read all of the data twice in mini-batches, in an order chosen by the digest of the data"

    target_kinds = ("arrow", "images")
    sampling = "epochs"

    @property
    def title(self) -> str:
        """The name shown to people, such as 'batches of 64, shuffled' or 'batches of 64, stored, 2 workers'."""
        return f"batches of {self.rows:,}, {self.order}" + f", {self.workers} workers" * (self.workers != "0")

    @property
    def needs(self) -> tuple[str, ...]:
        """The distribution of torch, if batches are loaded in other processes."""
        return ("torch",) if self._in_processes else ()

    @property
    def _in_processes(self) -> bool:
        return self.workers != "0"

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a refusal reason if there is only one batch, or if the order does not fit the data or the number of
        loading processes."""
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
        """Return an array for each epoch: the numbers of the first `rows` rows in the order of the epoch. Arrays are
        cut to the number of rows that can be kept in memory."""
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
        """Open the stored copy for reading batches, in this process or in loading processes. If the engine has no call
        for the order, read everything."""
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
        """Yield the row numbers of each request to the engine. A request asks for a batch or, for the order `blocks`,
        for all batches of a window, so that neighbouring rows are read together."""
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
            # Do not raise an error for missing images here: the verification counts the rows of the epoch.
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
            # Join the chunks once. Otherwise each `take` would join the chunks again.
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
        """Read the rows with these numbers once and return the batches with their times. For the order `stored`, only
        the count of `numbers` matters.

        `opened_ns` is given only for the first epoch: the time when opening the copy began, which is then the start of
        the epoch. Only the first epoch ends early if it takes too long.
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
            # If the whole table is read, request one more piece, to find out whether the source returns too many rows.
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
        """Yield the batches of a piece. A window of several batches is split into slices that share the memory of the
        window. Any other piece is one batch."""
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
        """Open the copy, read all rows twice, and return both epochs. The second epoch reads as many rows as the
        first."""
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
    # For a table, read only the pages of its rows, because a batch may be a slice of a larger table.
    if isinstance(result, Images):
        targets.touch(result)
    else:
        pieces.touch(result)


def _there(call: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return the call unchanged, with a type that excludes None. The call exists, because the adapter's `offers`
    declare the call."""
    assert call is not None
    return call
