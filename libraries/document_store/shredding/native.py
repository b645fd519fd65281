"""Call the C kernels that make columns from rows (with the same tokens as `reference`) or from other columns."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import numpy as np

from libraries.document_store import kernels
from libraries.document_store.schema import Node, Schema, extended
from libraries.document_store.shredding.columns import KEY, Column, Texts, dtype_of, is_text
from libraries.document_store.values import ValueKind


def shred(rows: Sequence[bytes], schema: Schema) -> tuple[Schema, list[Column]] | int:
    """Return the extended schema and the columns of its leaves, or the number of the first row that cannot be
    stored."""
    return _shred(rows, schema, keeps=True)


def infer(rows: Sequence[bytes], schema: Schema) -> Schema | int:
    """Return only the extended schema, or the number of the first row that cannot be stored."""
    found = _shred(rows, schema, keeps=False)
    return found if isinstance(found, int) else found[0]


def _shred(rows: Sequence[bytes], schema: Schema, keeps: bool) -> tuple[Schema, list[Column]] | int:
    kernel = kernels.loaded()
    addresses, sizes = kernels.pointers(rows)
    handle, faulty = ctypes.c_void_p(), ctypes.c_uint64()
    try:
        fault = kernel.ds_shred(
            *kernels.tree_of(schema), ctypes.c_uint64(schema.limit), ctypes.c_uint64(len(rows)), addresses, sizes,
            int(keeps), ctypes.byref(faulty), ctypes.byref(handle),
        )  # fmt: skip
        if fault == kernels.NO_MEMORY:
            raise MemoryError("no memory for the columns of these documents")
        if fault:
            return faulty.value
        larger = extended(schema, list(_new_nodes(kernel, handle, len(schema.nodes))))
        return larger, list(_columns(kernel, handle, larger)) if keeps else []
    finally:
        kernel.ds_free_shredder(handle)


def _new_nodes(kernel: ctypes.CDLL, handle: ctypes.c_void_p, first: int) -> Iterator[Node]:
    name_bytes = ctypes.c_uint64()
    kernel.ds_shredded_nodes.restype = ctypes.c_uint64
    count = kernel.ds_shredded_nodes(handle, ctypes.c_uint64(first), ctypes.byref(name_bytes)) - first
    parents, kinds, sizes = np.empty(count, np.int32), np.empty(count, np.uint8), np.empty(count, np.int64)
    names = np.empty(name_bytes.value, np.uint8)
    pieces = [kernels.address(array) for array in (parents, kinds, names, sizes)]
    kernel.ds_new_nodes(handle, ctypes.c_uint64(first), *pieces)
    text, place = names.tobytes(), 0
    for parent, kind, size in zip(parents.tolist(), kinds.tolist(), sizes.tolist(), strict=True):
        name = None if size < 0 else text[place : place + size].decode()
        place += max(size, 0)
        yield Node(parent, ValueKind(kind), name)


def _columns(kernel: ctypes.CDLL, handle: ctypes.c_void_p, schema: Schema) -> Iterator[Column]:
    leaves = schema.leaves
    sizes = np.empty((3, len(leaves)), np.uint64)
    kernel.ds_column_sizes(handle, *[kernels.address(row) for row in sizes])
    counts, value_counts, byte_counts = sizes.astype(np.int64).tolist()
    with_texts = [number for number, leaf in enumerate(leaves) if is_text(leaf.kind)]
    levels = np.empty(sum(counts), np.uint8)
    offsets = np.empty(sum(value_counts[number] + 1 for number in with_texts), np.int64)
    values = np.empty(sum(-(-size // 8) for size in byte_counts), np.int64).view(np.uint8)
    kernel.ds_columns(handle, *[kernels.address(array) for array in (levels, offsets, values)])
    spans = pairwise(accumulate(counts, initial=0))
    value_start = offset_start = 0
    for leaf, (start, end), value_count, size in zip(leaves, spans, value_counts, byte_counts, strict=True):
        data = values[value_start : value_start + size]
        value_start += -(-size // 8) * 8
        if is_text(leaf.kind):
            yield Column(leaf, levels[start:end], Texts(offsets[offset_start : offset_start + value_count + 1], data))
            offset_start += value_count + 1
        else:
            yield Column(leaf, levels[start:end], data.view(dtype_of(leaf.kind)))


def take_of(columns: Sequence[Column], ordinals: np.ndarray) -> Column | None:
    """Return the records at these positions (int64) of several columns of one leaf, as one column. Records are numbered
    across all columns. Returns None if a position does not exist."""
    kernel, leaf, given = kernels.loaded(), columns[0].leaf, kernels.Given(columns)
    width = 0 if is_text(leaf.kind) else dtype_of(leaf.kind).itemsize
    which = 2 if leaf.number == KEY else int(leaf.has_values)
    handle, sizes = ctypes.c_void_p(), (ctypes.c_uint64 * 3)()
    try:
        fault = kernel.ds_find_records(
            ctypes.c_uint64(len(columns)), *given.parameters, leaf.null_flag - 1, (leaf.array_levels or (0,))[0],
            leaf.max_level, which, ctypes.c_uint64(width), kernels.address(ordinals), ctypes.c_uint64(len(ordinals)),
            sizes, ctypes.byref(handle),
        )  # fmt: skip
        if fault == kernels.NO_MEMORY:
            raise MemoryError("no memory for these records of a column")
        if fault:
            return None
        levels, values = np.empty(sizes[0], np.uint8), np.empty(sizes[1] * width or sizes[2], np.uint8)
        offsets = np.empty(0 if width else sizes[1] + 1, np.int64)
        kernel.ds_take_records(handle, *[kernels.address(array) for array in (levels, values, offsets)])
    finally:
        kernel.ds_free_gatherer(handle)
    return Column(leaf, levels, values.view(dtype_of(leaf.kind)) if width else Texts(offsets, values))
