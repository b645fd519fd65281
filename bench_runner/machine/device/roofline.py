"""Measure the roofline of a storage device: the highest number of reads and bytes per second that the device delivers
from one file.

The file is read first from the device, bypassing the page cache, and then from the page cache. The speed of the page
cache is the limit of warm reads. On a virtual machine, the results include the cache and the limits of the host.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench_runner.machine import linux
from bench_runner.machine.device.reads import Reads, cached_reads, direct_reads

SMALL_BYTES, LARGE_BYTES, SEQUENTIAL_BYTES = 4_096, 65_536, 1_048_576
"""Sizes of reads: a page, the read-ahead of a file system, and a request of a scan."""
DEPTHS = (1, 4, 16, 64)
"""Numbers of random reads in flight at the same time."""
SEQUENTIAL_DEPTHS = (1, 4, 16)
"""Numbers of sequential reads in flight at the same time."""
EACH_S = 0.2
"""Seconds of measuring for each size and each depth (number of reads in flight)."""
LEAST_BYTES = 8 * 1024 * 1024
"""Smallest file that has a roofline. A smaller file has too few different positions to read."""
CPU_BOUND = 0.9
"""If the reading program used more than this share of a core, the core was the bottleneck, and the device may be
faster."""
DIRECT_SHARE = 0.9
"""Smallest share of the bytes of direct reads that must come from the device. With less, there is no roofline. Some
file systems serve direct reads from the page cache."""
RANDOM, SEQUENTIAL, CACHED, CACHED_SEQUENTIAL = "random", "sequential", "cached", "cached sequential"
"""Kinds of reads. RANDOM and SEQUENTIAL bypass the page cache. CACHED and CACHED_SEQUENTIAL read from the page
cache."""


class NoRoofline(Exception):
    """A file has no roofline. The message has the reason."""


@dataclass(frozen=True)
class Line:
    """The result for reads of one kind and size, with a fixed number of reads in flight."""

    kind: str
    reads: Reads

    @property
    def at_least(self) -> bool:
        """Whether the device or cache may be faster than measured, because the reading program was the bottleneck."""
        if self.kind in (CACHED, CACHED_SEQUENTIAL):
            return not self.reads.compiled
        return self.reads.cpu_ns > CPU_BOUND * self.reads.wall_ns


def roofline(path: Path, *, seed: int, seconds: float = EACH_S) -> list[Line]:
    """Measure random reads of 4 and 64 KiB, and sequential reads, of a synced file. First read from the device at
    several depths, then from the page cache, where the file remains.

    Raises NoRoofline if the file is too small, or if its file system does not support direct reads (tmpfs, some network
    file systems). Raises OSError if a read fails.
    """
    size_bytes = path.stat().st_size
    if size_bytes < LEAST_BYTES:
        needed = f"at least {LEAST_BYTES / 1e6:.0f} MB are needed"
        raise NoRoofline(f"a stored copy of {size_bytes / 1e6:.1f} MB is too small to probe the device ({needed})")
    random = np.random.default_rng(seed)
    before = linux.io_bytes().device_read
    try:
        lines = list(_of_device(path, size_bytes, random, seconds))
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM):
            raise NoRoofline(f"direct reads are not supported here: {error.strerror}") from None
        raise
    given = sum(line.reads.count * line.reads.size_bytes for line in lines)
    fetched = linux.io_bytes().device_read - before
    if fetched < DIRECT_SHARE * given:
        raise NoRoofline(f"direct reads returned {given:,} bytes, but only {fetched:,} bytes were read from a device")
    linux.read_through(path)
    return [*lines, *_of_cache(path, size_bytes, random, seconds)]


def _places(size_bytes: int, each_bytes: int) -> np.ndarray:
    return np.arange(size_bytes // each_bytes, dtype=np.uint64) * np.uint64(each_bytes)


def _shuffled(size_bytes: int, each_bytes: int, random: np.random.Generator) -> np.ndarray:
    """Return the offsets of all pieces in random order, repeated in other orders if the file is small. An offset is
    repeated only after all other offsets, because a cache of the device might have the piece."""
    places = _places(size_bytes, each_bytes)
    return np.concatenate([random.permutation(places) for _ in range(max(200_000 // len(places), 1))])


def _of_device(path: Path, size_bytes: int, random: np.random.Generator, seconds: float) -> Iterator[Line]:
    for each_bytes in (SMALL_BYTES, LARGE_BYTES):
        for depth in DEPTHS:
            offsets = _shuffled(size_bytes, each_bytes, random)
            yield Line(RANDOM, direct_reads(path, offsets, each_bytes, depth, limit_s=seconds))
    # Start again if the file ends before the time is over, because a few reads are not enough.
    in_order = np.tile(_places(size_bytes, SEQUENTIAL_BYTES), 100)
    for depth in SEQUENTIAL_DEPTHS:
        yield Line(SEQUENTIAL, direct_reads(path, in_order, SEQUENTIAL_BYTES, depth, limit_s=seconds))


def _of_cache(path: Path, size_bytes: int, random: np.random.Generator, seconds: float) -> Iterator[Line]:
    for each_bytes in (SMALL_BYTES, LARGE_BYTES):
        yield Line(CACHED, cached_reads(path, _shuffled(size_bytes, each_bytes, random), each_bytes, limit_s=seconds))
    in_order = np.tile(_places(size_bytes, SEQUENTIAL_BYTES), 100)
    yield Line(CACHED_SEQUENTIAL, cached_reads(path, in_order, SEQUENTIAL_BYTES, limit_s=seconds))
