"""Read single rows of an Arrow IPC file, by reading only the bytes of these rows.

A value of fixed width is read directly. Texts and lists are found by their offsets, which are read first. The caller
supplies a file descriptor, and the positions of a column's buffers in the file for each record batch.
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
    """Runs of neighbouring rows. All rows of a run are in the same record batch.

    The fields are int64 arrays with one element for each run: the number of the record batch, the number of the first
    row within this batch, and the number of rows in the run."""

    batches: np.ndarray
    firsts: np.ndarray
    counts: np.ndarray

    @property
    def rows(self) -> int:
        """Total number of rows in all runs."""
        return int(self.counts.sum())

    def scaled(self, size: int) -> Runs:
        """Return the runs of the values in a list column, for the rows in these runs. Each row is a list of `size`
        values."""
        return Runs(self.batches, self.firsts * size, self.counts * size)

    def single(self) -> tuple[np.ndarray, np.ndarray]:
        """Return two arrays with one element for each row: the number of the row's batch, and the row's number within
        this batch."""
        if len(self.counts) == self.rows and bool((self.counts == 1).all()):
            return self.batches, self.firsts
        ends = np.cumsum(self.counts)
        within = np.arange(self.rows) - np.repeat(ends - self.counts, self.counts)
        return np.repeat(self.batches, self.counts), np.repeat(self.firsts, self.counts) + within


def has_rows(kind: pa.DataType) -> bool:
    """Return whether `read_rows` supports this type. It does not support dictionaries, views and some other types."""
    import pyarrow as pa
    import pyarrow.types as of

    if isinstance(kind, pa.BaseExtensionType) or of.is_dictionary(kind) or of.is_union(kind):
        return False
    views = (of.is_string_view, of.is_binary_view, of.is_list_view, of.is_large_list_view)
    if of.is_run_end_encoded(kind) or any(is_view(kind) for is_view in views):
        return False
    return all(has_rows(kind.field(place).type) for place in range(kind.num_fields))


def read_rows(file: int, kind: pa.DataType, buffers: Iterator[np.ndarray], runs: Runs) -> pa.Array:
    """Return the given rows of a column, or of the child array of a nested column, as an Arrow array.

    `kind` is the type of the column. `buffers` yields one int64 array for each buffer of the column, in the order in
    which Arrow IPC messages list the buffers. The array has one element for each record batch: the buffer's position in
    the file, or -1 if the batch has no such buffer. Raises AdapterError if the file is too short.
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
    """Return the validity bitmap of the rows; None if no batch has such a bitmap, which means that no row is null."""
    import pyarrow as pa

    if bool((starts < 0).all()):
        return None
    return pa.py_buffer(np.packbits(_bits(file, starts, runs), bitorder="little"))


def _bits(file: int, starts: np.ndarray, runs: Runs) -> np.ndarray:
    """Return an array with a byte for each row: its bit in the buffer, or 1 if the row's batch has no such buffer."""
    batches, rows = runs.single()
    begins = starts[batches]
    held = begins >= 0
    bits = np.ones(len(rows), np.uint8)
    inside = rows[held]
    found = _pieces(file, begins[held] + (inside >> 3), np.ones(len(inside), np.int64))
    bits[held] = (found >> (inside & 7).astype(np.uint8)) & 1
    return bits


def _offsets(file: int, starts: np.ndarray, runs: Runs, kind: type[np.signedinteger]) -> tuple[np.ndarray, Runs]:
    """Read where texts or lists begin. Return their offsets for the result, and the runs of the values in the file that
    belong to these texts or lists.

    The result's offsets start at 0. `starts` are the positions of the offset buffer in the file, one for each batch."""
    width = np.dtype(kind).itemsize
    found = _pieces(file, starts[runs.batches] + runs.firsts * width, (runs.counts + 1) * width).view(kind)
    # For each run, one offset more than rows is read, because the last row ends at the next offset.
    ends = np.cumsum(runs.counts + 1)
    first = ends - runs.counts - 1
    lows, highs = found[first].astype(np.int64), found[ends - 1].astype(np.int64)
    left = np.arange(runs.rows) + np.repeat(np.arange(len(runs.counts)), runs.counts)
    lengths = found[left + 1].astype(np.int64) - found[left]
    offsets = np.zeros(runs.rows + 1, kind)
    np.cumsum(lengths, out=offsets[1:])
    # Runs without values are left out, because the file may have no buffer of values for them.
    held = highs > lows
    return offsets, Runs(runs.batches[held], lows[held], (highs - lows)[held])


def _pieces(file: int, starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the concatenated bytes of pieces of the file, given by their positions and sizes.

    Consecutive pieces that are also neighbours in the file are read by one `preadv`."""
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
    """Fill `view` with the bytes from position `start` on, by as many reads as needed.

    One read may return fewer bytes than requested, and never returns more than 2 GiB. Raises AdapterError if the file
    ends too early."""
    filled = 0
    while filled < len(view):
        received = os.preadv(file, (view[filled:],), start + filled)
        if not received:
            raise AdapterError(f"the file ends too early: a row needs {len(view):,} bytes from byte {start:,} on")
        filled += received
