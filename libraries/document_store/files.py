"""The files of a store. A file is written once, made durable before it gets its final name, and from then on only
read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from libraries.document_store.errors import CorruptError, DocumentStoreError, FullError
from libraries.durable.calls import FileCalls, is_full

UNFINISHED = ".part"
"""The suffix of a file whose bytes are not yet durable."""


class FileWriter:
    """A new file that is written sequentially. `written` syncs, names and closes the file."""

    def __init__(self, calls: FileCalls, descriptor: int, check: Callable[[], None]) -> None:
        """`check` is called before each write. It raises to stop the write."""
        self._calls, self._descriptor, self._check = calls, descriptor, check
        self.position_bytes = 0

    def write(self, data: bytes | memoryview) -> None:
        """Append all of `data`. Raises `OSError`, and the errors that the writer's `check` raises."""
        self._check()
        self._calls.write(self._descriptor, data)
        self.position_bytes += memoryview(data).nbytes


class ReadCounter:
    """Counts the bytes read from any number of files. Thread-safe."""

    def __init__(self) -> None:
        self.bytes_read = 0
        self._adding = Lock()

    def add(self, length_bytes: int) -> None:
        """Add `length_bytes` to the count."""
        with self._adding:
            self.bytes_read += length_bytes


class FileReader:
    """An immutable file, open until `close`. Thread-safe."""

    def __init__(self, calls: FileCalls, path: Path, counter: ReadCounter | None = None) -> None:
        """Open the file. Raises CorruptError if it does not exist."""
        self._calls = calls
        self._counter = counter or ReadCounter()
        self.name = path.name
        try:
            self.size_bytes = calls.status(path).size_bytes
            self._descriptor: int | None = calls.open(path)
        except FileNotFoundError:
            raise CorruptError(f"{self.name}: the store refers to this file, but it is missing") from None

    def read(self, length_bytes: int, offset_bytes: int) -> bytes:
        """Return exactly `length_bytes` bytes from `offset_bytes` on. Raises CorruptError if the file is too short,
        DocumentStoreError if the disk fails."""
        if length_bytes < 0 or offset_bytes < 0 or offset_bytes + length_bytes > self.size_bytes:
            raise CorruptError(
                f"{self.name}: {length_bytes} bytes at {offset_bytes} were requested, but the file has "
                f"{self.size_bytes} bytes"
            )
        if self._descriptor is None:
            raise ValueError(f"{self.name} is closed")
        with told_as(self.name):
            data = self._calls.read(self._descriptor, length_bytes, offset_bytes)
        if len(data) != length_bytes:
            raise CorruptError(
                f"{self.name}: {length_bytes} bytes at {offset_bytes} were requested, but only {len(data)} were read"
            )
        self._counter.add(length_bytes)
        return data

    def close(self) -> None:
        """Close the descriptor; repeated calls do nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            self._calls.close(descriptor)


def nothing_to_check() -> None:
    """Do nothing. As the default `check`, this function never stops a writer."""


@contextmanager
def written(calls: FileCalls, path: Path, check: Callable[[], None] = nothing_to_check) -> Iterator[FileWriter]:
    """Yield a writer. At the end of the `with` block, make the file's bytes durable, rename the file to `path`, and
    make the name durable.

    After an exception in the block, or an `OSError` of a file call, remove the unfinished file and raise the exception.
    If the removal fails too, `leftovers` finds the file later.
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
    """Convert the `OSError` of a failed file call to FullError or DocumentStoreError. The message names `what` instead
    of a path."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise FullError(f"{what}: the disk is full. Free space, then try again.") from error
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        raise DocumentStoreError(
            f"{what}: the disk failed ({reason}). Check the machine's log before trying again."
        ) from error
