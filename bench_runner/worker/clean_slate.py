"""Return freed memory to the system before timing, and avoid garbage collections during timing (rule 3)."""

from __future__ import annotations

import gc

import pyarrow as pa

from bench_runner.machine import linux


def clean_slate(*, thorough: bool = True) -> None:
    """Return freed memory to the system. If a pool kept it, a later 100 MB allocation could be measured as 0 (rule 3).

    A thorough call collects garbage among all objects of the process, which takes about 40 ms. Otherwise only recent
    objects are collected. In a forked worker, a thorough call also copies memory that the forkserver shares, because
    the collector writes marks on its objects. Otherwise this would happen in the first full collection, possibly during
    timing.
    """
    gc.collect(2 if thorough else 1)
    for pool in _arrow_pools():
        pool.release_unused()
    linux.trim_heap()


def containers_made() -> int:
    """Return the number of containers that were created and not freed, estimated from the number of collections. The
    starting point is arbitrary, so only differences are meaningful."""
    collections = sum(generation["collections"] for generation in gc.get_stats())
    return collections * (gc.get_threshold()[0] + 1) + gc.get_count()[0]


def may_collect(containers: float) -> bool:
    """Return whether creating up to twice this number of containers may trigger a full collection."""
    (young, middle, old), (_, _, passed) = gc.get_threshold(), gc.get_count()
    return 2 * containers > (old - passed) * middle * young


def _arrow_pools() -> list[pa.MemoryPool]:
    pools = [pa.default_memory_pool()]
    for name in pa.supported_memory_backends():
        pools.append(getattr(pa, f"{name}_memory_pool")())
    return pools
