"""The units of a physical column (a flat column, or a flat part of a nested one) and their positions in the file.

A unit is one EncUnit of values, or two EncUnits: a dictionary and the indices into it. An EncUnit is the smallest part
of a column that can be decoded. An IOUnit is a group of units of a column that were written together. This module
checks counts and positions in the metadata. It reads no data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from libraries.f3.container.faults import may_be_pairs, wrong_rows
from libraries.f3.container.metadata import LOCAL_DICTIONARY, Chunk, EncUnit
from libraries.f3.errors import F3Error

MOST_UNIT_ROWS = 2**24
"""Maximum rows of an EncUnit: 256 times the default. The limit also bounds the memory that a few forged bytes can
request."""

Key = tuple[int, int]
"""Offset and size in the file, which identify an IOUnit or a unit."""


def key_of(chunk: Chunk) -> Key:
    """Return the key of an IOUnit."""
    return chunk.offset, chunk.size_bytes


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of rows: values, or a local dictionary followed by indices. `values` is the EncUnit of the values or
    indices."""

    chunk: Chunk
    start: int
    """Offset in the file of the values or indices."""
    values: EncUnit
    dictionary: EncUnit | None
    key: Key
    """Offset and size of the unit in bytes, with its dictionary."""

    @property
    def rows(self) -> int:
        """Number of values."""
        return self.values.rows

    @property
    def stop(self) -> int:
        """Offset in the file at which the unit ends."""
        return self.start + self.values.size_bytes

    @property
    def unmarked(self) -> bool:
        """Whether the unit has a local dictionary, but its IOUnit (group of units) is marked as having none.
        `container.faults` describes this fault."""
        return self.dictionary is not None and self.chunk.scope != LOCAL_DICTIONARY

    @property
    def kind(self) -> tuple[int, int, int]:
        """Dictionary scope, id of the shared dictionary (0: none) and id of the module (-1: none). Consecutive units
        with the same kind are decoded together."""
        wasm_id = self.values.wasm_id
        scope = self.chunk.scope if self.dictionary is None else LOCAL_DICTIONARY
        return scope, self.chunk.dictionary or 0, -1 if wasm_id is None else wasm_id


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A physical column over one or more row groups.

    `starts` has the first row of each unit, and the end of the last.
    """

    chunks: tuple[Chunk, ...]
    units: tuple[Unit, ...]
    starts: np.ndarray

    @property
    def rows(self) -> int:
        """Number of values."""
        return int(self.starts[-1])


def stored_column(chunks: Sequence[Chunk], what: str, data_end: int, *, local: bool = False) -> StoredColumn:
    """Return the physical column that consists of these IOUnits, whose bytes have to end before `data_end`.

    `local` is True if the column has local dictionaries in another row group. IOUnits that are marked as having no
    dictionary are then read as pairs of a dictionary and indices if their counts allow it. Raises F3Error if positions
    or counts are impossible.
    """
    units: list[Unit] = []
    for chunk in chunks:
        if chunk.offset + chunk.size_bytes > data_end:
            raise F3Error(f"{what}: an IOUnit at {chunk.offset} of {chunk.size_bytes} bytes reaches into the metadata")
        paired = chunk.scope == LOCAL_DICTIONARY or (local and may_be_pairs(chunk))
        found = _pairs(chunk, what) if paired else _singles(chunk)
        rows = sum(unit.rows for unit in found)
        if rows != chunk.rows:
            raise F3Error(f"{what}: {wrong_rows(chunk, rows)}")
        units += found
    for unit in units:
        rows = max(unit.rows, 0 if unit.dictionary is None else unit.dictionary.rows)
        if rows > MOST_UNIT_ROWS:
            raise F3Error(f"{what}: an EncUnit of {rows} rows exceeds the limit of {MOST_UNIT_ROWS}")
    return StoredColumn(tuple(chunks), tuple(units), _starts(units))


def joined(columns: Sequence[StoredColumn]) -> StoredColumn:
    """Join the units of a column from several row groups."""
    if len(columns) == 1:
        return columns[0]
    units = tuple(unit for column in columns for unit in column.units)
    return StoredColumn(tuple(chunk for column in columns for chunk in column.chunks), units, _starts(units))


def _starts(units: Sequence[Unit]) -> np.ndarray:
    starts = np.zeros(len(units) + 1, np.int64)
    np.cumsum(np.array([unit.rows for unit in units], np.int64), out=starts[1:])
    return starts


def _singles(chunk: Chunk) -> list[Unit]:
    start = chunk.offset
    found = []
    for unit in chunk.units:
        found.append(Unit(chunk, start, unit, None, (start, unit.size_bytes)))
        start += unit.size_bytes
    return found


def _pairs(chunk: Chunk, what: str) -> list[Unit]:
    pairs = len(chunk.units) // 2
    even = tuple(range(0, 2 * pairs, 2))
    if len(chunk.units) != 2 * pairs:
        count = len(chunk.units)
        raise F3Error(f"{what}: pairs of a dictionary and its indices need an even number of EncUnits (got {count})")
    if chunk.dictionary_units not in ((), even):
        raise F3Error(f"{what}: the dictionaries must be every second EncUnit, from the first on, but are not")
    start = chunk.offset
    found = []
    for dictionary, indices in zip(chunk.units[::2], chunk.units[1::2], strict=True):
        size_bytes = dictionary.size_bytes + indices.size_bytes
        found.append(Unit(chunk, start + dictionary.size_bytes, indices, dictionary, (start, size_bytes)))
        start += size_bytes
    return found
