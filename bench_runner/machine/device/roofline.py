"""The roofline of a device: the most reads and bytes a second that it gives of one file, whatever lies in it.

Measured on the stored copy itself, past the page cache, so that the cache stays as it was. On a virtual machine the
host's cache and limits lie below: figures are of what the guest is given. It knows no format.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench_runner.machine.device.reads import Reads, direct_reads

SMALL_BYTES, LARGE_BYTES, SEQUENTIAL_BYTES = 4_096, 65_536, 1_048_576
"""Sizes of reads: a page, what a file system reads together, what a scan asks for."""
DEPTHS = (1, 4, 16, 64)
"""So many random reads are under way at once."""
SEQUENTIAL_DEPTH = 8
"""Of reads in order."""
SECONDS = 0.4
"""For each size and depth."""
CPU_BOUND = 0.9
"""A probe that used so much of its core could not have asked for more: the device gives at least that."""


@dataclass(frozen=True)
class Line:
    """One size and depth: what the device gave, `at_least` where the probe was bound by its core."""

    kind: str
    """'random' or 'sequential'."""
    reads: Reads

    @property
    def at_least(self) -> bool:
        """Whether the device may give more."""
        return self.reads.cpu_ns > CPU_BOUND * self.reads.wall_ns


def roofline(path: Path, *, seed: int, seconds: float = SECONDS) -> list[Line]:
    """Random reads of 4 and 64 KiB at several depths, and reads in order, of a file of at least 1 MiB.

    Raises OSError where the file system has no reads past its cache (tmpfs, some network file systems), ValueError for
    a smaller file.
    """
    size_bytes = path.stat().st_size
    if size_bytes < SEQUENTIAL_BYTES:
        raise ValueError(f"{path.name}: {size_bytes:,} bytes are too few to tell a device by")
    return list(_lines(path, size_bytes, np.random.default_rng(seed), seconds))


def _lines(path: Path, size_bytes: int, random: np.random.Generator, seconds: float) -> Iterator[Line]:
    for each_bytes in (SMALL_BYTES, LARGE_BYTES):
        places = np.arange(size_bytes // each_bytes, dtype=np.uint64) * np.uint64(each_bytes)
        for depth in DEPTHS:
            # No place twice in a row of all: what was read a moment ago may lie in some cache below.
            offsets = np.concatenate([random.permutation(places) for _ in range(max(200_000 // len(places), 1))])
            yield Line("random", direct_reads(path, offsets, each_bytes, depth, limit_s=seconds))
    in_order = np.arange(size_bytes // SEQUENTIAL_BYTES, dtype=np.uint64) * np.uint64(SEQUENTIAL_BYTES)
    yield Line("sequential", direct_reads(path, in_order, SEQUENTIAL_BYTES, SEQUENTIAL_DEPTH, limit_s=seconds))
