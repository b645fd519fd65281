"""Faults of `batches` in training loops, for the format `faulty`, which stores Arrow IPC."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

FAULTS = (
    "batches",
    "batches_drop_the_last",
    "batches_repeat_a_row",
    "batches_go_on",
    "batches_use_memory_again",
    "batches_too_large",
    "batches_change_a_value",
    "batches_of_nothing",
)


def batches(fault: str, location: Path, columns: list[str], rows: int) -> Iterator[Any]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.feather

    table = pa.feather.read_table(location, columns=columns, memory_map=False).select(columns)
    floats = next(place for place, field in enumerate(table.schema) if pa.types.is_float64(field.type))
    if fault == "batches_drop_the_last":
        table = table.slice(0, table.num_rows // rows * rows)
    if fault == "batches_repeat_a_row":
        order = list(range(table.num_rows))
        order[700] = 699
        table = table.take(order)
    if fault == "batches_go_on":
        table = pa.concat_tables([table, table.slice(0, 1)])
    if fault == "batches_change_a_value":
        values = table.column(floats).to_pylist()
        values[5] = -12345.0
        table = table.set_column(floats, table.column_names[floats], pa.array(values, pa.float64()))
    if fault == "batches_of_nothing":
        table = table.slice(0, 0)
    size = 2 * rows if fault == "batches_too_large" else rows
    memory = np.empty(size)
    for start in range(0, table.num_rows, size):
        batch = table.slice(start, size).combine_chunks()
        if fault == "batches_use_memory_again":
            batch = batch.set_column(floats, batch.column_names[floats], _over(memory, batch.column(floats)))
        yield batch


def _over(memory: Any, column: Any) -> Any:
    """Return the column in a memory buffer that all batches share."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = pc.fill_null(column, 0.0).to_numpy()
    memory[: len(values)] = values
    return pa.Array.from_buffers(column.type, len(values), [column.chunk(0).buffers()[0], pa.py_buffer(memory)])
