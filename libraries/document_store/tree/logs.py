"""The logs of one store while it is open: which one grows, and when the next one begins.

A new one begins with each flush, after a call on the last one failed, and with the first batch after the store opened.
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
    """The log that the next one follows: how much of it counts, and whether that is durable."""

    number: int
    valid_bytes: int
    synced: bool


class Logs:
    """Not safe for threads: whoever writes to the store owns it."""

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
        """`found` are those that the store was opened with, and `numbers` those that lie there: what a cut left of
        others stays until a flush, since of several that follow each other none may go before the next. Nothing is
        made before something is to be written."""
        self._calls, self._folder, self._next_number, self._synced = calls, folder, next_number, synced
        self.holds_found = any(log.payloads for log in found)
        """Whether frames that were found are nowhere else. They may lie in memory that no sync reaches any more, where
        one had failed before the process died: so they are flushed before anything is appended."""
        self._numbers = list(numbers)
        # One without frames need not have its name for certain, unless it is the first, which the manifest names.
        last = next((log for log in reversed(found) if log.payloads), found[0]) if found else None
        self._before = _Before(last.number, last.valid_bytes, synced=False) if last else None
        self._writer: LogWriter | None = None
        self._bytes_before = sum(log.valid_bytes for log in found)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The logs that hold what no component has, and what a cut left of others."""
        return tuple(self._numbers)

    @property
    def size_bytes(self) -> int:
        """What would be read if the store were opened again."""
        return self._bytes_before + (self._writer.valid_bytes if self._writer is not None else 0)

    def append(self, payload: bytes) -> None:
        """One frame, in a new log where the last one failed. Raises `OSError`: then nothing of it is kept, unless the
        disk fails for the next log too and the power goes out before one could be made."""
        if self._writer is None or self._writer.failed:
            self._begin()
        assert self._writer is not None
        try:
            self._writer.append(payload)
        except OSError:
            # Made at once, the next log says what of this one counts. If that fails it is tried before the next frame.
            with suppress(OSError):
                self._begin()
            raise

    def begin(self) -> int:
        """A new log, whose number it gives: what comes next lies in that one. Raises `OSError`."""
        self._begin()
        return self._numbers[-1]

    def flushed(self, log: int) -> None:
        """Components have what lies in the logs before that one: they are removed. Raises `OSError`."""
        self.holds_found = False
        gone = [number for number in self._numbers if number < log]
        self._numbers = [number for number in self._numbers if number >= log]
        self._bytes_before = 0
        for number in gone:
            self._calls.unlink(log_path(self._folder, number))

    def sync(self) -> None:
        """Everything appended is durable on return, and nothing else counts. Raises `OSError`."""
        if self._writer is not None and self._writer.failed:
            self._begin()
        if self._writer is not None:
            self._writer.sync()

    def close(self) -> None:
        """Give the descriptor back."""
        if self._writer is not None:
            self._writer.close()

    def _begin(self) -> None:
        """The old one stays until the new one is there."""
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
            # Its header may be found later, and says that nothing follows in this one: so nothing may.
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
