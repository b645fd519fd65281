"""File calls for data that must survive a power cut, behind a small interface.

Libraries call `FileCalls`, so tests can substitute a simulated disk that loses unsynced data. To replace a file
durably, write the data, call fsync, rename the file, call fsync on the folder, and only then register the file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class InUseError(Exception):
    """Another process, or another object of this process, has locked the folder."""


@dataclass(frozen=True)
class Status:
    """The state of a file: its size in bytes, and the time of the last write in seconds since the epoch."""

    size_bytes: int
    modified_s: float


class FileCalls(Protocol):
    """Operations on a disk. Every call raises `OSError` as the operating system does.

    Written bytes are durable only after `fsync` of their descriptor returns. Names (new, changed or removed) are
    durable only after `fsync_folder` of their folder returns. POSIX guarantees no more.
    """

    def lock(self, path: Path) -> int:
        """Create the file if necessary, lock the file until `close`, and return its descriptor. Raises
        `BlockingIOError` if the file is locked already."""

    def mkdir(self, folder: Path) -> None:
        """Create one folder."""

    def listdir(self, folder: Path) -> list[str]:
        """Return the names in a folder, in any order."""

    def status(self, path: Path) -> Status:
        """Return the size of a file and the time of its last write."""

    def create(self, path: Path) -> int:
        """Create a file that does not exist and return a descriptor for writing."""

    def open(self, path: Path) -> int:
        """Return a descriptor for reading."""

    def read(self, descriptor: int, length: int, offset: int) -> bytes:
        """Return `length` bytes at `offset`, or fewer if the file ends before."""

    def write(self, descriptor: int, data: bytes | memoryview) -> None:
        """Append all of `data`."""

    def fsync(self, descriptor: int) -> None:
        """Wait until the file's bytes are on the disk. After an error the state of these bytes is unknown, so the
        caller must write them again."""

    def close(self, descriptor: int) -> None:
        """Close the descriptor."""

    def rename(self, source: Path, target: Path) -> None:
        """Rename a file within its folder, atomically replacing a file of the new name."""

    def unlink(self, path: Path) -> None:
        """Remove a file's name from its folder."""

    def fsync_folder(self, folder: Path) -> None:
        """Wait until the folder's names are on the disk."""

    def connect(self, path: Path) -> sqlite3.Connection:
        """Open an SQLite database that starts no implicit transactions and can be used from any thread."""


class OSCalls:
    """The system calls of the operating system."""

    def lock(self, path: Path) -> int:
        """See `FileCalls`. The lock (flock) also ends when the process ends."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def mkdir(self, folder: Path) -> None:
        """See `FileCalls`."""
        os.mkdir(folder, 0o700)

    def listdir(self, folder: Path) -> list[str]:
        """See `FileCalls`."""
        return os.listdir(folder)

    def status(self, path: Path) -> Status:
        """See `FileCalls`."""
        found = os.stat(path)
        return Status(found.st_size, found.st_mtime)

    def create(self, path: Path) -> int:
        """See `FileCalls`."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def open(self, path: Path) -> int:
        """See `FileCalls`."""
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self, descriptor: int, length: int, offset: int) -> bytes:
        """See `FileCalls`. The system call may return fewer bytes than there are, so it is repeated."""
        pieces = []
        while length > 0 and (piece := os.pread(descriptor, length, offset)):
            pieces.append(piece)
            length -= len(piece)
            offset += len(piece)
        return b"".join(pieces)

    def write(self, descriptor: int, data: bytes | memoryview) -> None:
        """See `FileCalls`. The system call may write fewer bytes than given, so it is repeated."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]

    def fsync(self, descriptor: int) -> None:
        """See `FileCalls`."""
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        """See `FileCalls`."""
        os.close(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        """See `FileCalls`."""
        os.rename(source, target)

    def unlink(self, path: Path) -> None:
        """See `FileCalls`."""
        os.unlink(path)

    def fsync_folder(self, folder: Path) -> None:
        """See `FileCalls`."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def connect(self, path: Path) -> sqlite3.Connection:
        """See `FileCalls`."""
        return sqlite3.connect(path, isolation_level=None, check_same_thread=False)


def ensure_folder(calls: FileCalls, folder: Path) -> None:
    """Create the folder and its missing parents, durably."""
    try:
        names = calls.listdir(folder)
    except FileNotFoundError:
        ensure_folder(calls, folder.parent)
        calls.mkdir(folder)
        calls.fsync_folder(folder.parent)
        return
    if not names:
        # The folder may exist although an earlier call failed before its name was durable, so sync the parent. The
        # parent may belong to another user and be unreadable. Then this folder was created by that user, and there is
        # nothing to sync.
        with suppress(PermissionError):
            calls.fsync_folder(folder.parent)


def own_folder(calls: FileCalls, folder: Path) -> int:
    """Create the folder if necessary, lock it, and return the lock's descriptor.

    The lock ends when the descriptor is closed or the process ends. Raises `InUseError` if the folder is locked
    already.
    """
    ensure_folder(calls, folder)
    try:
        return calls.lock(folder / "lock")
    except BlockingIOError:
        raise InUseError(
            f"The folder {folder} is in use, by this or another process. Close what uses the folder, or choose a "
            "different folder."
        ) from None


def is_full(error: OSError) -> bool:
    """Return whether a call failed for lack of space: the disk is full, or a quota or the maximum file size is
    reached."""
    return error.errno in _FULL
