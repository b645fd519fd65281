"""What calls cannot store, told by the schema before anything is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def of_printed_vectors(schema: pa.Schema) -> str | None:
    """Why pandas' text cannot hold the first column of vectors; None without one."""
    import pyarrow.types as of

    for field in schema:
        if of.is_fixed_size_list(field.type):
            return (
                f"pandas writes of vectors what numpy prints, at most 8 digits, and of over 1,000 values the first "
                f"and last three (column {field.name})"
            )
    return None
