"""The roofline of a device: the most reads and bytes a second that it gives of one file, whatever lies in it.

Measured on a stored copy itself, past the page cache; and then from it, which is the most that a warm read can have. On
a virtual machine the host's cache and limits lie below: figures are of what the guest is given.
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
"""Sizes of reads: a page, what a file system reads together, what a scan asks for."""
DEPTHS = (1, 4, 16, 64)
"""So many random reads are under way at once."""
SEQUENTIAL_DEPTHS = (1, 4, 16)
"""So many reads in order."""
EACH_S = 0.2
"""The time for each size and depth."""
LEAST_BYTES = 8 * 1024 * 1024
"""Of a smaller file a device cannot be told: few reads of it differ."""
CPU_BOUND = 0.9
"""A probe that used so much of its core could not have asked for more: the device gives at least that."""
DIRECT_SHARE = 0.9
"""So much of what direct reads gave must have come from the device: some file systems let the page cache answer."""
RANDOM, SEQUENTIAL, CACHED, CACHED_SEQUENTIAL = "random", "sequential", "cached", "cached sequential"
"""Kinds of lines: the first two past the page cache, the others from it."""


class NoRoofline(Exception):
    """A file of which no roofline can be measured, and why."""


@dataclass(frozen=True)
class Line:
    """One size and depth: what the device gave, or the page cache."""

    kind: str
    reads: Reads

    @property
    def at_least(self) -> bool:
        """Whether more may be had: the probe was bound by its core, or, where the cache answers, by Python."""
        if self.kind in (CACHED, CACHED_SEQUENTIAL):
            return not self.reads.compiled
        return self.reads.cpu_ns > CPU_BOUND * self.reads.wall_ns


def roofline(path: Path, *, seed: int, seconds: float = EACH_S) -> list[Line]:
    """Random reads of 4 and 64 KiB and reads in order, of a file that is synced: from the device at several depths,
    then from the page cache, in which it lies afterwards.

    Raises NoRoofline where the file is too small, or its file system has no reads past the cache (tmpfs, some network
    file systems); OSError when a read fails.
    """
    size_bytes = path.stat().st_size
    if size_bytes < LEAST_BYTES:
        needed = f"from {LEAST_BYTES / 1e6:.0f} MB on"
        raise NoRoofline(f"a stored copy of {size_bytes / 1e6:.1f} MB is too small to tell a device by ({needed})")
    random = np.random.default_rng(seed)
    before = linux.io_bytes().device_read
    try:
        lines = list(_of_device(path, size_bytes, random, seconds))
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM):
            raise NoRoofline(f"no reads past the page cache here: {error.strerror}") from None
        raise
    given = sum(line.reads.count * line.reads.size_bytes for line in lines)
    fetched = linux.io_bytes().device_read - before
    if fetched < DIRECT_SHARE * given:
        raise NoRoofline(f"direct reads gave {given:,} bytes, of which only {fetched:,} came from a device")
    linux.read_through(path)
    return [*lines, *_of_cache(path, size_bytes, random, seconds)]


def _places(size_bytes: int, each_bytes: int) -> np.ndarray:
    return np.arange(size_bytes // each_bytes, dtype=np.uint64) * np.uint64(each_bytes)


def _shuffled(size_bytes: int, each_bytes: int, random: np.random.Generator) -> np.ndarray:
    """No place twice in a row of all: what was read a moment ago may lie in some cache below."""
    places = _places(size_bytes, each_bytes)
    return np.concatenate([random.permutation(places) for _ in range(max(200_000 // len(places), 1))])


def _of_device(path: Path, size_bytes: int, random: np.random.Generator, seconds: float) -> Iterator[Line]:
    for each_bytes in (SMALL_BYTES, LARGE_BYTES):
        for depth in DEPTHS:
            offsets = _shuffled(size_bytes, each_bytes, random)
            yield Line(RANDOM, direct_reads(path, offsets, each_bytes, depth, limit_s=seconds))
    # Again from the start where the file ends before the time is over: a few reads tell nothing.
    in_order = np.tile(_places(size_bytes, SEQUENTIAL_BYTES), 100)
    for depth in SEQUENTIAL_DEPTHS:
        yield Line(SEQUENTIAL, direct_reads(path, in_order, SEQUENTIAL_BYTES, depth, limit_s=seconds))


def _of_cache(path: Path, size_bytes: int, random: np.random.Generator, seconds: float) -> Iterator[Line]:
    for each_bytes in (SMALL_BYTES, LARGE_BYTES):
        yield Line(CACHED, cached_reads(path, _shuffled(size_bytes, each_bytes, random), each_bytes, limit_s=seconds))
    in_order = np.tile(_places(size_bytes, SEQUENTIAL_BYTES), 100)
    yield Line(CACHED_SEQUENTIAL, cached_reads(path, in_order, SEQUENTIAL_BYTES, limit_s=seconds))
