"""The file calls of everything that must outlive a power cut, behind one small object.

Such things go through `FileCalls`, so that a test can put a disk in its place that loses and tears what was not synced.
The order that counts is: data, fsync, rename, fsync of the folder, register.
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
    """Another process owns the folder."""


@dataclass(frozen=True)
class Status:
    """What the folder says of one file: its size in bytes, and when it was last written in seconds since the epoch."""

    size_bytes: int
    modified_s: float


class FileCalls(Protocol):
    """What may be asked of a disk. Every call raises `OSError` as the operating system does.

    Nothing that was written is durable before `fsync` of its descriptor returned, and no name (new, changed or gone)
    before `fsync_folder` of its folder returned: POSIX promises no more than that.
    """

    def lock(self, path: Path) -> int:
        """Make the file if there is none and own it until `close`; `BlockingIOError` if somebody else does."""

    def mkdir(self, folder: Path) -> None:
        """Make one folder."""

    def listdir(self, folder: Path) -> list[str]:
        """The names in a folder, in any order."""

    def status(self, path: Path) -> Status:
        """Size and age of a file."""

    def create(self, path: Path) -> int:
        """Make a file that is not there yet; a descriptor to write to."""

    def open(self, path: Path) -> int:
        """A descriptor to read from."""

    def read(self, descriptor: int, length: int, offset: int) -> bytes:
        """`length` bytes at `offset`, fewer only at the end of the file."""

    def write(self, descriptor: int, data: bytes | memoryview) -> None:
        """All of `data`, after what was written before."""

    def fsync(self, descriptor: int) -> None:
        """Return when the file's bytes are on the disk. After an error nothing is known of them: write anew."""

    def close(self, descriptor: int) -> None:
        """Give the descriptor back."""

    def rename(self, source: Path, target: Path) -> None:
        """Give a file another name in the same folder, in place of what had it: both or neither is seen."""

    def unlink(self, path: Path) -> None:
        """Take a name away."""

    def fsync_folder(self, folder: Path) -> None:
        """Return when the folder's names are on the disk."""

    def connect(self, path: Path) -> sqlite3.Connection:
        """SQLite on the file `path`, without transactions of the module's own, for any thread."""


class OSCalls:
    """The calls of the operating system."""

    def lock(self, path: Path) -> int:
        """A lock that dies with its process (flock)."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def mkdir(self, folder: Path) -> None:
        """As `FileCalls` has it."""
        os.mkdir(folder, 0o700)

    def listdir(self, folder: Path) -> list[str]:
        """As `FileCalls` has it."""
        return os.listdir(folder)

    def status(self, path: Path) -> Status:
        """As `FileCalls` has it."""
        found = os.stat(path)
        return Status(found.st_size, found.st_mtime)

    def create(self, path: Path) -> int:
        """As `FileCalls` has it."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def open(self, path: Path) -> int:
        """As `FileCalls` has it."""
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self, descriptor: int, length: int, offset: int) -> bytes:
        """As `FileCalls` has it; one call may give fewer bytes than there are."""
        pieces = []
        while length > 0 and (piece := os.pread(descriptor, length, offset)):
            pieces.append(piece)
            length -= len(piece)
            offset += len(piece)
        return b"".join(pieces)

    def write(self, descriptor: int, data: bytes | memoryview) -> None:
        """As `FileCalls` has it; one call may take fewer bytes than it is given."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]

    def fsync(self, descriptor: int) -> None:
        """As `FileCalls` has it."""
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        """As `FileCalls` has it."""
        os.close(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        """As `FileCalls` has it."""
        os.rename(source, target)

    def unlink(self, path: Path) -> None:
        """As `FileCalls` has it."""
        os.unlink(path)

    def fsync_folder(self, folder: Path) -> None:
        """As `FileCalls` has it."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def connect(self, path: Path) -> sqlite3.Connection:
        """As `FileCalls` has it."""
        return sqlite3.connect(path, isolation_level=None, check_same_thread=False)


def ensure_folder(calls: FileCalls, folder: Path) -> None:
    """Make the folder and those above it where they are missing, durably."""
    try:
        names = calls.listdir(folder)
    except FileNotFoundError:
        ensure_folder(calls, folder.parent)
        calls.mkdir(folder)
        calls.fsync_folder(folder.parent)
        return
    if not names:
        # A call before may have made it and died, or failed, before its name was durable. The folder above may be one
        # that others own, who let nobody read it: then they made this one too.
        with suppress(PermissionError):
            calls.fsync_folder(folder.parent)


def own_folder(calls: FileCalls, folder: Path) -> int:
    """Make the folder if there is none and own it; the descriptor of its lock, which ends with the process.

    Raises `InUseError` if another process owns it.
    """
    ensure_folder(calls, folder)
    try:
        return calls.lock(folder / "lock")
    except BlockingIOError:
        raise InUseError(
            f"The folder {folder} is in use, by another process or by an object of this one: end that, or take another."
        ) from None


def is_full(error: OSError) -> bool:
    """Whether a call failed because the disk, the user's share of it or the file may not grow."""
    return error.errno in _FULL
