"""Saving and reading a table that need not fit into memory: each batch is used up before the next one comes."""

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
"""What stands for a call that the engine does not have: all batches are gathered in memory, and saved as one table."""
BATCH_ROWS = 8_192
"""A batch has so many rows where nobody says how many: about 1 MB of most tables, less than any writer's unit."""


@dataclass(frozen=True)
class StreamSave(Changes):
    """From the first batch until the call has returned and every handle is closed. Reading the batches is not the
    format's work: the clocks stand still meanwhile. They are fresh memory each, which counts while it is held."""

    rows: int = count(BATCH_ROWS, spelled=True)

    name: ClassVar[str] = "stream-save"
    meaning: ClassVar[str] = "store all of the data as it comes, batch by batch, without ever holding it"

    @property
    def title(self) -> str:
        """'stream-save by 8,192 rows'."""
        return f"stream-save by {self.rows:,} row{'s' * (self.rows != 1)}"

    def fallback(self, adapter: Any) -> str:
        """What stands for the engine's own call where it has none."""
        return "" if adapter.offers.save_stream else SAVE_ALL

    def take_input(self, stage: OperationContext, rows: int) -> int:
        """How many rows there are. They are read once, so that none comes from the device while the clock runs."""
        for _ in pieces.source(stage, rows, self.rows, Laps()):
            pass
        return rows

    def run(self, stage: OperationContext, held: int, location: Path, laps: Laps) -> Path:
        """Convert each batch to what the engine takes, as it asks for it, and store it. Returns where they lie."""
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
    """Each batch as the engine takes it; Arrow's are taken as they are."""
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
    """From the stored copy to all of its rows in private memory, a batch after the other. Opening it lies inside the
    clock. A digest of each batch is made while the clocks stand still; after them the copy is read again in the same
    way, has to give the same digest, and is compared whole."""

    rows: int = count(BATCH_ROWS, spelled=True)

    name: ClassVar[str] = "stream-read"
    meaning: ClassVar[str] = "read all of the data batch by batch, without ever holding it"

    @property
    def title(self) -> str:
        """'stream-read by 8,192 rows'."""
        return f"stream-read by {self.rows:,} row{'s' * (self.rows != 1)}"

    def fallback(self, adapter: Any) -> str:
        """What stands for the engine's own call where it has none."""
        return "" if adapter.offers.batches else READ_ALL

    def refused_by_asv(self) -> str:
        """Its clock would count the digests too."""
        return f"our clock stands still in {self.name}, not asv's"

    def run(self, stage: OperationContext, held: None, location: Path, laps: Laps) -> str:
        """Open, and for each batch: read it, convert it to the target, touch one byte in each of its pages. Returns the
        digest of what came."""
        digest = pieces.StreamDigest()
        batches = size_bytes = 0
        for batch in self._batches(stage, location, laps):
            with laps.paused():
                digest.update(batch)
                batches, size_bytes = batches + 1, size_bytes + batch.nbytes
                # Not to be held while the next one is made.
                del batch
        pieces.note(laps, batches, size_bytes)
        return digest.hexdigest()

    def _batches(self, stage: OperationContext, location: Path, laps: Laps) -> Iterator[pa.Table]:
        """Raises OtherAnswer for a batch of another size than was asked for."""
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
        """All batches of another reading, one behind the other. Raises OtherAnswer where they are not what came inside
        the clock."""
        digest = pieces.StreamDigest()
        batches: list[pa.Table] = []
        for batch in self._batches(stage, location, Laps()):
            digest.update(batch)
            batches.append(batch)
        if digest.hexdigest() != result:
            raise OtherAnswer("what came batch by batch inside the clock is not what comes when it is read again")
        if not batches:
            return stage.schema.empty_table()
        try:
            return pieces.joined(batches)
        except pa.ArrowException as error:
            raise OtherAnswer(f"batches have types that no column can have together: {error}") from error
