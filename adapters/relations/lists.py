"""Relations for vectors (fixed-size lists) that come back as lists without a fixed size."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def vectors_as_lists(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return vectors as lists without a fixed size."""
    import pyarrow as pa

    if not pa.types.is_fixed_size_list(column.type):
        return None
    return column.cast(pa.list_(column.type.value_type))


def vectors_as_lists_of_float64(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return vectors of float32 as lists of float64, the only float type of text readers."""
    import pyarrow as pa

    if not pa.types.is_fixed_size_list(column.type) or column.type.value_type != pa.float32():
        return None
    return column.cast(pa.list_(pa.float64()))
