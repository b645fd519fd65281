"""Saving and reading a table that may not fit into memory. Each batch is consumed before the next batch is created."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import pyarrow as pa

from adapters.contract import Native, TabularFormat
from bench_runner.clock import Laps
from bench_runner.operations import targets
from bench_runner.operations.operation import READ_ALL, Operation, OperationContext, OtherAnswer
from bench_runner.operations.parameters import count
from bench_runner.operations.streams import pieces
from bench_runner.operations.whole import Changes
from bench_runner.refusals import REFUSING, refusal

SAVE_ALL = "save-all"
"""Name of the fallback for an engine that cannot save a stream: collect all batches in memory and save one table."""
BATCH_ROWS = 8_192
"""Default number of rows of a batch. A batch of most tables has about 1 MB, less than writers store as one unit."""


@dataclass(frozen=True)
class StreamSave(Changes):
    """Save a table batch by batch. Timing ends when the call has returned and every handle is closed.

    Timing is paused while a batch is read from the cached data set, because this is not the format's work. Each batch
    is new memory, which the measured peak memory includes while the batch is in use.
    """

    rows: int = count(BATCH_ROWS, spelled=True)

    name: ClassVar[str] = "stream-save"
    meaning: ClassVar[str] = "store all of the data batch by batch, without holding all of it in memory"

    @property
    def title(self) -> str:
        """The name shown to people, such as 'stream-save by 8,192 rows'."""
        return f"stream-save by {self.rows:,} row{'s' * (self.rows != 1)}"

    def fallback(self, adapter: Any) -> str:
        """Return SAVE_ALL if the engine cannot save a stream."""
        return "" if adapter.offers.save_stream else SAVE_ALL

    def take_input(self, stage: OperationContext, rows: int) -> int:
        """Return the number of rows. Read all rows once, so that the data set is in the page cache during timing."""
        for _ in pieces.source(stage, rows, self.rows, Laps()):
            pass
        return rows

    def run(self, stage: OperationContext, held: int, location: Path, laps: Laps) -> Path:
        """Store all batches and return the path. Each batch is read and converted when the engine requests it."""
        adapter = cast(TabularFormat, stage.adapter)
        place = self.works_at(location)
        schema = stage.schema.remove_metadata()
        batches = pieces.source(stage, held, self.rows, laps)
        try:
            if self.fallback(adapter):
                table = pa.Table.from_batches(list(batches), schema)
                native = targets.to_native(table, stage.target, adapter.native)
                laps.lap("convert_ns")
                adapter.save(native, place)
            else:
                adapter.save_stream(schema, _native(batches, stage, adapter.native, laps), place)
        except REFUSING as error:
            raise refusal(error, adapter) from error
        laps.lap("engine_ns")
        return place


def _native(batches: Iterator[pa.RecordBatch], stage: OperationContext, native: Native, laps: Laps) -> Iterator[Any]:
    """Yield each batch in the form that the engine takes; Arrow batches stay unchanged."""
    if native in (Native.ARROW, Native.BUFFERS):
        yield from batches
        return
    for batch in batches:
        laps.lap("engine_ns")
        converted = targets.to_native(pa.Table.from_batches([batch]), stage.target, native)
        del batch
        laps.lap("convert_ns")
        yield converted
        del converted


@dataclass(frozen=True)
class StreamRead(Operation):
    """Read all rows of the stored copy into private memory, one batch after the other. Opening the copy is timed.

    Timing is paused while a digest of each batch is computed. For verification, the copy is read a second time after
    timing. Both reads must have the same digest, and the table from the second read is compared with the data set.
    """

    rows: int = count(BATCH_ROWS, spelled=True)

    name: ClassVar[str] = "stream-read"
    meaning: ClassVar[str] = "read all of the data batch by batch, without holding all of it in memory"

    @property
    def title(self) -> str:
        """The name shown to people, such as 'stream-read by 8,192 rows'."""
        return f"stream-read by {self.rows:,} row{'s' * (self.rows != 1)}"

    def fallback(self, adapter: Any) -> str:
        """Return READ_ALL if the engine cannot read in batches."""
        return "" if adapter.offers.batches else READ_ALL

    def refused_by_asv(self) -> str:
        """Return a refusal reason, because asv would time the digests too."""
        return f"timing pauses in {self.name}, which asv's timer cannot do"

    def run(self, stage: OperationContext, held: None, location: Path, laps: Laps) -> str:
        """Open the copy, read each batch, convert it to the target and read one byte in each page of the result. Return
        the digest of all batches as hexadecimal digits."""
        digest = pieces.StreamDigest()
        batches = size_bytes = 0
        for batch in self._batches(stage, location, laps):
            with laps.paused():
                digest.update(batch)
                batches, size_bytes = batches + 1, size_bytes + batch.nbytes
                # Free the batch before the next batch is created.
                del batch
        pieces.note(laps, batches, size_bytes)
        return digest.hexdigest()

    def _batches(self, stage: OperationContext, location: Path, laps: Laps) -> Iterator[pa.Table]:
        """Yield the batches of the stored copy. Raises OtherAnswer for a batch that is empty or too large."""
        adapter = cast(TabularFormat, stage.adapter)
        columns = self.expected_columns(stage)
        if self.fallback(adapter):
            native = targets.select(adapter.read(location), adapter.native_read, columns)
            laps.lap("engine_ns")
            table = targets.from_native(native, stage.target, adapter.native_read)
            del native
            laps.lap("convert_ns")
            for start in range(0, table.num_rows, self.rows):
                piece = table.slice(start, self.rows)
                pieces.touch(piece)
                laps.lap("touch_ns")
                yield piece
            return
        handle = adapter.open(location)
        assert handle.batches is not None
        for native in handle.batches(columns, self.rows):
            laps.lap("engine_ns")
            batch = targets.from_native(native, stage.target, adapter.native_read)
            del native
            if not 0 < batch.num_rows <= self.rows:
                raise OtherAnswer(f"a batch has {batch.num_rows:,} rows, not 1 to {self.rows:,}")
            laps.lap("convert_ns")
            pieces.touch(batch)
            laps.lap("touch_ns")
            yield batch
            del batch
        handle.close()
        laps.lap("engine_ns")

    def answer(self, stage: OperationContext, result: str, location: Path) -> Any:
        """Read the copy a second time and return all batches as one table. Raises OtherAnswer if the batches differ
        from the batches of the timed read."""
        digest = pieces.StreamDigest()
        batches: list[pa.Table] = []
        for batch in self._batches(stage, location, Laps()):
            digest.update(batch)
            batches.append(batch)
        if digest.hexdigest() != result:
            raise OtherAnswer("the timed reading of the copy and a second reading returned different batches")
        if not batches:
            return stage.schema.empty_table()
        try:
            return pieces.joined(batches)
        except pa.ArrowException as error:
            raise OtherAnswer(f"a column has different types in different batches: {error}") from error
