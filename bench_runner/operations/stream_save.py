"""Saving a table that is not in memory: batches come, and go into the file."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import pyarrow as pa

from adapters.contract import ImageStorage, Native, TabularFormat
from bench_runner.clock import Laps
from bench_runner.operations import streaming, targets
from bench_runner.operations.operation import Operation, Stage
from bench_runner.operations.parameters import count
from bench_runner.operations.read import Read
from bench_runner.refusing import REFUSING, refusal

SAVE_ALL = "save-all"
"""What stands for a call that the engine does not have: all batches are gathered in memory, and saved as one table."""
BATCH_ROWS = 8_192
"""A batch has so many rows where nobody says how many: about 1 MB of most tables, less than any writer's unit."""


@dataclass(frozen=True)
class StreamSave(Operation):
    """From the first batch until the call has returned and every handle is closed. Reading the batches is not the
    format's work: the clocks stand still meanwhile. They are fresh memory each, which counts while it is held."""

    rows: int = count(BATCH_ROWS, spelled=True)

    name: ClassVar[str] = "stream-save"
    changes: ClassVar[bool] = True
    makes_anew: ClassVar[bool] = True
    arrow_only: ClassVar[bool] = True
    pauses: ClassVar[bool] = True
    meaning: ClassVar[str] = "store all of the data as it comes, batch by batch, without ever holding it"

    @property
    def title(self) -> str:
        """'stream-save by 8,192 rows'."""
        return f"stream-save by {self.rows:,} row{'s' * (self.rows != 1)}"

    def fallback(self, adapter: TabularFormat | ImageStorage) -> str:
        """What stands for the engine's own call where it has none."""
        return "" if isinstance(adapter, TabularFormat) and adapter.offers.save_stream else SAVE_ALL

    def take_input(self, stage: Stage, rows: int) -> int:
        """How many rows there are. They are read once, so that none comes from the device while the clock runs."""
        for _ in streaming.source(stage, rows, self.rows, Laps()):
            pass
        return rows

    def works_at(self, location: Path) -> Path:
        """Where it stores them: beside the folder of the stored copy, which no reader looks into."""
        return location.parent.with_name(f"{location.parent.name}-streamed") / location.name

    def prepare(self, location: Path) -> None:
        """Before the clock: an empty folder."""
        place = self.works_at(location)
        shutil.rmtree(place.parent, ignore_errors=True)
        place.parent.mkdir()

    def run(self, stage: Stage, held: int, location: Path, laps: Laps) -> Path:
        """Convert each batch to what the engine takes, as it asks for it, and store it. Returns where they lie."""
        adapter = cast(TabularFormat, stage.adapter)
        place = self.works_at(location)
        schema = stage.schema.remove_metadata()
        batches = streaming.source(stage, held, self.rows, laps)
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

    def answer(self, stage: Stage, result: Path, location: Path) -> Any:
        """All that lies there."""
        return Read().run(stage, None, result, Laps())

    def expected_columns(self, stage: Stage) -> list[str]:
        """All, in their order."""
        return list(stage.schema.names)


def _native(batches: Iterator[pa.RecordBatch], stage: Stage, native: Native, laps: Laps) -> Iterator[Any]:
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
