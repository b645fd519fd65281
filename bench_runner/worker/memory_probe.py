"""Allocations of known size for testing the measurement of memory.

Method rule 13 requires allocations of 1, 10, 100 and 300 MB by numpy, by Arrow, as many small objects and by four
threads. Before each allocation, 500 MB are allocated and freed in the same worker process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa

DISTURBANCE_BYTES = 500 * 10**6
"""Number of bytes that are allocated and freed before each known allocation (rule 13)."""
SIZES_BYTES = (1 * 10**6, 10 * 10**6, 100 * 10**6, 300 * 10**6)
"""The sizes of the known allocations (rule 13)."""


def _by_numpy(size_bytes: int) -> Any:
    return np.full(size_bytes, 1, dtype=np.uint8)


def _by_arrow(size_bytes: int) -> Any:
    buffer = pa.allocate_buffer(size_bytes)
    np.frombuffer(buffer, dtype=np.uint8)[:] = 1
    return buffer


def _by_small_objects(size_bytes: int) -> Any:
    # A bytes object with 96 bytes of content has 129 bytes. malloc allocates 144 bytes for it, and the list needs 8.
    return [index.to_bytes(96, "little") for index in range(size_bytes // 152)]


def _by_four_threads(size_bytes: int) -> Any:
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(_by_numpy, [size_bytes // 4] * 4))


def disturb() -> None:
    """Allocate 500 MB, half by numpy and half by Arrow's pool, write to all of this memory, and free it."""
    half = DISTURBANCE_BYTES // 2
    del_later = [_by_numpy(half), _by_arrow(half)]
    del_later.clear()


ALLOCATIONS: Mapping[str, Callable[[int], Any]] = {
    "numpy": _by_numpy,
    "arrow": _by_arrow,
    "small objects": _by_small_objects,
    "four threads": _by_four_threads,
}

EXACT = frozenset({"numpy", "four threads"})
"""Names of the allocations whose true size is known exactly. For the other allocations only a range is known, because
Arrow's pool rounds sizes up and small objects have overhead."""
