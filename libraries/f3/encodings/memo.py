"""Number distinct values in the order of their first appearance, over one or more arrays. Every dictionary is built
with this hash table."""

from __future__ import annotations

import ctypes
import zlib
from typing import Any

import numpy as np
import pyarrow as pa

from libraries.f3.decoders import native
from libraries.f3.encodings.arithmetic import Numbers

_FIRST_ENTRIES, _FIRST_BYTES = 1 << 12, 1 << 16
_MOST_BYTES = (1 << 31) - 1
"""Maximum bytes of all distinct values. The ends of strings are 32-bit numbers, and so are the offsets of Arrow's
strings."""


class _Memo(ctypes.Structure):
    """The memory of a `Memo`, in the layout of `struct memo` in encode.c: distinct values and the hash table that finds
    them."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("ends", ctypes.c_void_p),
        ("hashes", ctypes.c_void_p),
        ("slots", ctypes.c_void_p),
        ("most_bytes", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("most", ctypes.c_uint32),
        ("entries", ctypes.c_uint32),
        ("slot_bits", ctypes.c_uint32),
    )


class Memo:
    """The distinct values of the arrays added so far, with limits for their number and for their bytes.

    Values have `width` bytes each. If `width` is 0, they are strings.
    """

    def __init__(self, width: int, most_entries: int, most_bytes: int = _MOST_BYTES) -> None:
        self._width, self._most_entries, self._most_bytes = width, most_entries, min(most_bytes, _MOST_BYTES)
        self._kernels: Any = native.library()
        self._numbers: dict[bytes, int] = {}
        self._memo = _Memo()
        self._data = np.empty(0, np.uint8)
        self._ends, self._hashes = np.empty(0, np.uint32), np.empty(0, np.uint32)
        if self._kernels is not None:
            self._enlarge(min(_FIRST_ENTRIES, most_entries), _FIRST_BYTES)

    def add(self, values: Numbers, lengths: Numbers | None = None) -> Numbers | None:
        """Return each value's place in the order of first appearance, as uint32; None if the values exceed a limit.

        Args:
            values: contiguous numbers of `width` bytes, or the bytes of strings
            lengths: uint32, bytes of each string; None for numbers

        If the result is None, the memo already has some of these values, and nothing more can be added.
        """
        if self._kernels is None:
            return self._add_by_arrow(values, lengths)
        count = len(values) if lengths is None else len(lengths)
        codes = np.empty(count, np.uint32)
        done = data_done = 0
        while True:
            done += self._kernels.f3_memo_add(
                ctypes.byref(self._memo),
                ctypes.c_void_p(values.ctypes.data + data_done),
                self._width,
                ctypes.c_void_p(None if lengths is None else lengths.ctypes.data + 4 * done),
                ctypes.c_uint64(count - done),
                ctypes.c_void_p(codes.ctypes.data + 4 * done),
            )
            if done == count:
                return codes
            data_done = done * self._width if lengths is None else int(lengths[:done].sum(dtype=np.int64))
            if not self._made_room(self._width if lengths is None else int(lengths[done])):
                return None

    @property
    def entries(self) -> int:
        """Number of distinct values."""
        return len(self._numbers) if self._kernels is None else int(self._memo.entries)

    def values(self) -> tuple[Numbers, Numbers]:
        """Return the bytes of all distinct values, and the length of each in bytes, as uint32."""
        if self._kernels is None:
            lengths = np.fromiter(map(len, self._numbers), np.uint32, len(self._numbers))
            return np.frombuffer(b"".join(self._numbers), np.uint8), lengths
        data = self._data[: self._memo.bytes]
        if self._width:
            return data, np.full(self.entries, self._width, np.uint32)
        return data, np.diff(self._ends[: self.entries], prepend=np.uint32(0))

    def hashes(self) -> Numbers:
        """Return a 32-bit hash of each distinct value. Equal values of one type have equal hashes."""
        if self._kernels is None:
            return np.fromiter(map(zlib.crc32, self._numbers), np.uint32, len(self._numbers))
        return self._hashes[: self.entries]

    def _made_room(self, next_bytes: int) -> bool:
        """Enlarge the memory so that the next value fits. Return False if a limit does not allow it."""
        memo = self._memo
        needed = memo.bytes + next_bytes
        if memo.entries >= self._most_entries or needed > self._most_bytes:
            return False
        entries = min(4 * memo.most, self._most_entries) if memo.entries == memo.most else memo.most
        self._enlarge(entries, max(4 * memo.most_bytes, needed) if needed > memo.most_bytes else memo.most_bytes)
        return True

    def _enlarge(self, entries: int, data_bytes: int) -> None:
        memo = self._memo
        if data_bytes > memo.most_bytes:
            self._data = _longer(self._data, min(data_bytes, self._most_bytes))
            memo.data, memo.most_bytes = self._data.ctypes.data, len(self._data)
        if entries > memo.most:
            self._hashes = _longer(self._hashes, entries)
            self._ends = self._ends if self._width else _longer(self._ends, entries)
            memo.hashes, memo.ends, memo.most = self._hashes.ctypes.data, self._ends.ctypes.data, entries
            memo.slot_bits = (2 * entries - 1).bit_length()
            self._slots = np.zeros(1 << memo.slot_bits, np.uint32)
            memo.slots = self._slots.ctypes.data
            self._kernels.f3_memo_enter(ctypes.byref(memo), self._width)

    def _add_by_arrow(self, values: Numbers, lengths: Numbers | None) -> Numbers | None:
        if lengths is None:
            kind, buffers = pa.binary(self._width), [None, pa.py_buffer(np.ascontiguousarray(values))]
            count = len(values)
        else:
            offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
            kind, buffers = pa.large_binary(), [None, pa.py_buffer(offsets), pa.py_buffer(values)]
            count = len(lengths)
        encoded = pa.Array.from_buffers(kind, count, buffers).dictionary_encode()
        numbers = self._numbers
        mapped = [numbers.setdefault(value, len(numbers)) for value in encoded.dictionary.to_pylist()]
        if len(numbers) > self._most_entries or sum(map(len, numbers)) > self._most_bytes:
            return None
        return np.array(mapped, np.uint32)[encoded.indices.to_numpy()]


def _longer(numbers: Numbers, length: int) -> Numbers:
    longer: Numbers = np.empty(length, numbers.dtype)
    longer[: len(numbers)] = numbers
    return longer
