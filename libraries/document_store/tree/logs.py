"""The logs of an open store. Decides which log is written and when a new log begins.

A new log begins with each flush, after a failed call on the last log, and with the first batch after opening the store.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from libraries.document_store.tree.log import Header, LogWriter, ReadLog, log_path
from libraries.durable.calls import FileCalls


@dataclass(frozen=True)
class _Before:
    """The log that the next log follows: its number, how many of its bytes are valid, and whether these bytes are
    durable."""

    number: int
    valid_bytes: int
    synced: bool


class Logs:
    """The logs of one store. Not thread-safe, because only the current writer of the store uses them."""

    def __init__(
        self,
        calls: FileCalls,
        folder: Path,
        found: Sequence[ReadLog],
        next_number: Callable[[], int],
        *,
        synced: bool,
        numbers: Sequence[int] = (),
    ) -> None:
        """`found` are the logs that were read when the store was opened. `numbers` are the numbers of all logs in the
        folder.

        Logs that a power cut left, but that were not read, stay until a flush, because a log must not be removed before
        its predecessors. No file is created before the first write.
        """
        self._calls, self._folder, self._next_number, self._synced = calls, folder, next_number, synced
        self.holds_found = any(log.payloads for log in found)
        """Whether logs that were found hold frames that are in no component.

        If a sync failed before the process died, these frames may be only in the page cache, and later syncs would not
        write them. These frames are therefore flushed to a component before the next frame is appended.
        """
        self._numbers = list(numbers)
        # A log without frames may lack a durable name, unless it is the first, which the manifest names.
        last = next((log for log in reversed(found) if log.payloads), found[0]) if found else None
        self._before = _Before(last.number, last.valid_bytes, synced=False) if last else None
        self._writer: LogWriter | None = None
        self._bytes_before = sum(log.valid_bytes for log in found)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the logs whose frames are not yet in components, and of other logs that a power cut left."""
        return tuple(self._numbers)

    @property
    def size_bytes(self) -> int:
        """Number of log bytes to read if the store were opened again now."""
        return self._bytes_before + (self._writer.valid_bytes if self._writer is not None else 0)

    def append(self, payload: bytes) -> None:
        """Append one frame. If a call on the last log failed, append the frame to a new log.

        If this raises `OSError`, the frame is not kept. There is one exception: creating the next log also fails, and
        the power is cut before any next log exists.
        """
        if self._writer is None or self._writer.failed:
            self._begin()
        assert self._writer is not None
        try:
            self._writer.append(payload)
        except OSError:
            # The next log records how many bytes of this log are valid, so begin it at once. If that fails, retry
            # before the next frame.
            with suppress(OSError):
                self._begin()
            raise

    def begin(self) -> int:
        """Begin a new log for the following frames and return its number. Raises `OSError`."""
        self._begin()
        return self._numbers[-1]

    def flushed(self, log: int) -> None:
        """Remove the logs before `log`, whose frames are now in components. Raises `OSError`."""
        self.holds_found = False
        gone = [number for number in self._numbers if number < log]
        self._numbers = [number for number in self._numbers if number >= log]
        self._bytes_before = 0
        for number in gone:
            self._calls.unlink(log_path(self._folder, number))

    def sync(self) -> None:
        """Make all appended frames durable, and ensure that no other frame is valid. Raises `OSError`.

        If a call on the last log failed, this begins a new log, whose header states how many bytes of the last log are
        valid.
        """
        if self._writer is not None and self._writer.failed:
            self._begin()
        if self._writer is not None:
            self._writer.sync()

    def close(self) -> None:
        """Close the descriptor."""
        if self._writer is not None:
            self._writer.close()

    def _begin(self) -> None:
        """Begin a new log. The old log stays open until the new log exists."""
        before = self._place()
        header = Header(
            secrets.randbits(64),
            previous=before.number if before else 0,
            previous_bytes=before.valid_bytes if before else 0,
            previous_synced=before.synced if before else True,
            synced=self._synced,
        )
        try:
            made = LogWriter(self._calls, self._folder, self._next_number(), header)
        except BaseException:
            # The header of the new log may be found later. It states that this log ends here, so do not append to this
            # log.
            if self._writer is not None:
                self._writer.failed = True
            raise
        if self._writer is not None:
            self._bytes_before += self._writer.valid_bytes
            self._writer.close()
        self._writer, self._before = made, None
        self._numbers.append(made.number)

    def _place(self) -> _Before | None:
        if self._writer is None:
            return self._before
        return _Before(self._writer.number, self._writer.valid_bytes, self._synced and not self.holds_found)
