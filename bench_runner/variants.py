"""What the name of a spelled variant says: its format, whether it is the yardstick, and whether it stands apart.

Plans and results both ask. It knows names alone, and no adapter.
"""

from __future__ import annotations

RAW_IO = ("raw-io", "image-raw-io", "documents-raw-io")
"""The plain writes and reads of tables, of images and of documents."""
VIEWS = "arrays=views"


def format_name(variant: str) -> str:
    """The format that a spelled variant belongs to: 'parquet' of 'parquet[engine=pyarrow]'."""
    return variant.partition("[")[0]


def is_raw_io(variant: str) -> bool:
    """Whether this is raw I/O, the plain write and read that every format is a multiple of."""
    return format_name(variant) in RAW_IO


def is_apart(variant: str) -> bool:
    """Whether a variant gives the user something else than the others do, so that it is never ranked with
    them: a result that lies in a file mapping, arrays that are views of others' memory (both rule 7), integers
    and booleans with nulls as plain numpy (rule 8), or rows that a filter should have left out."""
    return any(text in variant for text in ("mapped=true", VIEWS, "nulls=numpy", "technique="))
