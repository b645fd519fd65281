"""Read and write local paths, fsspec URLs and open files. I/O faults raise OSError."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import secrets
import stat
import sys
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np

from libraries.f3.decoders.pages import LARGE_BYTES
from libraries.f3.errors import F3Error

_HASHED_AT_ONCE_BYTES = 4 * 1024 * 1024
_LEAST_BUFFER_BYTES = 16 * 1024 * 1024
"""Smallest buffer. It is enough for a few columns of most files."""

Location = str | os.PathLike[str] | BinaryIO


class ReadBuffer:
    """Memory that is reused for successive reads.

    Fresh memory is slow: the system clears it page by page, while recently used memory is in the processor's cache. A
    buffer that is still referenced elsewhere is not overwritten; `begin` then allocates another.
    """

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)
        self._references_of_ours = 0
        self._used = 0

    def begin(self, size_bytes: int) -> None:
        """Prepare for reads of `size_bytes` in total. Memory of earlier reads is used again, unless a result of these
        reads is still referenced."""
        # Every view of the memory adds a reference, and so does every view of a view.
        if sys.getrefcount(self._memory) > self._references_of_ours or len(self._memory) < size_bytes:
            # Free the old memory first, so that old and new memory do not exist at the same time.
            self._memory = np.empty(0, np.uint8)
            self._memory = _in_large_pages(max(size_bytes, _LEAST_BUFFER_BYTES))
            self._references_of_ours = sys.getrefcount(self._memory)
        self._used = 0

    def taken(self, size_bytes: int) -> memoryview:
        """Return memory for one read."""
        if size_bytes > len(self._memory) - self._used:
            return np.empty(size_bytes, np.uint8).data
        self._used += size_bytes
        return self._memory.data[self._used - size_bytes : self._used]


def _in_large_pages(size_bytes: int) -> np.ndarray:
    """Return memory that begins at the boundary of a large page, so that the system can use large pages (numpy requests
    them). Pages that are never touched take no memory."""
    whole_bytes = -(-size_bytes // LARGE_BYTES) * LARGE_BYTES
    memory = np.empty(whole_bytes + LARGE_BYTES, np.uint8)
    first = -memory.ctypes.data % LARGE_BYTES
    return memory[first : first + whole_bytes]


class ByteSource(Protocol):
    """A file to read. Each read returns separate memory, or memory of the buffer that the caller passes."""

    name: str
    size_bytes: int
    at_once_bytes: int
    """How many bytes to read together: enough for efficient reads, and few enough to limit memory."""
    near_bytes: int
    """Largest gap between two spans that are read together. The bytes between them are read too, because a second read
    would take longer."""
    shared_by_threads: bool
    """Whether several threads may read at the same time."""

    @property
    def descriptor(self) -> int | None:
        """The file descriptor of the operating system, or None if there is none. Raises F3Error if the file is
        closed."""

    def read(self, offset: int, size_bytes: int, buffer: ReadBuffer | None = None) -> memoryview:
        """Return `size_bytes` bytes at `offset`. Raises F3Error if the file is shorter. The caller adds the file's name
        to the message."""

    def close(self) -> None:
        """Close the file, if `open_source` opened it."""


class ByteTarget(Protocol):
    """A file to write. Its content appears under the final name only after `commit`."""

    def write(self, data: bytes) -> None:
        """Append bytes."""

    def commit(self) -> None:
        """Give the file its final name. A local file is synced to the disk before, and its folder after it.

        Raises OSError. An existing file is then unchanged, unless only syncing the folder failed.
        """

    def abort(self) -> None:
        """Remove everything that was written."""


def open_source(location: Location) -> ByteSource:
    """Open a file for reading.

    Raises OSError if the file does not exist. Raises F3Error if `location` is not the location of a file, or if it
    needs fsspec and fsspec is not installed.
    """
    if not isinstance(location, str | os.PathLike):
        _check_open(location, "seek", "read")
        return _OpenSource(location, getattr(location, "name", "an open file"), ours=False)
    name = _text(location)
    if "://" in name:
        filesystem, path = _filesystem(name)
        return _OpenSource(_opened(filesystem, path, name, "rb"), name, ours=True)
    return _LocalSource(name)


def open_target(location: Location) -> ByteTarget:
    """Open a file for writing.

    Raises OSError if the file cannot be written. Raises F3Error if `location` is not the location of a file, or if it
    needs fsspec and fsspec is not installed.
    """
    if not isinstance(location, str | os.PathLike):
        _check_open(location, "write", "flush")
        return _OpenTarget(location)
    name = _text(location)
    if "://" in name:
        filesystem, path = _filesystem(name)
        return _RemoteTarget(filesystem, path, name)
    return _LocalTarget(Path(name))


def _check_open(location: object, *methods: str) -> None:
    if isinstance(location, io.TextIOBase):
        raise F3Error(f"{getattr(location, 'name', 'an open file')}: is opened as text; open it with 'rb' or 'wb'")
    if not all(hasattr(location, method) for method in methods):
        raise F3Error(f"{location!r:.60} is neither a path, nor a URL, nor an open file")


def _text(location: str | os.PathLike[str]) -> str:
    name = os.fspath(location)
    if not isinstance(name, str):
        raise F3Error(f"{name!r:.60} is a path as bytes; convert the path to a string with os.fsdecode")
    return name


def read_spans(
    source: ByteSource, spans: Iterable[tuple[int, int]], buffer: ReadBuffer | None = None
) -> dict[tuple[int, int], memoryview]:
    """Return the bytes of each span (start, stop). Neighbouring spans share a read.

    Raises F3Error for overlapping spans. Parts of a valid file never overlap. Overlapping parts of a forged file could
    keep a reader busy without end.
    """
    wanted = sorted(set(spans))
    found: dict[tuple[int, int], memoryview] = {}
    first = 0
    while first < len(wanted):
        start, stop = wanted[first]
        last = first + 1
        while last < len(wanted) and wanted[last][0] <= stop + source.near_bytes:
            if wanted[last][0] < stop:
                raise F3Error(f"two parts of the file overlap at byte {wanted[last][0]}")
            stop = wanted[last][1]
            last += 1
        block = source.read(start, stop - start, buffer)
        for span in wanted[first:last]:
            found[span] = block[span[0] - start : span[1] - start]
        first = last
    return found


def pieces(source: ByteSource, size_bytes: int) -> Iterable[memoryview]:
    """Yield the first `size_bytes` bytes of a file, piece by piece."""
    for start in range(0, size_bytes, _HASHED_AT_ONCE_BYTES):
        yield source.read(start, min(_HASHED_AT_ONCE_BYTES, size_bytes - start))


class _LocalSource:
    """A local file, read with `preadv`."""

    at_once_bytes = 4 * 1024 * 1024
    # Reading this many further bytes takes about as long as another system call.
    near_bytes = 8 * 1024
    shared_by_threads = True

    def __init__(self, name: str) -> None:
        self.name = name
        # Without O_NONBLOCK, opening a pipe would block before its type can be checked.
        self._descriptor = descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        # After f3.open(path).read(), the caller has no reference with which to close the file.
        self.close = weakref.finalize(self, os.close, descriptor)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            self.close()
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a device, a pipe or a socket"
            raise F3Error(f"{name}: is not a file but {kind}")
        self.size_bytes = status.st_size

    @property
    def descriptor(self) -> int | None:
        # The system reuses the descriptor of a closed file for the next file that is opened.
        if not self.close.alive:
            raise F3Error("is closed; open it again")
        return self._descriptor

    def read(self, offset: int, size_bytes: int, buffer: ReadBuffer | None = None) -> memoryview:
        if not self.close.alive:
            raise F3Error("is closed; open it again")
        _check_within(self, offset, size_bytes)
        # np.empty does not clear the memory; a bytearray would.
        data = np.empty(size_bytes, np.uint8).data if buffer is None else buffer.taken(size_bytes)
        done = 0
        while done < size_bytes:
            count = os.preadv(self._descriptor, [data[done:]], offset + done)
            if count == 0:
                raise F3Error(_shorter(offset + done, self.size_bytes))
            done += count
        return data.toreadonly()


class _OpenSource:
    """A seekable open file, possibly remote. `close` closes it only if `open_source` opened it."""

    at_once_bytes = 32 * 1024 * 1024
    near_bytes = 64 * 1024
    shared_by_threads = False
    descriptor = None

    def __init__(self, file: BinaryIO, name: str, *, ours: bool) -> None:
        self.name = str(name)
        self._file, self._ours = file, ours
        self.size_bytes = file.seek(0, os.SEEK_END)

    def read(self, offset: int, size_bytes: int, buffer: ReadBuffer | None = None) -> memoryview:
        _check_within(self, offset, size_bytes)
        parts: list[bytes] = []
        missing = size_bytes
        self._file.seek(offset)
        while missing:
            part = self._file.read(missing)
            if not part:
                raise F3Error(_shorter(offset + size_bytes - missing, self.size_bytes))
            parts.append(part)
            missing -= len(part)
        return memoryview(parts[0] if len(parts) == 1 else b"".join(parts))

    def close(self) -> None:
        if self._ours:
            self._file.close()


def _shorter(end: int, size_bytes: int) -> str:
    return f"became shorter after it was opened: had {size_bytes} bytes, but has none from {end} on"


def _check_within(source: ByteSource, offset: int, size_bytes: int) -> None:
    if not 0 <= offset <= offset + size_bytes <= source.size_bytes:
        raise F3Error(f"{size_bytes} bytes at {offset} are outside the file, which has {source.size_bytes} bytes")


class _LocalTarget:
    """A temporary file next to the final one, on the same file system, so that the rename is atomic."""

    def __init__(self, path: Path) -> None:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if path.exists() and not path.is_file():
            # Renaming a file to /dev/null would replace the device by a regular file.
            raise F3Error(f"{path}: is a device, a pipe or a socket; use the path of a regular file")
        self._asked = path
        # Replace the target of a symbolic link, so that the link remains.
        path = Path(os.path.realpath(path))
        self._path = path
        # The name is shortened, because file names have at most 255 bytes.
        self._temporary = path.with_name(f".{path.name[:50]}.{secrets.token_hex(6)}.part")
        # tempfile is not used, because the file should have the default permissions of new files.
        with self._named():
            descriptor = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        self._file = os.fdopen(descriptor, "wb")

    def write(self, data: bytes) -> None:
        with self._named():
            self._file.write(data)

    def commit(self) -> None:
        with self._named():
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            # Opened before the rename, so that the previous file remains if the folder cannot be opened.
            folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.replace(self._temporary, self._path)
                os.fsync(folder)
            finally:
                os.close(folder)

    def abort(self) -> None:
        # Closing flushes the remaining bytes, which fails again if the disk is full.
        with contextlib.suppress(OSError):
            self._file.close()
        self._temporary.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """In OSErrors, report the path that the caller passed instead of the temporary file's path."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._asked)) from None


class _RemoteTarget:
    """A file of fsspec. It is written in a transaction, which hides the file until it is complete."""

    def __init__(self, filesystem: Any, path: str, name: str) -> None:
        self._filesystem = filesystem
        filesystem.start_transaction()
        self._file = _opened(filesystem, path, name, "wb")

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def commit(self) -> None:
        self._file.close()
        self._filesystem.end_transaction()

    def abort(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
        self._filesystem.transaction.complete(commit=False)


class _OpenTarget:
    """A file that the caller opened and will close."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def commit(self) -> None:
        self._file.flush()

    def abort(self) -> None:
        """Do nothing: bytes written to the caller's file cannot be removed."""


def _filesystem(name: str) -> tuple[Any, str]:
    try:
        fsspec = importlib.import_module("fsspec.core")
    except ImportError:
        raise F3Error(f"{name}: URLs need the package fsspec: 'pip install fsspec'") from None
    try:
        # Use a separate file system object, because a transaction covers all files of the object.
        filesystem, path = fsspec.url_to_fs(name, skip_instance_cache=True)
    except (ImportError, ValueError) as error:
        # A package for the protocol is missing, or fsspec does not support the protocol.
        raise F3Error(f"{name}: {error}") from None
    return filesystem, path


def _opened(filesystem: Any, path: str, name: str, mode: str) -> Any:
    try:
        return filesystem.open(path, mode)
    except NotImplementedError:
        raise F3Error(f"{name}: {type(filesystem).__name__} of fsspec does not open files with mode {mode!r}") from None
