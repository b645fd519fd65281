"""Faults of reading and saving in batches, for the format `faulty`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FAULTS = (
    "streams",
    "stream_read_drops_a_batch",
    "stream_read_doubles_a_batch",
    "stream_read_reorders_batches",
    "stream_read_changes_a_value",
    "stream_read_gives_larger_batches",
    "stream_read_gives_empty_batches",
    "stream_read_changes_a_value_once",
    "stream_read_stops_once",
    "stream_read_breaks",
    "stream_save_drops_a_batch",
    "stream_save_doubles_a_batch",
    "stream_save_reorders_batches",
    "stream_save_by_another_codec",
    "stream_save_breaks",
)
"""With each fault, the format offers both calls, and only the named call is faulty.

`once` means that only the timed call is faulty. It follows the priming call and precedes the call that is verified."""
_TIMED = 2
_calls = itertools.count(1)


def batches(fault: str, location: Path, columns: list[str], rows: int) -> Iterator[Any]:
    """Yield the batches of an Arrow IPC file as Arrow tables."""
    import pyarrow.feather

    timed = next(_calls) == _TIMED
    table = pyarrow.feather.read_table(location, memory_map=False).select(columns)
    pieces = [table.slice(start, rows) for start in range(0, table.num_rows, rows)]
    if len(pieces) < 3:
        yield from pieces
        return
    if fault == "stream_read_drops_a_batch" or (fault == "stream_read_stops_once" and timed):
        pieces.pop()
    if fault == "stream_read_doubles_a_batch":
        pieces.insert(1, pieces[1])
    if fault == "stream_read_reorders_batches":
        pieces[0], pieces[1] = pieces[1], pieces[0]
    if fault == "stream_read_changes_a_value" or (fault == "stream_read_changes_a_value_once" and timed):
        pieces[1] = _changed(pieces[1])
    if fault == "stream_read_gives_larger_batches":
        pieces = [table]
    if fault == "stream_read_gives_empty_batches":
        pieces.insert(1, table.slice(0, 0))
    yield from pieces[:2]
    if fault == "stream_read_breaks":
        raise OSError("the file ended in the middle of a batch")
    yield from pieces[2:]


def save_stream(fault: str, schema: Any, batches: Iterator[Any], location: Path) -> None:
    """Write the batches into an Arrow IPC file."""
    import pyarrow as pa

    pieces = list(batches)
    if len(pieces) > 2:
        if fault == "stream_save_drops_a_batch":
            pieces.pop()
        if fault == "stream_save_doubles_a_batch":
            pieces.append(pieces[-1])
        if fault == "stream_save_reorders_batches":
            pieces[0], pieces[1] = pieces[1], pieces[0]
        if fault == "stream_save_breaks":
            raise OSError("the device went away")
    with pa.ipc.new_file(str(location), schema) as writer:
        for piece in pieces:
            writer.write_batch(piece)


def _changed(table: Any) -> Any:
    """Change one integer in the middle of the first column of integers."""
    import pyarrow as pa

    place = next(place for place, field in enumerate(table.schema) if pa.types.is_int64(field.type))
    values = table.column(place).to_pylist()
    values[len(values) // 2] = 1 + (values[len(values) // 2] or 0)
    return table.set_column(place, table.schema.field(place), pa.array(values, pa.int64()))
