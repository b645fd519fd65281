"""Define Parquet's codecs as settings, and read the codecs of a file from its footer, for tables and images.

This module does not import pyarrow. Its callers have loaded pyarrow already, and pass the footer that pyarrow read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from adapters.contract import Setting, Stored
from adapters.errors import AdapterError

if TYPE_CHECKING:
    import pyarrow.parquet as pq

CODEC = Setting(
    ("none", "snappy", "gzip", "brotli", "lz4", "zstd"), "snappy", "codec of all pages", always_spelled=True
)
LEVEL = Setting(range(1, 23), None, "level of the codec; by default the codec's own default level")
LEVELS = {"gzip": range(1, 10), "brotli": range(1, 12), "zstd": range(1, 23)}


def stored_of(metadata: pq.FileMetaData, raw: Collection[str] = ()) -> Stored:
    """Return the codec and the encodings of all column chunks, as the footer states them.

    Several codecs are joined by '+'. The columns in `raw` should have no codec. Raises AdapterError if one has a
    codec."""
    chunks = list(_chunks(metadata))
    for chunk in chunks:
        if chunk.path_in_schema in raw and chunk.compression != "UNCOMPRESSED":
            raise AdapterError(
                f"column {chunk.path_in_schema} is compressed; the file's variant sets no codec for this column"
            )
    coded = [chunk for chunk in chunks if chunk.path_in_schema not in raw]
    codecs = sorted({chunk.compression.lower() for chunk in coded or chunks})
    encodings = sorted({encoding for chunk in chunks for encoding in chunk.encodings})
    codec = "+".join("none" if name == "uncompressed" else name for name in codecs)
    return Stored(codec, tuple(encodings), {"row groups": str(metadata.num_row_groups)})


def check_layout(
    metadata: pq.FileMetaData, *, row_group_rows: int | str | None, page_index: bool, dictionary: bool, statistics: bool
) -> None:
    """Check that a file was written with the given settings. Raises AdapterError if the file's footer contradicts the
    settings.

    The number of rows in a page is not checked, because footers do not record this number. Missing dictionaries and
    statistics are accepted even if the settings request them, because writers may store a chunk without a dictionary,
    and types without a sort order have no statistics.
    """
    rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    if row_group_rows is not None and (others := [each for each in rows[:-1] if each != row_group_rows]):
        raise AdapterError(
            f"the file has row groups of {others[0]:,} rows; its variant sets row_group_rows={row_group_rows}"
        )
    if row_group_rows is not None and rows and rows[-1] > int(row_group_rows):
        raise AdapterError(
            f"the file has a row group of {rows[-1]:,} rows; its variant sets row_group_rows={row_group_rows}"
        )
    for chunk in _chunks(metadata):
        if not dictionary and any("DICTIONARY" in encoding for encoding in chunk.encodings):
            raise AdapterError(
                f"column {chunk.path_in_schema} has a dictionary; the file's variant sets dictionary=false"
            )
        if not statistics and chunk.is_stats_set:
            raise AdapterError(
                f"column {chunk.path_in_schema} has statistics; the file's variant sets statistics=false"
            )
        if page_index and not chunk.has_offset_index:
            raise AdapterError(
                f"column {chunk.path_in_schema} has no page index; the file's variant sets page_index=true"
            )


def check_encoding(metadata: pq.FileMetaData, columns: Collection[str], encoding: str, said: str) -> None:
    """Check that the chunks of these columns have the encoding `encoding`. Raises AdapterError otherwise.

    A setting requests this encoding instead of a dictionary. `said` is the text of the setting, for the error message.
    Chunks without any value are not checked, because they may have no pages."""
    for chunk in _chunks(metadata):
        has_values = not chunk.is_stats_set or chunk.statistics.null_count != chunk.num_values
        if chunk.path_in_schema in columns and has_values and encoding not in chunk.encodings:
            raise AdapterError(
                f"column {chunk.path_in_schema} is stored as {chunk.encodings}; the file's variant sets {said}"
            )


def _chunks(metadata: pq.FileMetaData) -> Iterator[pq.ColumnChunkMetaData]:
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            yield metadata.row_group(group).column(column)
