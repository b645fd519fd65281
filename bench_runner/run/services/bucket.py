"""A token bucket that limits the bytes per second of a network line."""

from __future__ import annotations

import threading

from bench_runner.clock import now_ns, pause

BURST_NS = 10 * 10**6
"""Capacity that was unused within the last 10 ms may be used later. This compensates long sleeps, but not idle
times."""


class Bucket:
    """Limit the rate to `bytes_per_s` for all threads that use the bucket together."""

    def __init__(self, bytes_per_s: float) -> None:
        self._ns_per_byte = 1e9 / bytes_per_s
        self._free_ns: float = now_ns()
        self._lock = threading.Lock()

    def wait(self, size_bytes: int) -> None:
        """Wait until another `size_bytes` bytes may be sent."""
        with self._lock:
            self._free_ns = max(self._free_ns, now_ns() - BURST_NS) + size_bytes * self._ns_per_byte
            until_ns = self._free_ns
        while (left_ns := until_ns - now_ns()) > 0:
            pause(left_ns / 1e9)
