"""One stream of a node, read by its own thread into a queue of bounded size.

Arrow Flight waits forever for a node that hangs. Consumers of this queue wait for a limited time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa
import pyarrow.flight as flight

from libraries.near_storage.errors import NearStorageError, UnavailableError
from libraries.near_storage.serving.guard import from_call

QUEUE_BYTES = 8 << 20
"""Maximum bytes in the queue; a single batch may be larger. In a longer queue, batches leave the CPU caches before
use."""


class StoppedError(NearStorageError):
    """The client itself stopped the stream. Nothing failed."""


class Arrived(NamedTuple):
    """A batch and its metadata."""

    batch: pa.RecordBatch
    note: bytes


class Pump:
    """Reads one stream in a thread that starts at construction. `stop` ends reading even if the node hangs."""

    def __init__(self, open_stream: Callable[[], flight.FlightStreamReader], schema: pa.Schema, name: str) -> None:
        self._open_stream = open_stream
        self._schema = schema
        self._name = name
        self._changed = threading.Condition()
        self._waiting: deque[Arrived] = deque()
        self._waiting_bytes = 0
        self._error: BaseException | None = None
        self._ended = False
        self._stopped = False
        self._reader: flight.FlightStreamReader | None = None
        threading.Thread(target=self._run, name=f"near-storage-{name}", daemon=True).start()

    def take(self, timeout_s: float) -> Arrived | None:
        """Return the next batch, or None at the end of the stream. If an error ended the stream, raise it.

        Raises UnavailableError if nothing arrived for `timeout_s` seconds, StoppedError after `stop`.
        """
        with self._changed:
            if self._stopped:
                raise StoppedError(f"{self._name}: the stream was stopped")
            if not self._changed.wait_for(lambda: self._waiting or self._ended, timeout_s):
                raise UnavailableError(f"{self._name}: nothing arrived for {timeout_s:g} s")
            if self._waiting:
                arrived = self._waiting.popleft()
                self._waiting_bytes -= arrived.batch.nbytes
                self._changed.notify_all()
                return arrived
        if self._error is not None:
            raise from_call(self._name, self._error) from None
        return None

    def stop(self) -> None:
        """End the stream in this client and at the node, without waiting for either."""
        with self._changed:
            self._stopped = True
            self._waiting.clear()
            reader = self._reader
            self._changed.notify_all()
        if reader is not None:
            reader.cancel()

    def _run(self) -> None:
        try:
            self._read()
        except BaseException as error:
            # Raised in the thread of the consumer.
            self._error = error
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _read(self) -> None:
        reader = self._open_stream()
        with self._changed:
            self._reader = reader
            stopped = self._stopped
        if stopped:
            reader.cancel()
            return
        if not reader.schema.equals(self._schema):
            raise UnavailableError(f"{self._name}: sends other columns than planned; use the same release on both ends")
        for chunk in reader:
            note = b"" if chunk.app_metadata is None else chunk.app_metadata.to_pybytes()
            if not self._put(Arrived(chunk.data, note)):
                return

    def _put(self, arrived: Arrived) -> bool:
        """Queue a batch when there is room. Return False if the stream was stopped."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._waiting_bytes < QUEUE_BYTES)
            if self._stopped:
                return False
            self._waiting.append(arrived)
            self._waiting_bytes += arrived.batch.nbytes
            self._changed.notify_all()
            return True
