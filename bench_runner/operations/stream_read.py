"""Reading a table that need not fit into memory: each batch is used up before the next one comes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import pyarrow as pa

from adapters.contract import ImageStorage, TabularFormat
from bench_runner.clock import Laps
from bench_runner.operations import streaming, targets
from bench_runner.operations.operation import READ_ALL, Operation, OtherAnswer, Stage
from bench_runner.operations.parameters import count
from bench_runner.operations.stream_save import BATCH_ROWS


@dataclass(frozen=True)
class StreamRead(Operation):
    """From the stored copy to all of its rows in private memory, a batch after the other. Opening it lies inside the
    clock. A digest of each batch is made while the clocks stand still; after them the copy is read again in the same
    way, has to give the same digest, and is compared whole."""

    rows: int = count(BATCH_ROWS, spelled=True)

    name: ClassVar[str] = "stream-read"
    arrow_only: ClassVar[bool] = True
    pauses: ClassVar[bool] = True
    meaning: ClassVar[str] = "read all of the data batch by batch, without ever holding it"

    @property
    def title(self) -> str:
        """'stream-read by 8,192 rows'."""
        return f"stream-read by {self.rows:,} row{'s' * (self.rows != 1)}"

    def fallback(self, adapter: TabularFormat | ImageStorage) -> str:
        """What stands for the engine's own call where it has none."""
        return "" if isinstance(adapter, TabularFormat) and adapter.offers.batches else READ_ALL

    def take_input(self, stage: Stage, rows: int) -> None:
        """It has no input but the stored copy."""

    def run(self, stage: Stage, held: None, location: Path, laps: Laps) -> str:
        """Open, and for each batch: read it, convert it to the target, touch one byte in each of its pages. Returns the
        digest of what came."""
        digest = streaming.StreamDigest()
        batches = size_bytes = 0
        for batch in self._batches(stage, location, laps):
            with laps.paused():
                digest.update(batch)
                batches, size_bytes = batches + 1, size_bytes + batch.nbytes
                # Not to be held while the next one is made.
                del batch
        streaming.note(laps, batches, size_bytes)
        return digest.hexdigest()

    def _batches(self, stage: Stage, location: Path, laps: Laps) -> Iterator[pa.Table]:
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
                streaming.touch(piece)
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
            streaming.touch(batch)
            laps.lap("touch_ns")
            yield batch
            del batch
        handle.close()
        laps.lap("engine_ns")

    def answer(self, stage: Stage, result: str, location: Path) -> Any:
        """All batches of another reading, one behind the other. Raises OtherAnswer where they are not what came inside
        the clock."""
        digest = streaming.StreamDigest()
        batches: list[pa.Table] = []
        for batch in self._batches(stage, location, Laps()):
            digest.update(batch)
            batches.append(batch)
        if digest.hexdigest() != result:
            raise OtherAnswer("what came batch by batch inside the clock is not what comes when it is read again")
        if not batches:
            return stage.schema.empty_table()
        try:
            return streaming.joined(batches)
        except pa.ArrowException as error:
            raise OtherAnswer(f"batches have types that no column can have together: {error}") from error

    def expected_columns(self, stage: Stage) -> list[str]:
        """All, as they are stored."""
        return list(stage.schema.names)
