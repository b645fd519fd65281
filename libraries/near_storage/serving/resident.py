"""Make allocators return freed memory to the operating system.

Each Flight thread has its own memory in Arrow's pool and in the C library's. Without this module, a node that used 150
MB at a time had grown by 520 MB after 200 requests (pyarrow 26, glibc).
"""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path

import pyarrow as pa

from libraries.near_storage.serving import clock

GROWN_SHARE = 0.4
"""Free memory is returned only once the process has grown by this share of its memory limit, because allocating it
again takes time."""
EVERY_S = 0.1
"""Minimum seconds between runs, because each run walks through all memory."""


class Resident:
    """Watches how much memory this process has gained since construction. Thread-safe."""

    def __init__(self, limit_bytes: int) -> None:
        self._most_bytes = int(GROWN_SHARE * limit_bytes)
        self._at_rest_bytes = resident_bytes()
        self._busy = threading.Lock()
        self._last_s = clock.elapsed_s()

    def tidy(self) -> None:
        """Return free memory to the system if the process has grown a lot."""
        if clock.elapsed_s() - self._last_s < EVERY_S or resident_bytes() - self._at_rest_bytes < self._most_bytes:
            return
        if self._busy.acquire(blocking=False):
            try:
                pa.default_memory_pool().release_unused()
                if _TRIM is not None:
                    _TRIM(0)
                self._last_s = clock.elapsed_s()
            finally:
                self._busy.release()


def resident_bytes() -> int:
    """Return the resident memory of this process; 0 where the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)
"""The C library's function `malloc_trim`, or None if the C library is not glibc."""
