"""Memory that allocators keep of what was freed, given back to the system before it comes to much.

Every thread of Flight's has memory of its own, in Arrow's pool and in the C library's: without this a node that held
150 MB at a time had grown by 520 MB after 200 requests (pyarrow 26, glibc).
"""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path

import pyarrow as pa

from libraries.near_storage.serving import clock

GROWN_SHARE = 0.4
"""Of the limit: a process that grew by less is left alone, because memory that is given back has to be had again."""
EVERY_S = 0.1
"""The least time between two times, since each looks through all of it."""


class Resident:
    """How much this process has grown since this was made. Safe for threads."""

    def __init__(self, limit_bytes: int) -> None:
        self._most_bytes = int(GROWN_SHARE * limit_bytes)
        self._at_rest_bytes = resident_bytes()
        self._busy = threading.Lock()
        self._last_s = clock.elapsed_s()

    def tidy(self) -> None:
        """Give back what is free, if the process has grown by much."""
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
    """What this process has in memory; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)
"""glibc's; other C libraries have none."""
