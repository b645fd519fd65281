"""Helpers for operations that never have a whole table in memory: reading the data set in batches, reading one byte of
each page of a batch, and computing a digest of all batches."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as of
import xxhash

from bench_runner.clock import Laps
from bench_runner.operations import targets
from bench_runner.operations.operation import OperationContext
from bench_runner.operations.pages.touching import touch_table
from data_generator.cache import read_rows


def source(stage: OperationContext, rows: int, batch_rows: int, laps: Laps) -> Iterator[pa.RecordBatch]:
    """Yield batches of at most `batch_rows` rows with the first `rows` rows of the data set. Each batch has its own
    memory, so that an engine may keep the batch. Timing is paused while a batch is read from the cached data set."""
    start = batches = size_bytes = 0
    while start < rows:
        with laps.paused():
            # A batch never has rows of two batches of the cached data set, so that nothing needs to be joined.
            fresh = [next(read_rows(stage.dataset, start, min(batch_rows, rows - start)))]
            start, batches, size_bytes = start + fresh[0].num_rows, batches + 1, size_bytes + fresh[0].nbytes
            note(laps, batches, size_bytes)
        # Keep no reference to a batch after yielding it.
        yield fresh.pop().replace_schema_metadata(None)


def note(laps: Laps, batches: int, size_bytes: int) -> None:
    """Record the number of batches of a stream and their total size, as figures of the sample."""
    laps.note("batches_count", batches)
    laps.note("result_bytes", size_bytes)


def touch(table: pa.Table) -> None:
    """Read one byte in each page that the table's rows occupy (method rule 7). Other pages of the table's buffers are
    skipped. If the table is a slice of a larger batch, it shares the buffers of the batch, so that each slice would
    read all pages of the batch again."""
    if touch_table(table) is not None:
        return
    for column in table.columns:
        for chunk in column.chunks:
            for address, size_bytes in _places(chunk):
                targets.touch_pages(address, size_bytes)


def _places(array: pa.Array) -> Iterator[tuple[int, int]]:
    """Yield the address and size in bytes of each part of a buffer that the array's rows occupy."""
    buffers, start, count, kind = array.buffers(), array.offset, len(array), array.type
    if not count or of.is_null(kind):
        return
    if buffers[0] is not None:
        yield buffers[0].address + start // 8, (start + count + 7) // 8 - start // 8
    if _has_offsets(kind):
        offsets = _offsets(array)
        yield offsets.ctypes.data, offsets.nbytes
        if _has_items(kind):
            yield from _places(_items(array, offsets))
        elif buffers[2] is not None and offsets[-1] > offsets[0]:
            yield buffers[2].address + int(offsets[0]), int(offsets[-1] - offsets[0])
    elif of.is_fixed_size_list(kind):
        yield from _places(array.values.slice(start * kind.list_size, count * kind.list_size))
    elif of.is_struct(kind):
        for place in range(kind.num_fields):
            yield from _places(array.field(place))
    elif of.is_dictionary(kind):
        yield from _places(array.indices)
        yield from _places(array.dictionary)
    elif of.is_string_view(kind) or of.is_binary_view(kind):
        # Finding the parts that the rows occupy would require a look at every value, so yield whole buffers.
        yield from ((buffer.address, buffer.size) for buffer in buffers[1:] if buffer is not None and buffer.size)
    else:
        first, last = start * kind.bit_width // 8, -(-(start + count) * kind.bit_width // 8)
        if last > first:
            yield buffers[1].address + first, last - first


def joined(batches: Sequence[pa.Table]) -> pa.Table:
    """Return one table with the rows of all batches.

    Readers of text files guess the types of each batch separately. Each column of the table gets one type that fits its
    values in all batches. Batches in which all values of the column are missing have no effect on this type. Raises
    ArrowException if there is no such type.
    """
    types = [batch.schema.remove_metadata() for batch in batches]
    if all(each.equals(types[0]) for each in types):
        return pa.concat_tables(batches)
    floats = {field.name for each in types for field in each if of.is_floating(field.type)}
    plain = [_of_few_types(batch, floats) for batch in batches]
    return pa.concat_tables(plain, promote_options="permissive")


def _of_few_types(table: pa.Table, floats: Collection[str]) -> pa.Table:
    """Return the table with the null type for columns without values. If the column's name is in `floats`, because
    another batch has floats in this column, convert booleans to floats, as pandas does."""
    for place, field in enumerate(table.schema):
        column = table.column(place)
        if column.null_count == table.num_rows:
            table = table.set_column(place, field.name, pa.nulls(table.num_rows))
        elif of.is_boolean(field.type) and field.name in floats:
            table = table.set_column(place, field.name, column.cast(pa.float64()))
    return table


class StreamDigest:
    """Digest (XXH3) of the rows of a stream: their types, nulls, values and lengths. How the rows are divided into
    batches does not change the digest.

    The digest must be fast, because an engine that works in the background is charged for its time (see `Laps.paused`).
    SHA-256 takes five times as long. It would be safer against rows that are made to have the same digest, but here
    both digests come from the same engine and file.

    The bytes that a buffer contains in the place of a null are ignored. If a reader of text files changes the type of a
    column between batches, the digest depends on the new type and on the row where this type begins.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._types: dict[str, tuple[pa.DataType, int]] = {}
        self._hashes: dict[tuple[str, ...], Any] = {}

    def update(self, table: pa.Table) -> None:
        """Add the next rows."""
        for field, column in zip(table.schema, table.columns, strict=True):
            known, since = self._types.get(field.name, (None, 0))
            if known != field.type:
                since = self.rows
                self._types[field.name] = (field.type, since)
            for chunk in column.chunks:
                self._feed((field.name, str(since), str(field.type)), chunk)
        self.rows += table.num_rows

    def hexdigest(self) -> str:
        """Return the digest of all rows as 32 hexadecimal digits."""
        whole = xxhash.xxh3_128(f"{self.rows}\x1d{list(self._types)}".encode())
        for path in sorted(self._hashes):
            whole.update(f"\x1e{path}\x1f".encode() + self._hashes[path].digest())
        return whole.hexdigest()

    def _feed(self, path: tuple[str, ...], array: pa.Array) -> None:
        kind = array.type
        if of.is_string_view(kind) or of.is_binary_view(kind):
            # pyarrow has no call that drops the nulls of view types.
            array = array.cast(pa.large_binary())
            kind = array.type
        if not len(array):
            return
        self._hash(path, "there", array.is_valid().cast(pa.uint8()))
        if of.is_null(kind):
            return
        if of.is_struct(kind):
            # In the children that flatten() returns, items of missing structs are missing too.
            for place, child in enumerate(array.flatten()):
                self._feed((*path, str(place)), child)
            return
        present = array.drop_null() if array.null_count else array
        if of.is_dictionary(kind):
            self._feed((*path, "values"), present.dictionary_decode())
        elif _has_offsets(kind):
            offsets = _offsets(present)
            self._update((*path, "lengths"), np.diff(offsets).astype(np.int64))
            if _has_items(kind):
                self._feed((*path, "items"), _items(present, offsets))
            elif (bytes_of := present.buffers()[2]) is not None and len(offsets):
                self._update((*path, "bytes"), memoryview(bytes_of)[int(offsets[0]) : int(offsets[-1])])
        elif of.is_fixed_size_list(kind):
            self._feed((*path, "items"), present.flatten())
        else:
            self._hash(path, "values", present.cast(pa.uint8()) if of.is_boolean(kind) else present)

    def _hash(self, path: tuple[str, ...], what: str, array: pa.Array) -> None:
        width, start = array.type.bit_width // 8, array.offset
        if width and len(array):
            self._update((*path, what), memoryview(array.buffers()[1])[start * width : (start + len(array)) * width])

    def _update(self, path: tuple[str, ...], data: Any) -> None:
        self._hashes.setdefault(path, xxhash.xxh3_128()).update(data)


def _has_offsets(kind: pa.DataType) -> bool:
    plain = of.is_string(kind) or of.is_binary(kind) or of.is_large_string(kind) or of.is_large_binary(kind)
    return bool(plain or _has_items(kind))


def _has_items(kind: pa.DataType) -> bool:
    return bool(of.is_list(kind) or of.is_large_list(kind) or of.is_map(kind))


def _items(array: pa.Array, offsets: np.ndarray) -> pa.Array:
    """Return the items of the rows, from the first item of the first row to the last item of the last row."""
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    return array.values.slice(first, last - first)


def _offsets(array: pa.Array) -> np.ndarray:
    """Return the offsets of the array's rows and the end of the last row, or an empty array if there are no rows."""
    kind = array.type
    wide = of.is_large_string(kind) or of.is_large_binary(kind) or of.is_large_list(kind)
    if not len(array):
        return np.empty(0, np.int64)
    first, last = array.offset, array.offset + len(array) + 1
    return np.frombuffer(array.buffers()[1], np.int64 if wide else np.int32)[first:last]
