"""Read rows of an Arrow IPC file by plain reads: fixed widths directly, texts and lists by their offsets.

The caller supplies a file descriptor and the offsets of a column's buffers in each batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from adapters.errors import AdapterError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Runs:
    """Runs of neighbouring rows, as int64 arrays: batch, first row in the batch, and number of rows of each run."""

    batches: np.ndarray
    firsts: np.ndarray
    counts: np.ndarray

    @property
    def rows(self) -> int:
        """Number of rows of all runs."""
        return int(self.counts.sum())

    def scaled(self, size: int) -> Runs:
        """Return the runs of the values in lists of `size` values each."""
        return Runs(self.batches, self.firsts * size, self.counts * size)

    def single(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the batch, and the row in it, of each single row."""
        if len(self.counts) == self.rows and bool((self.counts == 1).all()):
            return self.batches, self.firsts
        ends = np.cumsum(self.counts)
        within = np.arange(self.rows) - np.repeat(ends - self.counts, self.counts)
        return np.repeat(self.batches, self.counts), np.repeat(self.firsts, self.counts) + within


def has_rows(kind: pa.DataType) -> bool:
    """Return whether rows of this type can be found by their buffers; for dictionaries and views they cannot."""
    import pyarrow as pa
    import pyarrow.types as of

    if isinstance(kind, pa.BaseExtensionType) or of.is_dictionary(kind) or of.is_union(kind):
        return False
    views = (of.is_string_view, of.is_binary_view, of.is_list_view, of.is_large_list_view)
    if of.is_run_end_encoded(kind) or any(is_view(kind) for is_view in views):
        return False
    return all(has_rows(kind.field(place).type) for place in range(kind.num_fields))


def read_rows(file: int, kind: pa.DataType, buffers: Iterator[np.ndarray], runs: Runs) -> pa.Array:
    """Return the rows of a column or of a child of one.

    `buffers` yields the offsets of each of its buffers in the order of a message: one int64 per batch, -1 where a batch
    has none. Raises AdapterError for a file that is too short.
    """
    import pyarrow as pa
    import pyarrow.types as of

    if of.is_null(kind):
        return pa.nulls(runs.rows)
    valid = _validity(file, next(buffers), runs)
    if of.is_struct(kind):
        children = [read_rows(file, each.type, buffers, runs) for each in _fields(kind)]
        return pa.Array.from_buffers(kind, runs.rows, [valid], children=children)
    if of.is_fixed_size_list(kind):
        children = [read_rows(file, kind.value_type, buffers, runs.scaled(kind.list_size))]
        return pa.Array.from_buffers(kind, runs.rows, [valid], children=children)
    if of.is_boolean(kind):
        bits = _bits(file, next(buffers), runs)
        return pa.Array.from_buffers(kind, runs.rows, [valid, pa.py_buffer(np.packbits(bits, bitorder="little"))])
    if _has_offsets(kind):
        offsets, inside = _offsets(file, next(buffers), runs, _offset_type(kind))
        if not kind.num_fields:
            values = pa.py_buffer(_pieces(file, next(buffers)[inside.batches] + inside.firsts, inside.counts))
            return pa.Array.from_buffers(kind, runs.rows, [valid, pa.py_buffer(offsets), values])
        children = [read_rows(file, each.type, buffers, inside) for each in _fields(kind)]
        return pa.Array.from_buffers(kind, runs.rows, [valid, pa.py_buffer(offsets)], children=children)
    width = kind.byte_width
    values = _pieces(file, next(buffers)[runs.batches] + runs.firsts * width, runs.counts * width)
    return pa.Array.from_buffers(kind, runs.rows, [valid, pa.py_buffer(values)])


def _fields(kind: pa.DataType) -> Sequence[pa.Field]:
    return [kind.field(place) for place in range(kind.num_fields)]


def _has_offsets(kind: pa.DataType) -> bool:
    import pyarrow.types as of

    of_lists = of.is_list(kind) or of.is_large_list(kind) or of.is_map(kind)
    return bool(of_lists or _is_text(kind))


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow.types as of

    small = of.is_string(kind) or of.is_binary(kind)
    return bool(small or of.is_large_string(kind) or of.is_large_binary(kind))


def _offset_type(kind: pa.DataType) -> type[np.signedinteger]:
    import pyarrow.types as of

    large = of.is_large_list(kind) or of.is_large_string(kind) or of.is_large_binary(kind)
    return np.int64 if large else np.int32


def _validity(file: int, starts: np.ndarray, runs: Runs) -> pa.Buffer | None:
    """Return the validity bitmap; None if no batch has one, so that no row is null."""
    import pyarrow as pa

    if bool((starts < 0).all()):
        return None
    return pa.py_buffer(np.packbits(_bits(file, starts, runs), bitorder="little"))


def _bits(file: int, starts: np.ndarray, runs: Runs) -> np.ndarray:
    """Return one bit per row, as a byte; 1 in batches without such a buffer."""
    batches, rows = runs.single()
    begins = starts[batches]
    held = begins >= 0
    bits = np.ones(len(rows), np.uint8)
    inside = rows[held]
    found = _pieces(file, begins[held] + (inside >> 3), np.ones(len(inside), np.int64))
    bits[held] = (found >> (inside & 7).astype(np.uint8)) & 1
    return bits


def _offsets(file: int, starts: np.ndarray, runs: Runs, kind: type[np.signedinteger]) -> tuple[np.ndarray, Runs]:
    """Return offsets of the result's rows, from 0, and the runs of the values to which they point."""
    width = np.dtype(kind).itemsize
    found = _pieces(file, starts[runs.batches] + runs.firsts * width, (runs.counts + 1) * width).view(kind)
    # A run has one more offset than rows.
    ends = np.cumsum(runs.counts + 1)
    first = ends - runs.counts - 1
    lows, highs = found[first].astype(np.int64), found[ends - 1].astype(np.int64)
    left = np.arange(runs.rows) + np.repeat(np.arange(len(runs.counts)), runs.counts)
    lengths = found[left + 1].astype(np.int64) - found[left]
    offsets = np.zeros(runs.rows + 1, kind)
    np.cumsum(lengths, out=offsets[1:])
    # Without values a list may lack a buffer for them.
    held = highs > lows
    return offsets, Runs(runs.batches[held], lows[held], (highs - lows)[held])


def _pieces(file: int, starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the bytes at each start, concatenated. Pieces that are also neighbours in the file share a `preadv`."""
    wanted = sizes > 0
    if not wanted.all():
        starts, sizes = starts[wanted], sizes[wanted]
    bytes_read = np.empty(int(sizes.sum()), np.uint8)
    if not len(starts):
        return bytes_read
    new = np.flatnonzero(np.concatenate([[True], starts[1:] != starts[:-1] + sizes[:-1]]))
    ends = np.cumsum(sizes)
    places = (ends - sizes)[new]
    stops = np.append(places[1:], ends[-1])
    view, read = bytes_read.data, os.preadv
    for start, place, stop in zip(starts[new].tolist(), places.tolist(), stops.tolist(), strict=True):
        if read(file, (view[place:stop],), start) != stop - place:
            _read_on(file, view[place:stop], start)
    return bytes_read


def _read_on(file: int, view: memoryview, start: int) -> None:
    """Repeat a read that returned fewer bytes than requested, as it may for over 2 GiB."""
    filled = 0
    while filled < len(view):
        received = os.preadv(file, (view[filled:],), start + filled)
        if not received:
            raise AdapterError(f"the file ends within the {len(view):,} bytes at {start:,} that a row needs")
        filled += received
