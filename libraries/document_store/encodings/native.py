"""Call the C kernels that encode and decode chunks: allocate memory, and turn failures into CorruptError."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from libraries.document_store import kernels
from libraries.document_store.errors import CorruptError, FullError
from libraries.document_store.schema import Leaf, Schema
from libraries.document_store.shredding.columns import KEY, CodedColumn, Column, Texts, dtype_of, is_text


def encode(column: Column) -> bytes:
    """Encode a column as a chunk. Raises FullError if the column exceeds the maximum size of a chunk."""
    leaf, levels = column.leaf, np.ascontiguousarray(column.levels)
    offsets: np.ndarray | None = None
    if isinstance(column.values, Texts):
        offsets, values = np.ascontiguousarray(column.values.offsets), np.ascontiguousarray(column.values.data)
        values_room = len(values) + 8 * len(offsets)
    else:
        values = np.ascontiguousarray(column.values)
        values_room = values.nbytes
    # In the worst case, each run of eight bit-packed levels has a header, and so has each block of integers.
    count = len(column.values)
    room = max((len(levels) // 8 + 1) * (leaf.level_bits + 6), values_room + (count // 128 + 1) * 2_200) + 64
    out, scratch, written = np.empty(2 * room, np.uint8), np.empty(room, np.uint8), ctypes.c_uint64()
    fault = kernels.loaded().ds_encode_chunk(
        int(leaf.kind), int(leaf.number == KEY), leaf.max_level, leaf.level_bits, _array_level(leaf),
        kernels.address(levels), ctypes.c_uint64(len(levels)), kernels.address(values),
        None if offsets is None else kernels.address(offsets), ctypes.c_uint64(count),
        kernels.address(out), ctypes.c_uint64(len(out)), kernels.address(scratch), ctypes.c_uint64(room),
        ctypes.byref(written),
    )  # fmt: skip
    if fault == kernels.NO_MEMORY:
        raise MemoryError("no memory for a column's chunk")
    if fault:
        raise FullError(f"the column of {leaf.path} does not fit in one chunk; write smaller leaves")
    return out[: written.value].tobytes()


def decode(
    leaf: Leaf,
    data: bytes | memoryview,
    most_tokens: int,
    most_text_bytes: int,
    records: tuple[np.ndarray, int] | None = None,
) -> Column:
    """Decode the column of a chunk. `records` selects records: the ascending numbers of these records (int64), and the
    number of records of the whole column. Raises CorruptError."""
    column = _decoded(leaf, data, most_tokens, most_text_bytes, coded=False, records=records)
    assert isinstance(column, Column)
    return column


def decode_coded(leaf: Leaf, data: bytes | memoryview, most_tokens: int, most_text_bytes: int) -> Column | CodedColumn:
    """Decode the column of a chunk. Return texts with few distinct values as codes. Raises CorruptError."""
    return _decoded(leaf, data, most_tokens, most_text_bytes, coded=True)


def _decoded(
    leaf: Leaf,
    data: bytes | memoryview,
    most_tokens: int,
    most_text_bytes: int,
    *,
    coded: bool,
    records: tuple[np.ndarray, int] | None = None,
) -> Column | CodedColumn:
    kernel, whole = kernels.loaded(), np.frombuffer(data, np.uint8)
    numbers, all_records = records or (None, 0)
    handle, sizes = ctypes.c_void_p(), (ctypes.c_uint64 * 4)()
    try:
        fault = kernel.ds_decode_chunk(
            kernels.address(whole), ctypes.c_uint64(len(whole)), int(leaf.kind), int(leaf.number == KEY),
            leaf.max_level, leaf.level_bits, _array_level(leaf), (leaf.array_levels or (0,))[0], int(coded),
            ctypes.c_uint64(most_tokens), ctypes.c_uint64(most_text_bytes),
            None if numbers is None else kernels.address(numbers),
            ctypes.c_uint64(0 if numbers is None else len(numbers)), ctypes.c_uint64(all_records), sizes,
            ctypes.byref(handle),
        )  # fmt: skip
        if fault == kernels.NO_MEMORY:
            raise MemoryError("no memory for a column")
        if fault:
            raise CorruptError(
                f"the chunk of column {leaf.number} ({leaf.path}) is damaged, or belongs to another column"
            )
        has_texts, different = is_text(leaf.kind), sizes[3]
        levels, values = np.empty(sizes[0], np.uint8), np.empty(sizes[2], np.uint8)
        offsets = np.empty((different or sizes[1]) + 1 if has_texts else 0, np.int64)
        codes = np.empty(sizes[0] if different else 0, np.uint8)
        kernel.ds_copy_decoded(handle, *[kernels.address(array) for array in (levels, values, offsets, codes)])
    finally:
        kernel.ds_free_decoded(handle)
    if different:
        return CodedColumn(leaf, levels, codes, Texts(offsets, values))
    return Column(leaf, levels, Texts(offsets, values) if has_texts else values.view(dtype_of(leaf.kind)))


def encode_all(
    schema: Schema, columns: Sequence[Column], most_tokens: int, most_text_bytes: int
) -> list[tuple[memoryview, tuple[int, int]]] | None:
    """Return for each column its chunk, and the codes of its lowest and highest value.

    The chunk is empty for the key's column and for a column that no record has. Return None if a column exceeds the
    maximum size of a chunk.
    """
    count, given = len(columns), kernels.Given(columns)
    ends, codes, made = np.empty(count, np.uint64), np.empty((count, 2), np.uint64), ctypes.c_void_p()
    try:
        fault = kernels.loaded().ds_encode_columns(
            *kernels.tree_of(schema), *given.parameters, ctypes.c_uint64(most_tokens),
            ctypes.c_uint64(most_text_bytes), kernels.address(ends), kernels.address(codes), ctypes.byref(made),
        )  # fmt: skip
        if fault == kernels.NO_MEMORY:
            raise MemoryError("no memory for the chunks of a leaf")
        places = [0, *ends.tolist()]
        whole = memoryview(ctypes.string_at(made, places[-1]) if not fault and places[-1] else b"")
    finally:
        kernels.loaded().ds_free(made)
    if fault:
        return None
    return [
        (whole[start:end], (low, high))
        for (start, end), (low, high) in zip(pairwise(places), codes.tolist(), strict=True)
    ]


def merge_column(
    leaf: Leaf,
    chunks: Sequence[memoryview | None],
    records: Sequence[int],
    ordinals: np.ndarray,
    most_tokens: int,
    most_text_bytes: int,
) -> tuple[bytes, tuple[int, int]] | None:
    """Return one chunk of a column, made from the column's chunks in several leaves, and the codes of its lowest and
    highest value.

    `ordinals` are the positions of the records to keep, counted across all chunks. `records` is the number of records
    of each chunk. A chunk of None means that no record of that leaf has the column. Return None if a chunk is faulty,
    or if the result exceeds the maximum size of a chunk.
    """
    count = len(chunks)
    held = [None if chunk is None else np.frombuffer(chunk, np.uint8) for chunk in chunks]
    places, sizes = (ctypes.c_void_p * count)(), (ctypes.c_uint64 * count)()
    for number, chunk in enumerate(held):
        if chunk is not None:
            places[number], sizes[number] = chunk.__array_interface__["data"][0], len(chunk)
    codes, size, made = (ctypes.c_uint64 * 2)(), ctypes.c_uint64(), ctypes.c_void_p()
    try:
        fault = kernels.loaded().ds_merge_column(
            int(leaf.kind), leaf.max_level, leaf.level_bits, _array_level(leaf), (leaf.array_levels or (0,))[0],
            ctypes.c_uint64(most_tokens), ctypes.c_uint64(most_text_bytes), ctypes.c_uint64(count), places, sizes,
            (ctypes.c_uint64 * count)(*records), kernels.address(ordinals), ctypes.c_uint64(len(ordinals)), codes,
            ctypes.byref(size), ctypes.byref(made),
        )  # fmt: skip
        if fault == kernels.NO_MEMORY:
            raise MemoryError("no memory to merge a column")
        return None if fault else (ctypes.string_at(made, size.value) if size.value else b"", (codes[0], codes[1]))
    finally:
        kernels.loaded().ds_free(made)


def _array_level(leaf: Leaf) -> int:
    return leaf.array_levels[-1] if leaf.array_levels else 0
