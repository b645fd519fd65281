"""Read pieces of a file at given offsets, and time the reads. A compiled loop makes the system calls. If the loop was
not compiled, Python makes the same calls.

Callers decide which offsets and sizes are read.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from bench_runner.build import library_of
from bench_runner.clock import now_ns, thread_cpu_ns

MOST_IN_FLIGHT = 1024
"""Largest number of reads in flight at the same time."""
_NUMBERS = {"x86_64": (206, 207, 208, 209), "aarch64": (0, 1, 4, 2)}
"""Numbers of the system calls io_setup, io_destroy, io_getevents and io_submit, by machine (Linux,
include/uapi/asm-generic/unistd.h and x86's own table)."""
_PREAD = 0
_REQUEST = np.dtype(
    [
        *(("data", "u8"), ("key", "u4"), ("flags_of_read", "u4"), ("opcode", "u2"), ("priority", "i2"), ("file", "u4")),
        *(("memory", "u8"), ("size", "u8"), ("offset", "i8"), ("reserved", "u8"), ("flags", "u4"), ("event", "u4")),
    ]
)
"""struct iocb of Linux' aio_abi.h on little-endian machines."""
_EVENT = np.dtype([("data", "u8"), ("request", "u8"), ("result", "i8"), ("result2", "i8")])


@dataclass(frozen=True)
class Reads:
    """Duration of reading `count` pieces of `size_bytes` bytes, with `depth` reads in flight."""

    size_bytes: int
    depth: int
    count: int
    wall_ns: int
    cpu_ns: int
    compiled: bool
    """Whether the compiled loop was used."""

    @property
    def per_second(self) -> float:
        """Reads per second."""
        return self.count / self.wall_ns * 1e9

    @property
    def bytes_per_second(self) -> float:
        """Bytes per second."""
        return self.per_second * self.size_bytes


@cache
def library() -> ctypes.CDLL | None:
    """Return the library with the compiled loop, or None if the library was not built for this machine."""
    try:
        loaded = ctypes.CDLL(str(library_of("device")), use_errno=True)
        loaded.fb_reads.restype = loaded.fb_cached_reads.restype = ctypes.c_int64
    except (OSError, AttributeError):
        return None
    return loaded


def direct_reads(
    path: Path, offsets: np.ndarray, size_bytes: int, depth: int, *, limit_s: float, compiled: bool = True
) -> Reads:
    """Read `size_bytes` bytes at each offset, bypassing the page cache, with `depth` reads in flight. Stop after
    `limit_s` seconds. Return the number of reads and their duration. Offsets are uint64 and multiples of 4,096. Raises
    OSError if the file system does not support such reads, or if a read fails."""
    if not 1 <= depth <= MOST_IN_FLIGHT:
        raise ValueError(f"depth {depth} is out of range (allowed: 1 to {MOST_IN_FLIGHT})")
    loop = library() if compiled else None
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    try:
        with mmap.mmap(-1, depth * size_bytes) as memory:
            asked = np.ascontiguousarray(offsets, np.uint64)
            if loop is None:
                return _by_python(descriptor, asked, size_bytes, depth, limit_s, memory)
            sizes = (ctypes.c_uint32(size_bytes), ctypes.c_uint32(depth))
            return _by_library(loop.fb_reads, descriptor, asked, sizes, limit_s, memory)
    finally:
        os.close(descriptor)


def cached_reads(path: Path, offsets: np.ndarray, size_bytes: int, *, limit_s: float, compiled: bool = True) -> Reads:
    """Read `size_bytes` bytes at each offset (uint64) of a file in the page cache, one after the other. Stop after
    `limit_s` seconds. Return the number of reads and their duration. Raises OSError if a read fails."""
    loop = library() if compiled else None
    asked = np.ascontiguousarray(offsets, np.uint64)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with mmap.mmap(-1, size_bytes) as memory:
            if loop is None:
                return _cached_by_python(descriptor, asked, size_bytes, limit_s, memory)
            sizes = (ctypes.c_uint32(size_bytes),)
            return _by_library(loop.fb_cached_reads, descriptor, asked, sizes, limit_s, memory)
    finally:
        os.close(descriptor)


def _cached_by_python(
    descriptor: int, offsets: np.ndarray, size_bytes: int, limit_s: float, memory: mmap.mmap
) -> Reads:
    into, done = (memory,), 0
    cpu_started, started = thread_cpu_ns(), now_ns()
    deadline = started + int(limit_s * 1e9)
    for offset in offsets.tolist():
        if os.preadv(descriptor, into, offset) != size_bytes:
            raise OSError(errno.EIO, "a read returned fewer bytes than requested")
        done += 1
        if done % 16 == 0 and now_ns() > deadline:
            break
    wall_ns, cpu_ns = now_ns() - started, thread_cpu_ns() - cpu_started
    return Reads(size_bytes, 1, done, max(wall_ns, 1), cpu_ns, compiled=False)


def _by_library(
    call: Callable[..., int],
    descriptor: int,
    offsets: np.ndarray,
    sizes: Sequence[ctypes.c_uint32],
    limit_s: float,
    memory: mmap.mmap,
) -> Reads:
    """Read by calling a function of the compiled library. `sizes` has the size of each read in bytes. For direct reads,
    the number of reads in flight follows."""
    wall_ns, cpu_ns = ctypes.c_uint64(), ctypes.c_uint64()
    first_byte = ctypes.c_char.from_buffer(memory)
    try:
        done = call(
            descriptor,
            ctypes.c_void_p(offsets.ctypes.data),
            ctypes.c_uint64(len(offsets)),
            *sizes,
            ctypes.c_uint64(int(limit_s * 1e9)),
            ctypes.byref(first_byte),
            ctypes.byref(wall_ns),
            ctypes.byref(cpu_ns),
        )
    finally:
        # The mapping cannot be closed while a pointer into it exists.
        del first_byte
    if done < 0:
        raise OSError(-done, os.strerror(-done))
    size_bytes, depth = sizes[0].value, sizes[1].value if len(sizes) > 1 else 1
    return Reads(size_bytes, depth, done, max(wall_ns.value, 1), cpu_ns.value, compiled=True)


def _by_python(
    descriptor: int, offsets: np.ndarray, size_bytes: int, depth: int, limit_s: float, memory: mmap.mmap
) -> Reads:
    """Make the same system calls from Python. A thread makes about 150,000 reads per second, which is less than fast
    devices can do."""
    if os.uname().machine not in _NUMBERS or sys.platform != "linux":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    setup, destroy, get_events, submit = _NUMBERS[os.uname().machine]
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    context = ctypes.c_ulong()

    def checked(result: int) -> int:
        if result < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return result

    checked(call(ctypes.c_long(setup), ctypes.c_long(depth), ctypes.byref(context)))
    requests, events = np.zeros(depth, _REQUEST), np.zeros(depth, _EVENT)
    memory_at = np.frombuffer(memory, np.uint8).ctypes.data
    requests["opcode"], requests["file"], requests["size"] = _PREAD, descriptor, size_bytes
    requests["data"] = np.arange(depth)
    requests["memory"] = memory_at + np.arange(depth, dtype=np.uint64) * np.uint64(size_bytes)
    pointers = requests.ctypes.data + np.arange(depth, dtype=np.uint64) * np.uint64(_REQUEST.itemsize)
    cpu_started, started = thread_cpu_ns(), now_ns()
    deadline = started + int(limit_s * 1e9)
    following, done = min(depth, len(offsets)), 0
    slots = np.arange(following)
    requests["offset"][slots] = offsets[:following]
    in_flight = 0
    try:
        while len(slots) or in_flight:
            if len(slots):
                asked = np.ascontiguousarray(pointers[slots])
                taken = checked(
                    call(ctypes.c_long(submit), context, ctypes.c_long(len(asked)), ctypes.c_void_p(asked.ctypes.data))
                )
                in_flight += taken
                slots = slots[taken:]
            found = checked(
                call(
                    ctypes.c_long(get_events),
                    context,
                    ctypes.c_long(1),
                    ctypes.c_long(depth),
                    ctypes.c_void_p(events.ctypes.data),
                    None,
                )
            )
            if (events["result"][:found] != size_bytes).any():
                failed = -int(events["result"][:found].min())
                raise OSError(failed if failed > 0 else errno.EIO, "a read returned fewer bytes than requested")
            done, in_flight = done + found, in_flight - found
            more = 0 if now_ns() > deadline else min(found, len(offsets) - following)
            again = events["data"][:more].astype(np.int64)
            requests["offset"][again] = offsets[following : following + more]
            following += more
            slots = np.concatenate([slots, again])
    finally:
        wall_ns, cpu_ns = now_ns() - started, thread_cpu_ns() - cpu_started
        call(ctypes.c_long(destroy), context)
    return Reads(size_bytes, depth, done, max(wall_ns, 1), cpu_ns, compiled=False)
