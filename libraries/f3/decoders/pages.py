"""Turn memory that a sandbox wrote into an Arrow buffer by moving its pages instead of copying them.

Linux can move pages to another address in the process, and leave empty, writable memory at the old addresses. The
sandbox then has no access to the moved pages, so the buffer is as private as a copy. Only large pages are moved,
because moving small ones takes longer than copying. Small results, and all results on other systems, are copied.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from functools import cache
from typing import NamedTuple, Protocol

import pyarrow as pa

LARGE_BYTES = 1 << 21
"""Size of a large page, and the smallest size that is moved."""
_MOST_WASTED = 16
"""Unused memory after a moved result is returned to the system if it exceeds 1/16 of the used memory. Returning less
would split a large page for little gain.
"""
_MAY_MOVE, _LEAVE_EMPTY, _ADVICE_LARGE = 1, 4, 14
_FAILED = ctypes.c_void_p(-1).value


def prefer_large(address: int, size_bytes: int) -> None:
    """Request large pages for memory that `take` will move later."""
    calls = _calls()
    if calls is not None:
        calls.advise(address, size_bytes, _ADVICE_LARGE)


def take(address: int, size_bytes: int, room_bytes: int) -> pa.Buffer:
    """Move or copy `size_bytes` at an address into separate memory.

    Afterwards the old bytes are undefined, including those up to the end of the last large page if this page ends
    within `room_bytes` of the address. Raises MemoryError.
    """
    whole_bytes = -(-size_bytes // LARGE_BYTES) * LARGE_BYTES
    if size_bytes >= LARGE_BYTES and address % LARGE_BYTES == 0 and whole_bytes <= room_bytes:
        moved = _moved(address, size_bytes, whole_bytes)
        if moved is not None:
            return moved
    copy = pa.allocate_buffer(size_bytes)
    ctypes.memmove(copy.address, address, size_bytes)
    return copy


class _Call(Protocol):
    def __call__(self, *arguments: int | None) -> int: ...


class _Calls(NamedTuple):
    """The system calls."""

    map: _Call
    move: _Call
    unmap: _Call
    advise: _Call


@cache
def _calls() -> _Calls | None:
    """Return the system calls, or None on systems other than Linux."""
    if not sys.platform.startswith("linux"):
        return None
    system = ctypes.CDLL(None)
    place, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    for call, arguments in (
        (system.mmap, (place, size, number, number, number, ctypes.c_long)),
        (system.mremap, (place, size, size, number, place)),
        (system.munmap, (place, size)),
        (system.madvise, (place, size, number)),
    ):
        call.argtypes = arguments
    system.mmap.restype = system.mremap.restype = place
    return _Calls(system.mmap, system.mremap, system.munmap, system.madvise)


class _Pages:
    """Moved pages, unmapped when the buffer that uses them is freed."""

    __slots__ = ("_address", "_size_bytes", "_unmap")

    def __init__(self, address: int, size_bytes: int, unmap: _Call) -> None:
        self._address, self._size_bytes, self._unmap = address, size_bytes, unmap

    def __del__(self) -> None:
        self._unmap(self._address, self._size_bytes)


def _moved(address: int, size_bytes: int, whole_bytes: int) -> pa.Buffer | None:
    """Move pages into a buffer.

    Return None if the system cannot (before Linux 5.7, or for pages of several mappings).
    """
    calls = _calls()
    if calls is None:
        return None
    place = calls.move(address, whole_bytes, whole_bytes, _MAY_MOVE | _LEAVE_EMPTY, _free_place(calls, whole_bytes))
    if place == _FAILED:
        return None
    used_bytes = -(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
    if whole_bytes - used_bytes > used_bytes // _MOST_WASTED:
        calls.unmap(place + used_bytes, whole_bytes - used_bytes)
        whole_bytes = used_bytes
    return pa.foreign_buffer(place, size_bytes, _Pages(place, whole_bytes, calls.unmap))


def _free_place(calls: _Calls, size_bytes: int) -> int | None:
    """Return a free address aligned to large pages, so that they stay whole. It is a hint: if another thread maps
    memory there first, the system chooses another address.
    """
    room = size_bytes + LARGE_BYTES
    place = calls.map(None, room, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if place == _FAILED:
        return None
    calls.unmap(place, room)
    return -(-place // LARGE_BYTES) * LARGE_BYTES
