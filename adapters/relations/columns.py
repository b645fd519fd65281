"""Helper functions for Arrow columns that the other modules of this package use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def null_where(column: pa.ChunkedArray, where: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return the column with nulls in the rows where `where` is true; None if `where` is true in no row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pc.any(where).as_py():
        return None
    return pc.if_else(where, pa.scalar(None, column.type), column)


def is_text(column: pa.ChunkedArray) -> bool:
    """Return whether a column has one of Arrow's string types."""
    import pyarrow as pa

    return column.type in (pa.string(), pa.large_string(), pa.string_view())
