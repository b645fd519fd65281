"""Functions that convert columns of vectors (fixed-size lists) to what a read returns if a format loses the fixed
size."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def vectors_as_lists(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a column of vectors as lists without a fixed size; None for other types."""
    import pyarrow as pa

    if not pa.types.is_fixed_size_list(column.type):
        return None
    return column.cast(pa.list_(column.type.value_type))


def vectors_as_lists_of_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a column of float32 vectors as lists of float64, because readers of text formats return all floats as
    float64; None for other types."""
    import pyarrow as pa

    if not pa.types.is_fixed_size_list(column.type) or column.type.value_type != pa.float32():
        return None
    return column.cast(pa.list_(pa.float64()))
