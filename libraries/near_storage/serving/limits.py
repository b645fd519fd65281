"""How much a server does at once: requests in hand, requests that wait, bytes of each.

Flight has no limits of its own: every call gets a thread, and all of them would be answered together. It knows neither
Flight nor what a request does.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from libraries.near_storage.errors import BusyError


@dataclass(frozen=True)
class Limits:
    """What one server holds to.

    `requests` are answered at once, and as many uploads taken; `waiting` more wait for at most `wait_s`; the others are
    told to come again.
    A batch of an answer has about `batch_bytes` (one row at least; larger ones leave the processor's caches on their
    way through Flight); one request keeps at most `request_bytes` of a row group in memory; an uploaded partition has
    at most `partition_bytes`.
    """

    requests: int = 8
    waiting: int = 64
    wait_s: float = 5.0
    batch_bytes: int = 2 << 20
    request_bytes: int = 1 << 30
    partition_bytes: int = 64 << 30


class Gate:
    """Lets in so many requests at once. Safe for threads."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._changed = threading.Condition()
        self._inside = 0
        self._waiting = 0
        self.most_inside = 0
        self.admitted = 0

    @contextmanager
    def admitting(self) -> Iterator[None]:
        """One of the places, for as long as the block runs. BusyError if none gets free in time."""
        self._enter()
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify()

    def _enter(self) -> None:
        limits = self._limits
        with self._changed:
            if self._inside >= limits.requests:
                if self._waiting >= limits.waiting:
                    raise BusyError(
                        f"{self._inside} requests are being answered and {self._waiting} wait, "
                        f"at most {limits.requests} and {limits.waiting}: come again"
                    )
                self._waiting += 1
                try:
                    free = self._changed.wait_for(lambda: self._inside < limits.requests, limits.wait_s)
                finally:
                    self._waiting -= 1
                if not free:
                    raise BusyError(f"waited {limits.wait_s:g} s behind {self._inside} requests: come again")
            self._inside += 1
            self.admitted += 1
            self.most_inside = max(self.most_inside, self._inside)
