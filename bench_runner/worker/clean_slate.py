"""Return freed memory to the system before timing, and avoid garbage collections during timing (rule 3)."""

from __future__ import annotations

import gc

import pyarrow as pa

from bench_runner.machine import linux


def clean_slate(*, thorough: bool = True) -> None:
    """Return freed memory to the system (rule 3). If a memory pool kept 100 MB of freed memory, for example, a later
    allocation of 100 MB could be measured as 0.

    With `thorough`, garbage is collected among all objects of the process, which takes about 40 ms. Otherwise garbage
    is collected among recent objects only. In a forked worker, a full collection also copies the memory that is shared
    with the forkserver, because the collector writes to each object. With `thorough` the copying happens here, not
    during timing.
    """
    gc.collect(2 if thorough else 1)
    for pool in _arrow_pools():
        pool.release_unused()
    linux.trim_heap()


def containers_made() -> int:
    """Return an estimate of how many more container objects were created than freed so far. The estimate uses the
    number of garbage collections. Only the difference between two calls is meaningful."""
    collections = sum(generation["collections"] for generation in gc.get_stats())
    return collections * (gc.get_threshold()[0] + 1) + gc.get_count()[0]


def may_collect(containers: float) -> bool:
    """Return whether creating this number of container objects may trigger a full garbage collection. To be safe,
    assume twice the number."""
    (young, middle, old), (_, _, passed) = gc.get_threshold(), gc.get_count()
    return 2 * containers > (old - passed) * middle * young


def _arrow_pools() -> list[pa.MemoryPool]:
    backends = pa.supported_memory_backends()
    return [pa.default_memory_pool(), *(getattr(pa, f"{name}_memory_pool")() for name in backends)]
