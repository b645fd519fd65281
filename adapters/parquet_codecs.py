"""The codecs of Parquet as settings, and what a file's footer says of them: one place for tables and images.

This module imports nothing: the adapter that has loaded pyarrow hands the footer over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.contract import Setting, Stored

if TYPE_CHECKING:
    import pyarrow.parquet as pq

CODEC = Setting(
    ("none", "snappy", "gzip", "brotli", "lz4", "zstd"), "snappy", "codec of all pages", always_spelled=True
)
LEVEL = Setting(range(1, 23), None, "level of the codec; without it the codec's own default")
LEVELS = {"gzip": range(1, 10), "brotli": range(1, 12), "zstd": range(1, 23)}


def stored_of(metadata: pq.FileMetaData) -> Stored:
    """Codec and encodings of all column chunks, from the footer; several codecs come joined by '+'."""
    chunks = [
        metadata.row_group(group).column(column)
        for group in range(metadata.num_row_groups)
        for column in range(metadata.num_columns)
    ]
    codecs = sorted({chunk.compression.lower() for chunk in chunks})
    encodings = sorted({encoding for chunk in chunks for encoding in chunk.encodings})
    codec = "+".join("none" if name == "uncompressed" else name for name in codecs)
    return Stored(codec, tuple(encodings), {"row groups": str(metadata.num_row_groups)})
