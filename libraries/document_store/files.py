"""The files of a store: written once from front to back, durable before they get their name, then only read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from libraries.document_store.errors import CorruptError, DocumentStoreError, FullError
from libraries.durable.calls import FileCalls, is_full

UNFINISHED = ".part"
"""How a name ends as long as its bytes are not durable."""


class FileWriter:
    """A new file, written from front to back by `written`, which syncs it, names it and closes it."""

    def __init__(self, calls: FileCalls, descriptor: int, check: Callable[[], None]) -> None:
        """`check` is called before each write, and ends it by what it raises."""
        self._calls, self._descriptor, self._check = calls, descriptor, check
        self.position_bytes = 0

    def write(self, data: bytes | memoryview) -> None:
        """All of `data`, after what was written before. Raises `OSError`, and whatever the writer's check raises."""
        self._check()
        self._calls.write(self._descriptor, data)
        self.position_bytes += memoryview(data).nbytes


class ReadCounter:
    """Counts what is read of any number of files, for any thread."""

    def __init__(self) -> None:
        self.bytes_read = 0
        self._adding = Lock()

    def add(self, length_bytes: int) -> None:
        """So much more."""
        with self._adding:
            self.bytes_read += length_bytes


class FileReader:
    """A file that does not change any more, open until `close`; for any thread."""

    def __init__(self, calls: FileCalls, path: Path, counter: ReadCounter | None = None) -> None:
        """Raises CorruptError if there is no such file."""
        self._calls = calls
        self._counter = counter or ReadCounter()
        self.name = path.name
        try:
            self.size_bytes = calls.status(path).size_bytes
            self._descriptor: int | None = calls.open(path)
        except FileNotFoundError:
            raise CorruptError(f"{self.name}: the store names this file, and it is not there") from None

    def read(self, length_bytes: int, offset_bytes: int) -> bytes:
        """Exactly so many bytes. Raises CorruptError if the file ends before, DocumentStoreError if the disk fails."""
        if length_bytes < 0 or offset_bytes < 0 or offset_bytes + length_bytes > self.size_bytes:
            raise CorruptError(
                f"{self.name}: {length_bytes} bytes at {offset_bytes} are asked for, it has {self.size_bytes}"
            )
        if self._descriptor is None:
            raise ValueError(f"{self.name} is closed")
        with told_as(self.name):
            data = self._calls.read(self._descriptor, length_bytes, offset_bytes)
        if len(data) != length_bytes:
            raise CorruptError(f"{self.name}: ends within {length_bytes} bytes at {offset_bytes}")
        self._counter.add(length_bytes)
        return data

    def close(self) -> None:
        """Give the descriptor back; harmless when repeated."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            self._calls.close(descriptor)


def nothing_to_check() -> None:
    """The check of a writer that nobody stops."""


@contextmanager
def written(calls: FileCalls, path: Path, check: Callable[[], None] = nothing_to_check) -> Iterator[FileWriter]:
    """A file that has its name once its bytes are durable, and its name is durable in the end; or no file at all.

    Raises `OSError`; then the unfinished file is removed, or left to `leftovers` if even that fails.
    """
    unfinished = path.with_name(path.name + UNFINISHED)
    descriptor = calls.create(unfinished)
    try:
        try:
            writer = FileWriter(calls, descriptor, check)
            yield writer
            calls.fsync(descriptor)
        finally:
            calls.close(descriptor)
        calls.rename(unfinished, path)
    except BaseException:
        with suppress(OSError):
            calls.unlink(unfinished)
        raise
    calls.fsync_folder(path.parent)


@contextmanager
def told_as(what: str) -> Iterator[None]:
    """Tell of a failed file call by its own error: FullError, or DocumentStoreError without a path."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise FullError(f"{what}: the disk is full. Free space there, then try again.") from error
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        raise DocumentStoreError(
            f"{what}: the disk failed ({reason}). Look at the machine's log before trying again."
        ) from error
