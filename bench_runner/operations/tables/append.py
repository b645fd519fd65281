"""Appending rows to a stored copy. The whole copy is read and compared after timing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import pyarrow as pa

from adapters.contract import TabularFormat
from bench_runner.clock import Laps
from bench_runner.operations import targets
from bench_runner.operations.operation import OperationContext
from bench_runner.operations.parameters import count
from bench_runner.operations.whole import Changes

REWRITE = "rewrite"
"""Name of the fallback for a format without an append call: read everything, add the rows, save everything again."""


@dataclass(frozen=True)
class Append(Changes):
    """Append rows from memory. Timing ends when every handle is closed. If a format cannot append, the whole table is
    read and saved with the new rows to another file, as users of the format must do."""

    rows: int = count(1_000, spelled=True)

    name: ClassVar[str] = "append"
    meaning: ClassVar[str] = "append rows to the stored copy, the first rows of the data once more"
    use: ClassVar[str] = "append {rows:N} rows"

    @property
    def title(self) -> str:
        """The name shown to people, such as 'append 1,000 rows'."""
        return f"append {self.rows:,} row{'s' * (self.rows != 1)}"

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a refusal reason if the table has fewer rows than are appended."""
        return f"it appends {self.rows:,} rows of the table, which has {rows:,}" if self.rows > rows else None

    def fallback(self, adapter: Any) -> str:
        """Return REWRITE if the engine has no call to append."""
        return "" if adapter.offers.append else REWRITE

    def take_input(self, stage: OperationContext, rows: int) -> Any:
        """Return the rows to append, as the user's kind of object (the target)."""
        return targets.make(stage.table(min(self.rows, rows)), stage.target)

    def adds_to(self, location: Path) -> Path:
        """Return the path of the stored copy."""
        return location

    def run(self, stage: OperationContext, held: Any, location: Path, laps: Laps) -> Path:
        """Convert the rows to the engine's input and append them. Return the path of the copy with the appended
        rows."""
        adapter = cast(TabularFormat, stage.adapter)
        place = self.works_at(location)
        if self.fallback(adapter):
            before = targets.from_native(adapter.read(place), stage.target, adapter.native_read)
            both = pa.concat_tables([before, as_stored(held, before.schema)])
            grown = place.with_name(f"grown{location.suffix}")
            adapter.save(targets.to_native(both, stage.target, adapter.native), grown)
            laps.lap("engine_ns")
            return grown
        native = targets.to_native(held, stage.target, adapter.native)
        laps.lap("convert_ns")
        adapter.append(native, place)
        laps.lap("engine_ns")
        return place

    def expected(self, stage: OperationContext, columns: Sequence[str]) -> pa.Table:
        """Return the stored rows followed by the appended rows."""
        return pa.concat_tables([stage.table(stage.rows, columns), stage.table(self.rows, columns)])


def as_stored(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows cast to the types of `schema`, which is the schema of rows that were read from the stored copy.
    Dictionary-encoded columns are decoded first if the store returned plain values, because pyarrow can cast
    dictionaries to only a few types."""
    for place, (had, wanted) in enumerate(zip(rows.schema, schema, strict=True)):
        if pa.types.is_dictionary(had.type) and not pa.types.is_dictionary(wanted.type):
            plain = rows.column(place).cast(had.type.value_type)
            rows = rows.set_column(place, had.with_type(plain.type), plain)
    return rows.cast(schema)
