"""One stream of a node, read by a thread of its own into a queue of bounded bytes.

Flight blocks without a limit on a node that hangs; here whoever waits does so for a limited time.
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
"""Bytes that wait to be taken; one batch may go beyond. More of them leave the processor's caches before they are."""


class StoppedError(NearStorageError):
    """The stream was stopped on this side: nothing was wrong with it."""


class Arrived(NamedTuple):
    """A batch and what stood beside it."""

    batch: pa.RecordBatch
    note: bytes


class Pump:
    """Reads one stream from construction on. `stop` ends it, whatever the node does."""

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
        """The next batch, None at the end of the stream; what the stream ended in otherwise.

        UnavailableError if nothing came for `timeout_s` seconds, StoppedError after `stop`.
        """
        with self._changed:
            if self._stopped:
                raise StoppedError(f"{self._name}: the stream was stopped")
            if not self._changed.wait_for(lambda: self._waiting or self._ended, timeout_s):
                raise UnavailableError(f"{self._name}: nothing came for {timeout_s:g} s")
            if self._waiting:
                arrived = self._waiting.popleft()
                self._waiting_bytes -= arrived.batch.nbytes
                self._changed.notify_all()
                return arrived
        if self._error is not None:
            raise from_call(self._name, self._error) from None
        return None

    def stop(self) -> None:
        """End the stream here and at the node. Does not wait for either."""
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
            # Whoever takes from the queue is told, in his own thread.
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
            raise UnavailableError(f"{self._name}: sends other columns than were planned; compare versions")
        for chunk in reader:
            note = b"" if chunk.app_metadata is None else chunk.app_metadata.to_pybytes()
            if not self._put(Arrived(chunk.data, note)):
                return

    def _put(self, arrived: Arrived) -> bool:
        """Queue a batch when there is room; False if nobody wants it any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._waiting_bytes < QUEUE_BYTES)
            if self._stopped:
                return False
            self._waiting.append(arrived)
            self._waiting_bytes += arrived.batch.nbytes
            self._changed.notify_all()
            return True
