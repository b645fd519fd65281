"""Memory that changes hands: what a sandbox has written becomes an Arrow buffer, by its pages instead of a copy.

Linux can move pages from one place of a process to another and leave the old place empty, to be written anew. The
sandbox keeps nothing of what it gave away, so the buffer is as private as a copy. Pages are moved as large ones, those
that Arrow's own allocations get; small ones would cost more than a copy. Where that is not possible, and for what is
small, the bytes are copied.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from functools import cache
from typing import NamedTuple, Protocol

import pyarrow as pa

LARGE_BYTES = 1 << 21
"""Of a large page, and the least that is moved."""
_MOST_WASTED = 16
"""One part in so many: giving back less takes a large page apart for little."""
_MAY_MOVE, _LEAVE_EMPTY, _ADVICE_LARGE = 1, 4, 14
_FAILED = ctypes.c_void_p(-1).value


def prefer_large(address: int, size_bytes: int) -> None:
    """Memory that is to be taken consists of large pages from now on, where the system has them."""
    calls = _calls()
    if calls is not None:
        calls.advise(address, size_bytes, _ADVICE_LARGE)


def take(address: int, size_bytes: int, room_bytes: int) -> pa.Buffer:
    """What lies at an address, in memory of its own. What lies there afterwards, to the end of its last large page,
    means nothing; `room_bytes` from the address on are at disposal. Raises MemoryError."""
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
    """Those of the system."""

    map: _Call
    move: _Call
    unmap: _Call
    advise: _Call


@cache
def _calls() -> _Calls | None:
    """None on other systems than Linux."""
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
    """Pages that were moved; they live as long as the buffer that lies in them."""

    __slots__ = ("_address", "_size_bytes", "_unmap")

    def __init__(self, address: int, size_bytes: int, unmap: _Call) -> None:
        self._address, self._size_bytes, self._unmap = address, size_bytes, unmap

    def __del__(self) -> None:
        self._unmap(self._address, self._size_bytes)


def _moved(address: int, size_bytes: int, whole_bytes: int) -> pa.Buffer | None:
    """None where the system does not do it: older than Linux 5.7, or pages that lie in several mappings."""
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
    """Where large pages would stay whole. A wish: should somebody else take it meanwhile, they lie elsewhere."""
    room = size_bytes + LARGE_BYTES
    place = calls.map(None, room, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if place == _FAILED:
        return None
    calls.unmap(place, room)
    return -(-place // LARGE_BYTES) * LARGE_BYTES
