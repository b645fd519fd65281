"""Return freed memory to the system before the clock, and avoid garbage collections inside it (rule 3)."""

from __future__ import annotations

import gc

import pyarrow as pa

from bench_runner.machine import linux


def clean_slate(*, thorough: bool = True) -> None:
    """Return freed memory to the system: if a pool kept it, a 100 MB allocation could show as 0 (rule 3).

    A thorough call collects all objects that the process has (some 40 ms), else only recent ones. In a forked worker it
    also copies the collector's marks on the objects of the forkserver, which would otherwise happen during the first
    full collection, possibly inside the clock.
    """
    gc.collect(2 if thorough else 1)
    for pool in _arrow_pools():
        pool.release_unused()
    linux.trim_heap()


def containers_made() -> int:
    """Return the number of containers made and not freed since an arbitrary start, estimated from the number of
    collections. Only differences are meaningful."""
    collections = sum(generation["collections"] for generation in gc.get_stats())
    return collections * (gc.get_threshold()[0] + 1) + gc.get_count()[0]


def may_collect(containers: float) -> bool:
    """Return whether making this number of containers, or twice as many, may lead to a full collection."""
    (young, middle, old), (_, _, passed) = gc.get_threshold(), gc.get_count()
    return 2 * containers > (old - passed) * middle * young


def _arrow_pools() -> list[pa.MemoryPool]:
    pools = [pa.default_memory_pool()]
    for name in pa.supported_memory_backends():
        pools.append(getattr(pa, f"{name}_memory_pool")())
    return pools
