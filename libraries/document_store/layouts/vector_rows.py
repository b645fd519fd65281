"""Encode and decode many rows of the vector-based format at once, in C if the kernels are built, else with `vector.py`.

This module converts the parameters and error codes of the C functions. Pages and leaves are handled elsewhere.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence

import numpy as np

from libraries.document_store import kernels
from libraries.document_store.errors import CorruptError
from libraries.document_store.layouts import vector

_NO_ROOM = -5
_WORDS = {
    -1: "not enough memory",
    -2: "it is not a document in MessagePack",
    -3: "it is nested too deep",
    -4: "it is not a row of the vector-based format",
}
_EXPANSION = 4
"""Initial size of the buffer for decoded rows, as a multiple of their compacted size."""
_GROWTH = (3, 32)
"""A compacted row has at most 3 times the bytes of the row in MessagePack, plus 32 bytes. `vector.MOST_NAMES` explains
this limit."""


class VectorRows:
    """Converts rows with the field names of one schema. Thread-safe."""

    def __init__(self, names: Sequence[str], *, use_native: bool | None = None) -> None:
        """If `use_native` is False, use Python. If it is None, use the C kernels if they are built."""
        self._names = names
        self._numbers = {name: number for number, name in enumerate(names)}
        self._native = kernels.library if use_native is not False else None
        if use_native and self._native is None:
            raise RuntimeError("the kernels of the document store are not built; run 'python -m libraries.build'")
        self._table = _joined([name.encode() for name in names])

    def encode(self, rows: Sequence[bytes]) -> list[bytes]:
        """Compact MessagePack rows that were checked before."""
        if self._native is None or not rows:
            return [vector.encode(row, self._numbers) for row in rows]
        data, offsets = _joined(rows)
        times, more = _GROWTH
        out = np.empty(times * len(data) + more * len(rows), np.uint8)
        out_offsets = np.empty(len(rows) + 1, np.int64)
        failed = ctypes.c_int64(0)
        result = self._native.ds_vector_encode(
            *_arguments(data, offsets), *_arguments(*self._table), _at(out), _at(out_offsets), ctypes.byref(failed)
        )  # fmt: skip
        if result:
            raise ValueError(f"row {failed.value} of {len(rows)}: {_WORDS[result]}")
        return _cut(out, out_offsets)

    def decode(self, rows: Sequence[bytes | memoryview]) -> list[bytes]:
        """Decode compacted rows to MessagePack. Raises CorruptError."""
        if self._native is None or not rows:
            return [vector.decode(memoryview(row), self._names) for row in rows]
        data, offsets = _joined(rows)
        decoded: list[bytes] = []
        room = _EXPANSION * len(data) + 64
        while len(decoded) < len(rows):
            decoded += self._decode(data, offsets[len(decoded) :], room)
            room *= 2
        return decoded

    def _decode(self, data: bytes, offsets: np.ndarray, room: int) -> list[bytes]:
        """Decode as many rows as fit in `room` bytes."""
        out = np.empty(room, np.uint8)
        out_offsets = np.empty(len(offsets), np.int64)
        done = ctypes.c_int64(0)
        assert self._native is not None
        result = self._native.ds_vector_decode(
            *_arguments(data, offsets), *_arguments(*self._table), _at(out), ctypes.c_int64(room), _at(out_offsets),
            ctypes.byref(done),
        )  # fmt: skip
        if result and result != _NO_ROOM:
            raise CorruptError(f"row {done.value} of {len(offsets) - 1}: {_WORDS[result]}")
        return _cut(out, out_offsets[: done.value + 1])


def _joined(rows: Sequence[bytes | memoryview]) -> tuple[bytes, np.ndarray]:
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, rows), np.int64, len(rows)), out=offsets[1:])
    return b"".join(rows), offsets


def _cut(data: np.ndarray, offsets: np.ndarray) -> list[bytes]:
    ends = offsets.tolist()
    whole = data[: ends[-1]].tobytes()
    return [whole[start:end] for start, end in itertools.pairwise(ends)]


def _arguments(data: bytes, offsets: np.ndarray) -> tuple[ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64]:
    return ctypes.c_char_p(data), _at(offsets), ctypes.c_int64(len(offsets) - 1)


def _at(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
