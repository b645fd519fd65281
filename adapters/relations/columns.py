"""What relations of several kinds ask of a column, and do with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def null_where(column: pa.ChunkedArray, where: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """The column with nulls where the other says so; None where it says so nowhere."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pc.any(where).as_py():
        return None
    return pc.if_else(where, pa.scalar(None, column.type), column)


def is_text(column: pa.ChunkedArray) -> bool:
    """Whether it holds text, in whichever of Arrow's layouts."""
    import pyarrow as pa

    return column.type in (pa.string(), pa.large_string(), pa.string_view())
