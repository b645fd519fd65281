"""Compute the digest of a table's content.

The digest covers the names, types and nullability of the columns, the number of rows of each batch, and the values. The
values are covered as Arrow's buffers: the validity bits if there are nulls, the values, and the offsets of strings,
counted from the first byte of the batch. Lists, maps and structs contribute the buffers of the columns within them.
Categorical columns contribute the codes and, at the end, all categories. The version and the padding of Arrow's file
format do not change the digest.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.types as pt


class TableDigest:
    """SHA-256 over successive batches (1.6 GB/s if the processor supports it)."""

    def __init__(self, schema: pa.Schema) -> None:
        """Start the digest of a table with this schema.

        Raises TypeError for column types that no data set of this package has.
        """
        self._hash = hashlib.sha256()
        self._categories: dict[int, pa.Array] = {}
        """Column number -> categories so far. A batch may add categories to the categories of the previous batches."""
        for column in schema:
            if not _is_defined(column.type.value_type if pt.is_dictionary(column.type) else column.type):
                raise TypeError(f"No digest is defined for the type {column.type} of column {column.name!r}.")
            self._hash.update(f"{column.name}\x1f{column.type}\x1f{column.nullable}\x1e".encode())

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the next batch."""
        self._hash.update(f"\x1d{batch.num_rows}".encode())
        for place, array in enumerate(batch.columns):
            if pt.is_dictionary(array.type):
                self._categories[place] = array.dictionary
                array = array.indices
            self._update_array(array)

    def hexdigest(self) -> str:
        """Return the digest as 64 hexadecimal digits."""
        whole = self._hash.copy()
        for place, values in self._categories.items():
            categories = pa.record_batch([values], names=[str(place)])
            digest = TableDigest(categories.schema)
            digest.update(categories)
            whole.update(digest.hexdigest().encode())
        return whole.hexdigest()

    def _update_array(self, array: pa.Array) -> None:
        buffers = array.buffers()
        start, stop = array.offset, array.offset + len(array)
        if array.null_count:
            self._hash.update(b"\x1cnulls")
            self._hash.update(_bits(buffers[0], start, stop))
        if pt.is_null(array.type) or not len(array):
            return
        if pt.is_boolean(array.type):
            self._hash.update(_bits(buffers[1], start, stop))
        elif _is_variable(array.type):
            wide = pt.is_large_string(array.type) or pt.is_large_binary(array.type)
            offsets = np.frombuffer(buffers[1], np.int64 if wide else np.int32)[start : stop + 1]
            self._hash.update(memoryview(offsets - offsets[0]))
            if buffers[2] is not None:
                self._hash.update(memoryview(buffers[2])[int(offsets[0]) : int(offsets[-1])])
        elif pt.is_struct(array.type):
            for place in range(array.type.num_fields):
                self._update_inside(array.field(place))
        elif pt.is_fixed_size_list(array.type):
            # A fixed-size list has child values even in rows where the list is null. The digest includes these values.
            size = array.type.list_size
            self._update_inside(array.values.slice(start * size, len(array) * size))
        elif pt.is_list(array.type) or pt.is_map(array.type):
            offsets = np.frombuffer(buffers[1], np.int32)[start : stop + 1]
            self._hash.update(memoryview(offsets - offsets[0]))
            first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
            for inside in (array.keys, array.items) if pt.is_map(array.type) else (array.values,):
                self._update_inside(inside.slice(first, count))
        else:
            width = array.type.bit_width // 8
            self._hash.update(memoryview(buffers[1])[start * width : stop * width])

    def _update_inside(self, array: pa.Array) -> None:
        # Separate the nesting levels, so that a null in the outer array differs from a null in the inner array.
        self._hash.update(b"\x1f")
        self._update_array(array)


def _is_variable(kind: pa.DataType) -> bool:
    return pt.is_string(kind) or pt.is_large_string(kind) or pt.is_binary(kind) or pt.is_large_binary(kind)


def _is_defined(kind: pa.DataType) -> bool:
    if pt.is_map(kind):
        return _is_defined(kind.key_type) and _is_defined(kind.item_type)
    if pt.is_list(kind) or pt.is_fixed_size_list(kind):
        return _is_defined(kind.value_type)
    if pt.is_struct(kind):
        return all(_is_defined(kind.field(place).type) for place in range(kind.num_fields))
    return _is_variable(kind) or pt.is_null(kind) or (pt.is_primitive(kind) or pt.is_decimal(kind))


def _bits(buffer: pa.Buffer, start: int, stop: int) -> bytes:
    bits = np.unpackbits(np.frombuffer(buffer, np.uint8), count=stop, bitorder="little")[start:]
    return np.packbits(bits, bitorder="little").tobytes()
