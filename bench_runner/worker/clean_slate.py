"""Rule 3: what was freed before the clock goes back to the system, and garbage is not collected inside it."""

from __future__ import annotations

import gc

import pyarrow as pa

from bench_runner.machine import linux


def clean_slate(*, thorough: bool = True) -> None:
    """Rule 3: nothing that was freed before may hide in a pool, or a 100 MB allocation can show as 0.

    A thorough one looks at all that the process has loaded (some 40 ms), else only at what came since. In a forked
    worker it also copies the collector's marks on what the forkserver has loaded: better here than in the first full
    collection inside the clock, where there may be one.
    """
    gc.collect(2 if thorough else 1)
    for pool in _arrow_pools():
        pool.release_unused()
    linux.trim_heap()


def containers_made() -> int:
    """How many objects that the collector knows have been made and not freed, since some beginning, counted by its
    collections: good for differences alone."""
    collections = sum(generation["collections"] for generation in gc.get_stats())
    return collections * (gc.get_threshold()[0] + 1) + gc.get_count()[0]


def may_collect(containers: float) -> bool:
    """Whether making so many containers, or twice as many, may lead to a full collection."""
    (young, middle, old), (_, _, passed) = gc.get_threshold(), gc.get_count()
    return 2 * containers > (old - passed) * middle * young


def _arrow_pools() -> list[pa.MemoryPool]:
    pools = [pa.default_memory_pool()]
    for name in pa.supported_memory_backends():
        pools.append(getattr(pa, f"{name}_memory_pool")())
    return pools
