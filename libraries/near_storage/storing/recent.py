"""A cache of bounded size for recently loaded values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    """A value that reports its size in bytes."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""


Held = TypeVar("Held", bound=Sized)


class Recent(Generic[Held]):
    """Keeps the most recently used values, up to `limit_bytes` in total. Thread-safe."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._bytes = 0
        self._held: OrderedDict[Hashable, Held] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, load: Callable[[], Held]) -> Held:
        """Return the cached value of the key, or load it with `load`. Two threads may load the same value."""
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
        loaded = load()
        self._keep(key, loaded)
        return loaded

    def forget(self, key: Hashable) -> None:
        """Drop the value of the key."""
        with self._lock:
            if key in self._held:
                self._bytes -= self._held.pop(key).nbytes

    def _keep(self, key: Hashable, loaded: Held) -> None:
        with self._lock:
            if key in self._held or loaded.nbytes > self._limit_bytes:
                return
            self._held[key] = loaded
            self._bytes += loaded.nbytes
            while self._bytes > self._limit_bytes:
                self._bytes -= self._held.popitem(last=False)[1].nbytes
