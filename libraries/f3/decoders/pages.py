"""Turn memory that a sandbox wrote into an Arrow buffer. The pages of this memory are moved instead of copied.

Linux can move pages to another address in the process, and leave empty, writable memory at the old addresses. The
sandbox then has no access to the moved pages, so the buffer is as private as a copy. Only large pages are moved,
because moving small ones takes longer than copying. Small results, and all results on other systems, are copied.

The system clears fresh memory before the sandbox can write to it, which takes longer than moving pages. A sandbox
therefore gets back the pages of earlier results when these are freed. These pages contain nothing from other sandboxes.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from functools import cache
from typing import NamedTuple, Protocol

import pyarrow as pa

LARGE_BYTES = 1 << 21
"""Size of a large page of memory in bytes. Results of at least this size are moved out of the sandbox page by page,
smaller results are copied (see `take`)."""
_MOST_WASTED = 16
"""Unused memory after a moved result is returned to the system if it exceeds 1/16 of the used memory. Returning less
would split a large page for little gain."""
_MAY_MOVE, _TO_ADDRESS, _LEAVE_EMPTY, _ADVICE_LARGE = 1, 2, 4, 14
_FAILED = ctypes.c_void_p(-1).value


class Pool:
    """Large pages of freed results, kept for the sandbox that wrote the results."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes // LARGE_BYTES
        # Buffers may be freed by any thread; append and pop are atomic.
        self._pages: list[int] = []

    @property
    def size_bytes(self) -> int:
        """Total bytes of the pages in the pool."""
        return len(self._pages) * LARGE_BYTES

    def close(self) -> None:
        """Return all pages in the pool to the system. When a result is freed after this call, its pages go to the
        system instead of the pool."""
        self._most = 0
        while (page := self._taken()) is not None:
            _unmapped(page, LARGE_BYTES)

    def keep(self, address: int, size_bytes: int) -> None:
        """Keep the large pages of a freed result, and return the rest to the system."""
        kept_bytes = 0
        while size_bytes - kept_bytes >= LARGE_BYTES and len(self._pages) < self._most:
            self._pages.append(address + kept_bytes)
            kept_bytes += LARGE_BYTES
        if kept_bytes < size_bytes:
            _unmapped(address + kept_bytes, size_bytes - kept_bytes)

    def refill(self, address: int, size_bytes: int) -> None:
        """Move pages of the pool to an address, where memory has to be empty. If the pool has too few pages, the rest
        stays empty. Raises MemoryError."""
        calls = _calls()
        for place in range(address, address + size_bytes, LARGE_BYTES):
            page = self._taken()
            if page is None or calls is None:
                return
            if calls.move(page, LARGE_BYTES, LARGE_BYTES, _MAY_MOVE | _TO_ADDRESS, place) == _FAILED:
                # The system may have unmapped the empty memory already.
                _unmapped(page, LARGE_BYTES)
                flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
                if calls.map(place, LARGE_BYTES, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0) == _FAILED:
                    raise MemoryError("the system has no memory for a sandbox")

    def _taken(self) -> int | None:
        try:
            return self._pages.pop()
        except IndexError:
            return None


_MAP_FIXED = 0x10


def prefer_large(address: int, size_bytes: int) -> None:
    """Request large pages for memory whose pages the function `take` will later move into a result."""
    calls = _calls()
    if calls is not None:
        calls.advise(address, size_bytes, _ADVICE_LARGE)


def take(address: int, size_bytes: int, room_bytes: int, pool: Pool) -> pa.Buffer:
    """Return a buffer with the `size_bytes` bytes at an address, which are moved or copied into separate memory.

    If pages were moved, pages of the pool replace them at the address, and freeing the buffer adds its pages to the
    pool. Afterwards the bytes at the address are undefined. If the last large page ends within `room_bytes` of the
    address, the bytes up to the end of this page are undefined too. Raises MemoryError.
    """
    whole_bytes = -(-size_bytes // LARGE_BYTES) * LARGE_BYTES
    if size_bytes >= LARGE_BYTES and address % LARGE_BYTES == 0 and whole_bytes <= room_bytes:
        moved = _moved(address, size_bytes, whole_bytes, pool)
        if moved is not None:
            return moved
    copy = pa.allocate_buffer(size_bytes)
    ctypes.memmove(copy.address, address, size_bytes)
    return copy


def _unmapped(address: int, size_bytes: int) -> None:
    calls = _calls()
    if calls is not None:
        calls.unmap(address, size_bytes)


class _Call(Protocol):
    def __call__(self, *arguments: int | None) -> int: ...


class _Calls(NamedTuple):
    """The system calls mmap, mremap, munmap and madvise."""

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
    """Moved pages, which go to the pool when the buffer that uses them is freed."""

    __slots__ = ("_address", "_pool", "_size_bytes")

    def __init__(self, address: int, size_bytes: int, pool: Pool) -> None:
        self._address, self._size_bytes, self._pool = address, size_bytes, pool

    def __del__(self) -> None:
        self._pool.keep(self._address, self._size_bytes)


def _moved(address: int, size_bytes: int, whole_bytes: int, pool: Pool) -> pa.Buffer | None:
    """Move pages into a buffer. Return None if the system cannot move pages (Linux before 5.7).

    Each large page is moved by a separate call: pages that came from a pool are separate mappings, and a call moves
    only one mapping.
    """
    calls = _calls()
    place = None if calls is None else _reserved(calls, whole_bytes)
    if calls is None or place is None:
        return None
    for done in range(0, whole_bytes, LARGE_BYTES):
        moving = _MAY_MOVE | _TO_ADDRESS | _LEAVE_EMPTY
        if calls.move(address + done, LARGE_BYTES, LARGE_BYTES, moving, place + done) == _FAILED:
            # Nothing is lost: what was moved is copied back.
            ctypes.memmove(address, place, done)
            calls.unmap(place, whole_bytes)
            return None
    pool.refill(address, whole_bytes)
    used_bytes = -(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
    if whole_bytes - used_bytes > used_bytes // _MOST_WASTED:
        calls.unmap(place + used_bytes, whole_bytes - used_bytes)
        whole_bytes = used_bytes
    return pa.foreign_buffer(place, size_bytes, _Pages(place, whole_bytes, pool))


def _reserved(calls: _Calls, size_bytes: int) -> int | None:
    """Reserve memory that begins at the boundary of a large page, so that moved large pages stay whole. Return its
    address, or None if the system has no memory."""
    room = size_bytes + LARGE_BYTES
    place = calls.map(None, room, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if place == _FAILED:
        return None
    aligned = -(-place // LARGE_BYTES) * LARGE_BYTES
    if aligned > place:
        calls.unmap(place, aligned - place)
    if place + LARGE_BYTES > aligned:
        calls.unmap(aligned + size_bytes, place + LARGE_BYTES - aligned)
    return aligned
