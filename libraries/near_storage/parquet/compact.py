"""Compact metadata from Parquet footers, for skipping row groups and for range reads: 24 bytes per column chunk
(Weigand 2025, 7.1).

    offset  u32  of the chunk's first byte, counted from the first byte of its row group
    length  u32
    minimum u64  codes, which are numbers in the order of the values (libraries/filters/codes.py). They bound all
    maximum u64  values of the chunk that are neither null nor NaN (summaries.py)

In addition, there are three bits per chunk (HAS_NULLS, MAY_HOLD_NAN, EXACT), the base, rows and file of each row group,
and the path and kind of each column. One CompactMetadata may hold the row groups of many files with the same columns.
Codes are stored column by column, with minima and maxima in separate arrays, because a filter reads few columns of all
row groups. This layout is 2.5 times as fast as records of 24 bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from libraries.filters.codes import CodeKind
from libraries.near_storage.errors import DamagedError, RequestError
from libraries.near_storage.parquet.column_kinds import kind_of
from libraries.near_storage.parquet.footer import Footer
from libraries.near_storage.parquet.summaries import summarize

PLACE = np.dtype([("offset", "<u4"), ("length", "<u4")])

_MARK = b"NSM1"
_DIGEST_BYTES = 32


class CompactColumn(msgspec.Struct, frozen=True):
    """A leaf column: its path in the schema, the kind of its values, and whether each row has one value or null."""

    path: tuple[str, ...]
    kind: CodeKind
    flat: bool

    @property
    def name(self) -> str:
        """The path joined by dots. Two columns may share a name but not a path."""
        return ".".join(self.path)


class _Head(msgspec.Struct, frozen=True):
    columns: tuple[CompactColumn, ...]
    groups: int
    files: int


@dataclass(frozen=True)
class CompactMetadata:
    """The compact metadata of C leaf columns and G row groups, which belong to `files` files.

    places  PLACE[C, G]
    codes   uint64[2, C, G], minima and maxima
    flags   uint8[3, C, ceil(G / 8)], one bit per chunk, highest bit first; HAS_NULLS, MAY_HOLD_NAN, EXACT in this order
    rows    int64[G]
    base    uint64[G], the byte of the file from which the chunk offsets of a row group are counted
    file    int32[G], the number of each row group's file: 0 to files - 1, ascending
    """

    columns: tuple[CompactColumn, ...]
    files: int
    places: npt.NDArray[np.void]
    codes: npt.NDArray[np.uint64]
    flags: npt.NDArray[np.uint8]
    rows: npt.NDArray[np.int64]
    base: npt.NDArray[np.uint64]
    file: npt.NDArray[np.int32]

    @property
    def groups(self) -> int:
        """The number of row groups."""
        return len(self.rows)

    @property
    def chunks(self) -> npt.NDArray[np.void]:
        """Positions of the chunks as PLACE[G, C]: a view, contiguous by column."""
        return self.places.T

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays and of the column descriptions, as `save` writes them."""
        return sum(part.nbytes for part in self._arrays()) + len(self._head())

    def flag(self, which: int, column: int) -> npt.NDArray[np.bool_]:
        """Return one of the three bits (HAS_NULLS, MAY_HOLD_NAN or EXACT) for all chunks of a column: bool[G]."""
        return np.unpackbits(self.flags[which, column], count=self.groups).view(np.bool_)

    def of_file(self, file: int) -> CompactMetadata:
        """Return the metadata of one file's row groups. The file gets number 0. Raises RequestError if there is no such
        file."""
        if not 0 <= file < self.files:
            raise RequestError(f"compact metadata: no file {file}; there are {self.files} files, counted from 0")
        first, last = (int(place) for place in np.searchsorted(self.file, (file, file + 1)))
        bits = np.unpackbits(self.flags[..., first // 8 : -(-last // 8)], axis=-1)[..., first % 8 :][
            ..., : last - first
        ]
        return CompactMetadata(
            self.columns,
            1,
            np.ascontiguousarray(self.places[:, first:last]),
            np.ascontiguousarray(self.codes[:, :, first:last]),
            np.packbits(bits, axis=-1),
            self.rows[first:last],
            self.base[first:last],
            np.zeros(last - first, np.int32),
        )

    def save(self) -> bytes:
        """Serialize everything, followed by its blake2b-256 digest."""
        head = self._head()
        parts = [_MARK, len(head).to_bytes(4, "little"), head, *(part.tobytes() for part in self._arrays())]
        body = b"".join(parts)
        return body + hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()

    def _arrays(self) -> tuple[npt.NDArray[Any], ...]:
        return self.places, self.codes, self.flags, self.rows, self.base, self.file

    def _head(self) -> bytes:
        return msgspec.msgpack.encode(_Head(self.columns, self.groups, self.files))


def load(data: bytes) -> CompactMetadata:
    """Load the output of `save`. The arrays are read-only views of `data`.

    Raises DamagedError if the digest does not match, or if the bytes were not written by `save`.
    """
    body, digest = memoryview(data)[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest() != digest:
        raise DamagedError(f"compact metadata: {len(data)} bytes do not match their digest; create the metadata again")
    end = 8 + int.from_bytes(body[4:8], "little")
    try:
        head = msgspec.msgpack.decode(body[8:end], type=_Head)
    except msgspec.DecodeError as error:
        raise DamagedError(
            f"compact metadata: the header after {bytes(body[:4])!r} cannot be decoded ({error}); create the "
            "metadata again"
        ) from error
    columns, groups = len(head.columns), head.groups
    bit_bytes = -(-groups // 8)
    count = columns * groups
    sizes = (PLACE.itemsize * count, 16 * count, 3 * columns * bit_bytes, 8 * groups, 8 * groups, 4 * groups)
    if body[:4] != _MARK:
        raise DamagedError(
            f"compact metadata: begin with {bytes(body[:4])!r}, expected {_MARK!r}; create the metadata again"
        )
    if groups < 0 or end + sum(sizes) != len(body):
        raise DamagedError(
            f"compact metadata: {len(body)} bytes do not fit {groups} row groups of {columns} columns; create the "
            "metadata again"
        )
    places = list(accumulate(sizes, initial=end))
    where, codes, flags, rows, base, file = (body[start:stop] for start, stop in pairwise(places))
    return CompactMetadata(
        head.columns,
        head.files,
        np.frombuffer(where, PLACE).reshape(columns, groups),
        np.frombuffer(codes, "<u8").reshape(2, columns, groups),
        np.frombuffer(flags, np.uint8).reshape(3, columns, bit_bytes),
        np.frombuffer(rows, "<i8"),
        np.frombuffer(base, "<u8"),
        np.frombuffer(file, "<i4"),
    )


def from_footer(footer: Footer) -> CompactMetadata:
    """Return the compact metadata of one file, made from its footer. `parse_footer` must have checked the footer."""
    columns, groups = footer.columns, footer.row_groups
    base = np.array([min((chunk.start for chunk in group.chunks), default=0) for group in groups], np.uint64)
    places = np.empty((len(columns), len(groups)), PLACE)
    codes = np.empty((2, len(columns), len(groups)), np.uint64)
    bits = np.empty((3, len(columns), len(groups)), np.bool_)
    for number, column in enumerate(columns):
        chunks = [group.chunks[number] for group in groups]
        kind = kind_of(column)
        summaries = [summarize(chunk, column, kind) for chunk in chunks]
        places[number]["offset"] = np.array([chunk.start for chunk in chunks], np.uint64) - base
        places[number]["length"] = [chunk.length for chunk in chunks]
        codes[0, number] = [summary.minimum for summary in summaries]
        codes[1, number] = [summary.maximum for summary in summaries]
        for which, name in enumerate(("has_nulls", "may_hold_nan", "exact")):
            bits[which, number] = [getattr(summary, name) for summary in summaries]
    return CompactMetadata(
        tuple(CompactColumn(column.path, kind_of(column), column.flat) for column in columns),
        1,
        places,
        codes,
        np.packbits(bits, axis=-1),
        np.array([group.rows for group in groups], np.int64),
        base,
        np.zeros(len(groups), np.int32),
    )


def together(parts: Sequence[CompactMetadata]) -> CompactMetadata:
    """Concatenate several compact metadata, and number their files consecutively.

    Raises RequestError if there are no parts, or if their columns differ in path, kind or flatness.
    """
    if not parts:
        raise RequestError("compact metadata: nothing to concatenate")
    columns = parts[0].columns
    for index, part in enumerate(parts):
        if part.columns != columns:
            raise RequestError(
                f"compact metadata: part {index} has other columns than part 0; a table must have one schema"
            )
    bits = [np.unpackbits(part.flags, axis=-1, count=part.groups) for part in parts]
    files_before = np.cumsum([0, *(part.files for part in parts)])
    return CompactMetadata(
        columns,
        int(files_before[-1]),
        np.concatenate([part.places for part in parts], axis=1),
        np.concatenate([part.codes for part in parts], axis=2),
        np.packbits(np.concatenate(bits, axis=-1), axis=-1),
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.base for part in parts]),
        np.concatenate([part.file + np.int32(before) for part, before in zip(parts, files_before, strict=False)]),
    )
