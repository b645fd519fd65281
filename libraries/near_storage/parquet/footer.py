"""The footer of a Parquet file as frozen values, after every number in it has been checked.

A `Footer` holds the position of each column chunk and its statistics, including exactness and NaN counts, which pyarrow
does not expose in full. Field ids come from parquet.thrift (apache/parquet-format 24102ed). The module imports neither
numpy nor pyarrow, because it runs in a child process that must start fast. Statistics are trusted if they are
consistent, because only the data could prove them true.
"""

from __future__ import annotations

import os
import re
import struct
from itertools import pairwise
from typing import Any, BinaryIO

import msgspec

from libraries.near_storage.errors import FooterError
from libraries.near_storage.parquet.schema import COLUMN_ORDERS, PHYSICAL_TYPES, SCHEMA, Column, leaves, schema_hash
from libraries.near_storage.parquet.thrift import BINARY, BOOLEAN, I32, I64, ListOf, Struct, read_struct

MAGIC = b"PAR1"
ENCRYPTED_MAGIC = b"PARE"
TAIL_BYTES = 8
"""Bytes after the metadata: the length of the metadata in four bytes, and the magic number."""

MOST_METADATA_BYTES = 256 << 20
MOST_ROW_GROUPS = 1 << 20
MOST_FROM_BASE = (1 << 32) - 1
"""Maximum offset of a chunk from the first byte of its row group, and maximum length of a chunk. Compact metadata store
both in 32 bits (Weigand 2025, 7.1)."""

_SIGNED = ("BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE")

_STATISTICS = Struct("Statistics", {1: BINARY, 2: BINARY, 3: I64, 5: BINARY, 6: BINARY, 7: BOOLEAN, 8: BOOLEAN, 9: I64})
_COLUMN_METADATA = Struct(
    "ColumnMetaData",
    {1: I32, 3: ListOf(BINARY, 100), 5: I64, 6: I64, 7: I64, 9: I64, 11: I64, 12: _STATISTICS},
    required=frozenset({1, 3, 5, 6, 7, 9}),
)
_COLUMN_CHUNK = Struct(
    "ColumnChunk", {1: BINARY, 3: _COLUMN_METADATA, 8: Struct("ColumnCryptoMetaData", {}), 9: BINARY}
)
_ROW_GROUP = Struct("RowGroup", {1: ListOf(_COLUMN_CHUNK, 100_000), 3: I64}, required=frozenset({1, 3}))
_FILE_METADATA = Struct(
    "FileMetaData",
    {
        **{2: SCHEMA, 3: I64, 4: ListOf(_ROW_GROUP, MOST_ROW_GROUPS), 6: BINARY, 7: COLUMN_ORDERS},
        **{8: Struct("EncryptionAlgorithm", {}), 9: BINARY},
    },
    required=frozenset({2, 3, 4}),
)


class Statistics(msgspec.Struct, frozen=True):
    """The statistics of a chunk.

    `minimum` and `maximum` are in Parquet's plain encoding and follow the column's order; None means missing or
    unusable. `minimum_exact` is true if the minimum is a value of the chunk, and None if the file does not state it.
    `nulls` and `nans` are counts; None means unknown, never zero.
    """

    minimum: bytes | None
    maximum: bytes | None
    minimum_exact: bool | None
    maximum_exact: bool | None
    nulls: int | None
    nans: int | None


class Chunk(msgspec.Struct, frozen=True):
    """A column's part of a row group: the bytes [start, start + length) of the file. `values` includes nulls."""

    start: int
    length: int
    values: int
    statistics: Statistics | None


class RowGroup(msgspec.Struct, frozen=True):
    """The number of rows, and a chunk for each leaf column in schema order."""

    rows: int
    chunks: tuple[Chunk, ...]


class Footer(msgspec.Struct, frozen=True):
    """The footer of a file of `file_bytes` bytes. The footer's metadata are the bytes [start, start + length) of the
    file."""

    rows: int
    columns: tuple[Column, ...]
    row_groups: tuple[RowGroup, ...]
    schema_hash: str
    file_bytes: int
    start: int
    length: int


def read_footer(file: BinaryIO) -> Footer:
    """Read the footer of a Parquet file that is open for reading, at any position.

    Raises FooterError if the file is not Parquet, truncated or encrypted, or if `parse_footer` refuses its metadata.
    """
    size = file.seek(0, os.SEEK_END)
    if size < len(MAGIC) + TAIL_BYTES:
        raise FooterError(f"Parquet file: {size} bytes are too few; the file is truncated or not Parquet")
    file.seek(0)
    head = file.read(len(MAGIC))
    file.seek(size - TAIL_BYTES)
    length, magic = struct.unpack("<I4s", file.read(TAIL_BYTES))
    if ENCRYPTED_MAGIC in (head, magic):
        raise FooterError("Parquet file: encrypted footers are not supported; store the file decrypted")
    if head != MAGIC or magic != MAGIC:
        raise FooterError(
            f"Parquet file: begins with {head!r} and ends with {magic!r}; both must be {MAGIC!r}: the file is "
            "truncated or not Parquet"
        )
    start = size - TAIL_BYTES - length
    if start < len(MAGIC):
        raise FooterError(
            f"Parquet file: declares a footer of {length} bytes, but the file of {size} bytes has room for only "
            f"{size - len(MAGIC) - TAIL_BYTES}"
        )
    if length > MOST_METADATA_BYTES:
        raise FooterError(f"Parquet file: the footer has {length} bytes, at most {MOST_METADATA_BYTES} are allowed")
    file.seek(start)
    return parse_footer(file.read(length), size)


def parse_footer(metadata: bytes, file_bytes: int) -> Footer:
    """Parse a footer. `metadata` are its bytes (FileMetaData, without length and magic), `file_bytes` is the size of
    its file.

    Raises FooterError if the metadata are broken or encrypted, refer to another file, or contradict themselves. They
    contradict themselves if byte ranges overlap, extend beyond the data or are too far apart for 32 bits, or if counts
    are negative or inconsistent.
    """
    found = read_struct(metadata, _FILE_METADATA)
    if 8 in found or 9 in found:
        raise FooterError("Parquet footer: encrypted files are not supported; store the file decrypted")
    created_by = found.get(6, b"")
    _check_writer(created_by)
    columns = leaves(found[2], found.get(7))
    data_end = file_bytes - TAIL_BYTES - len(metadata)
    paths = [[name.encode() for name in column.path] for column in columns]
    groups = tuple(_row_group(index, group, columns, paths) for index, group in enumerate(found[4]))
    if has_false_bounds(created_by):
        groups = tuple(_without_bounds(group) for group in groups)
    rows = sum(group.rows for group in groups)
    if rows != found[3]:
        raise FooterError(f"Parquet footer: the row groups have {rows} rows in total, but {found[3]} are declared")
    _check_ranges(groups, data_end)
    return Footer(rows, columns, groups, schema_hash(found[2]), file_bytes, data_end, len(metadata))


def _check_writer(created_by: bytes) -> None:
    """Refuse files of parquet-mr before 1.2.9. Their chunks are longer than declared, so pyarrow would read beyond the
    declared end (PARQUET-816)."""
    match = re.match(rb"parquet-mr(?: version (\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?)?", created_by, re.IGNORECASE)
    if match and tuple(int(part or 0) for part in match.groups()) < (1, 2, 9):
        raise FooterError(
            "Parquet footer: written by parquet-mr before 1.2.9, which declares wrong byte ranges; rewrite the file"
        )


LAST_FALSE_FASTPARQUET = (2026, 9, 0)
"""The last fastparquet release known to write wrong bounds; bounds of later releases are trusted."""


def has_false_bounds(created_by: bytes) -> bool:
    """Return whether the file's writer is known to write bounds that values exceed.

    For categorical columns fastparquet uses the order of the categories instead of the values. For [5, 3, 9] it writes
    5 as the minimum. A file does not show which columns are categorical, so all bounds of the file are distrusted. A
    fastparquet file without a version is distrusted as well.
    """
    match = re.match(rb"fastparquet(?:\D*(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?)?", created_by, re.IGNORECASE)
    return match is not None and tuple(int(part or 0) for part in match.groups()) <= LAST_FALSE_FASTPARQUET


def _without_bounds(group: RowGroup) -> RowGroup:
    """Return the row group without bounds. Keep its null counts, which are correct."""
    chunks = []
    for chunk in group.chunks:
        known = chunk.statistics
        bare = None if known is None else Statistics(None, None, None, None, known.nulls, known.nans)
        chunks.append(Chunk(chunk.start, chunk.length, chunk.values, bare))
    return RowGroup(group.rows, tuple(chunks))


def _row_group(index: int, found: dict[int, Any], columns: tuple[Column, ...], paths: list[list[bytes]]) -> RowGroup:
    rows, chunks = found[3], found[1]
    if rows < 0:
        raise FooterError(f"Parquet footer: row group {index} declares {rows} rows; the number must not be negative")
    if len(chunks) != len(columns):
        raise FooterError(f"Parquet footer: row group {index} has {len(chunks)} chunks for {len(columns)} columns")
    made = []
    for number, (chunk, column, path) in enumerate(zip(chunks, columns, paths, strict=True)):
        try:
            made.append(_chunk(chunk, column, path, rows))
        except FooterError as error:
            raise FooterError(f"Parquet footer: row group {index}, column {number}: {error}") from error
    return RowGroup(rows, tuple(made))


def _chunk(found: dict[int, Any], column: Column, path: list[bytes], rows: int) -> Chunk:
    if found.get(1):
        raise FooterError(
            "the chunk's file_path names a separate file; only files that contain all their chunks are supported"
        )
    metadata = found.get(3)
    if 8 in found or 9 in found:
        raise FooterError("the chunk is encrypted; store the file decrypted")
    if metadata is None:
        raise FooterError("the chunk has no metadata; write the file again")
    if metadata[3] != path or column.physical != _physical(metadata[1]):
        raise FooterError("the chunk has another path or type than the schema's column")
    start = _start(metadata)
    length = metadata[7]
    values = metadata[5]
    if start < 0 or length < 0 or values < 0 or metadata[6] < 0:
        raise FooterError(
            f"declares {values} values in {length} bytes at byte {start} ({metadata[6]} uncompressed); no number may "
            "be negative"
        )
    if column.flat and values != rows:
        raise FooterError(f"has {values} values, but its row group has {rows} rows")
    return Chunk(start, length, values, _statistics(metadata[12], column, values) if 12 in metadata else None)


def _physical(number: int) -> str | None:
    return PHYSICAL_TYPES[number] if 0 <= number < len(PHYSICAL_TYPES) else None


def _start(metadata: dict[int, Any]) -> int:
    """Return the start of a chunk. This is its dictionary page, unless the position of that page is invalid (0, or not
    before the first data page)."""
    first: int = metadata[9]
    dictionary: int = metadata.get(11, 0)
    return dictionary if 0 < dictionary < first else first


def _statistics(found: dict[int, Any], column: Column, values: int) -> Statistics:
    nulls, nans = found.get(3), found.get(9)
    if (nulls or 0) < 0 or (nans or 0) < 0 or (nulls or 0) + (nans or 0) > values:
        raise FooterError(f"counts {nulls or 0} nulls and {nans or 0} NaNs, which do not fit its {values} values")
    minimum = maximum = minimum_exact = maximum_exact = None
    if column.order != "undefined":
        minimum, maximum = found.get(6), found.get(5)
        minimum_exact, maximum_exact = found.get(8), found.get(7)
    if minimum is None and maximum is None and _is_signed(column):
        minimum, maximum = found.get(2), found.get(1)
        minimum_exact = maximum_exact = None
    return Statistics(minimum, maximum, minimum_exact, maximum_exact, nulls, nans)


def _is_signed(column: Column) -> bool:
    """Return whether the deprecated statistics min and max, which were compared as signed numbers, follow the column's
    order."""
    if column.logical is None:
        return column.physical in _SIGNED
    if column.logical.name == "integer":
        return column.logical.signed
    return column.logical.name in ("date", "time", "timestamp", "decimal") and column.physical in _SIGNED


def _check_ranges(groups: tuple[RowGroup, ...], data_end: int) -> None:
    spans = []
    for index, group in enumerate(groups):
        base = min((chunk.start for chunk in group.chunks), default=0)
        for number, chunk in enumerate(group.chunks):
            start, end = chunk.start, chunk.start + chunk.length
            where = (index, number)
            # An empty row group is never read, and writers set the positions of its chunks to 0.
            is_read = start < end and group.rows > 0
            if end > data_end or (is_read and start < len(MAGIC)):
                raise FooterError(
                    f"{_at(where)} declares bytes {start} to {end}, outside the data (bytes {len(MAGIC)} to {data_end})"
                )
            if chunk.length > MOST_FROM_BASE:
                raise FooterError(
                    f"{_at(where)} has {chunk.length} bytes; 4 GiB or more are not supported: write smaller row groups"
                )
            if start - base > MOST_FROM_BASE:
                raise FooterError(
                    f"{_at(where)} begins {start - base} bytes after the start of the row group; 4 GiB or more are not "
                    "supported: write smaller row groups"
                )
            if is_read:
                spans.append((start, end, where))
    spans.sort()
    for (_, end, one), (start, _, other) in pairwise(spans):
        if start < end:
            raise FooterError(
                f"{_at(other)} begins at byte {start}, inside the chunk of row group {one[0]}, column {one[1]}, which "
                f"ends at byte {end}"
            )


def _at(where: tuple[int, int]) -> str:
    return f"Parquet footer: the chunk of row group {where[0]}, column {where[1]}"
