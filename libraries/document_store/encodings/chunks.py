"""The chunks of all columns of a mega leaf, to read a few records without decoding the other records."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

import numpy as np

from libraries.document_store import kernels
from libraries.document_store.encodings.chunk import MOST_TEXT_BYTES, MOST_TOKENS
from libraries.document_store.schema import Schema
from libraries.document_store.shredding.columns import Column


class Chunks:
    """Immutable copies of the chunks, in the form that the C kernel takes."""

    def __init__(self, count: int, chunks: Mapping[int, memoryview]) -> None:
        """`count` is the number of leaves of the schema. `chunks` maps column numbers to chunks, without the key's
        column and without columns that no record has."""
        self._held = [bytes(chunk) for chunk in chunks.values()]
        self._places = (ctypes.c_char_p * count)()
        self._sizes = (ctypes.c_uint64 * count)()
        for number, chunk in zip(chunks, self._held, strict=True):
            self._places[number], self._sizes[number] = chunk, len(chunk)
        self.size_bytes = sum(map(len, self._held)) + ctypes.sizeof(self._places) + ctypes.sizeof(self._sizes)

    @staticmethod
    def can_assemble(schema: Schema) -> bool:
        """Return whether `rows` supports the schema. This needs the C kernels, and a schema without the leaf REST."""
        return kernels.NATIVE and schema.rest is None

    def rows(self, schema: Schema, keys: Column, records: np.ndarray, all_records: int) -> list[bytes] | None:
        """Return the rows of the records with these ascending numbers. `all_records` is the number of records in the
        chunks, and `keys` is the key's column of the requested records only. Return None if a chunk is faulty."""
        _, _, values, _, value_bytes, offsets = kernels.Given([keys]).parameters
        records = np.ascontiguousarray(records, np.int64)
        return kernels.assembled(
            kernels.loaded().ds_rows_of_chunks, len(records), *kernels.tree_of(schema), self._places, self._sizes,
            ctypes.c_void_p(values[0]), ctypes.c_uint64(value_bytes[0]), ctypes.c_void_p(offsets[0]),
            ctypes.c_uint64(MOST_TOKENS), ctypes.c_uint64(MOST_TEXT_BYTES), kernels.address(records),
            ctypes.c_uint64(len(records)), ctypes.c_uint64(all_records),
        )  # fmt: skip
