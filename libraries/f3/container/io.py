"""Read and write bytes of local paths, fsspec URLs and open files. Device faults are OSErrors."""

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
"""Enough for a few columns in most files."""

Location = str | os.PathLike[str] | BinaryIO


class ReadBuffer:
    """Memory that is reused for one read after another.

    Fresh memory costs more than reading into it: the system clears it page by page, while recently used memory is in
    the processor's cache. Memory that is still referenced elsewhere is never overwritten; `begin` then takes fresh
    memory.
    """

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)
        self._references_of_ours = 0
        self._used = 0

    def begin(self, size_bytes: int) -> None:
        """Prepare for reads of `size_bytes` in total. Results of earlier reads are no longer needed."""
        # Every view of the memory, and every view of a view, adds a reference.
        if sys.getrefcount(self._memory) > self._references_of_ours or len(self._memory) < size_bytes:
            # Free the old memory first, so that both are never held together.
            self._memory = np.empty(0, np.uint8)
            self._memory = _in_large_pages(max(size_bytes, _LEAST_BUFFER_BYTES))
            self._references_of_ours = sys.getrefcount(self._memory)
        self._used = 0

    def taken(self, size_bytes: int) -> memoryview:
        """Return memory for a read."""
        if size_bytes > len(self._memory) - self._used:
            return np.empty(size_bytes, np.uint8).data
        self._used += size_bytes
        return self._memory.data[self._used - size_bytes : self._used]


def _in_large_pages(size_bytes: int) -> np.ndarray:
    """Return memory aligned to large pages where the system has them (numpy asks for them). Unused pages are free."""
    whole_bytes = -(-size_bytes // LARGE_BYTES) * LARGE_BYTES
    memory = np.empty(whole_bytes + LARGE_BYTES, np.uint8)
    first = -memory.ctypes.data % LARGE_BYTES
    return memory[first : first + whole_bytes]


class ByteSource(Protocol):
    """A file to read. Each read returns separate memory, or memory of the buffer that the caller passes."""

    name: str
    size_bytes: int
    at_once_bytes: int
    """Bytes to read together: enough to make a read worthwhile, few enough not to fill the memory."""
    near_bytes: int
    """Largest gap that is faster to read along than to skip with a second read."""
    shared_by_threads: bool
    """Whether several threads may read at the same time."""

    def read(self, offset: int, size_bytes: int, buffer: ReadBuffer | None = None) -> memoryview:
        """Return `size_bytes` at `offset`. Raises F3Error if the file lacks them; the caller adds the file's name."""

    def close(self) -> None:
        """Close the file if `open_source` opened it."""


class ByteTarget(Protocol):
    """A file to write. Its content appears under the final name only after `commit`."""

    def write(self, data: bytes) -> None:
        """Append."""

    def commit(self) -> None:
        """Make the file durable and give it its name."""

    def abort(self) -> None:
        """Remove everything that was written."""


def open_source(location: Location) -> ByteSource:
    """Open a file for reading.

    Raises OSError if it does not exist, F3Error if `location` is not the location of a file or needs fsspec and fsspec
    is not installed.
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

    Raises OSError if it cannot be written, F3Error if `location` is not the location of a file or needs fsspec and
    fsspec is not installed.
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
        raise F3Error(f"{name!r:.60} is a path of bytes; convert it with os.fsdecode")
    return name


def read_spans(
    source: ByteSource, spans: Iterable[tuple[int, int]], buffer: ReadBuffer | None = None
) -> dict[tuple[int, int], memoryview]:
    """Return the bytes of each (start, stop); neighbouring spans share a read.

    Raises F3Error for overlapping spans: parts of a file never overlap, and a forged file could otherwise keep a reader
    busy without end.
    """
    wanted = sorted(set(spans))
    found: dict[tuple[int, int], memoryview] = {}
    first = 0
    while first < len(wanted):
        start, stop = wanted[first]
        last = first + 1
        while last < len(wanted) and wanted[last][0] <= stop + source.near_bytes:
            if wanted[last][0] < stop:
                raise F3Error(f"two parts of the file overlap at {wanted[last][0]}")
            stop = wanted[last][1]
            last += 1
        block = source.read(start, stop - start, buffer)
        for span in wanted[first:last]:
            found[span] = block[span[0] - start : span[1] - start]
        first = last
    return found


def pieces(source: ByteSource, size_bytes: int) -> Iterable[memoryview]:
    """Yield the first `size_bytes` of a file, piece by piece."""
    for start in range(0, size_bytes, _HASHED_AT_ONCE_BYTES):
        yield source.read(start, min(_HASHED_AT_ONCE_BYTES, size_bytes - start))


class _LocalSource:
    """A local file, read with `preadv`."""

    at_once_bytes = 4 * 1024 * 1024
    # A call takes about as long as copying this many bytes.
    near_bytes = 8 * 1024
    shared_by_threads = True

    def __init__(self, name: str) -> None:
        self.name = name
        # Without O_NONBLOCK, opening a pipe would block before its type can be checked.
        self._descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        # After f3.open(path).read() no caller holds the file to close it.
        self.close = weakref.finalize(self, os.close, self._descriptor)
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            self.close()
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a device, a pipe or a socket"
            raise F3Error(f"{name}: is not a file but {kind}")
        self.size_bytes = status.st_size

    def read(self, offset: int, size_bytes: int, buffer: ReadBuffer | None = None) -> memoryview:
        if not self.close.alive:
            raise F3Error("is closed; open it again")
        _check_within(self, offset, size_bytes)
        # np.empty does not zero the memory; a bytearray would.
        data = np.empty(size_bytes, np.uint8).data if buffer is None else buffer.taken(size_bytes)
        done = 0
        while done < size_bytes:
            count = os.preadv(self._descriptor, [data[done:]], offset + done)
            if count == 0:
                raise F3Error(f"ended at {offset + done} while it was read")
            done += count
        return data.toreadonly()


class _OpenSource:
    """An open file with seek and read, possibly remote. Closed only if it was opened here."""

    at_once_bytes = 32 * 1024 * 1024
    near_bytes = 64 * 1024
    shared_by_threads = False

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
                raise F3Error(f"ended at {offset + size_bytes - missing} while it was read")
            parts.append(part)
            missing -= len(part)
        return memoryview(parts[0] if len(parts) == 1 else b"".join(parts))

    def close(self) -> None:
        if self._ours:
            self._file.close()


def _check_within(source: ByteSource, offset: int, size_bytes: int) -> None:
    if not 0 <= offset <= offset + size_bytes <= source.size_bytes:
        raise F3Error(f"{size_bytes} bytes at {offset} are outside the file, which has {source.size_bytes} bytes")


class _LocalTarget:
    """A temporary file next to the final one, on the same file system, so that the rename is atomic."""

    def __init__(self, path: Path) -> None:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if path.exists() and not path.is_file():
            # Replacing /dev/null would turn it into a file.
            raise F3Error(f"{path}: is a device, a pipe or a socket; name the path of a file")
        self._asked = path
        # Write to the target of a link, so that the link remains.
        path = Path(os.path.realpath(path))
        self._path = path
        # Shortened, because a file name has at most 255 bytes.
        self._temporary = path.with_name(f".{path.name[:50]}.{secrets.token_hex(6)}.part")
        # Not with tempfile: the file should have the usual permissions of new files.
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
            os.replace(self._temporary, self._path)
            folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def abort(self) -> None:
        # Closing flushes the remaining bytes, which fails again on a full disk.
        with contextlib.suppress(OSError):
            self._file.close()
        self._temporary.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Name the file that the caller asked for in device faults."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._asked)) from None


class _RemoteTarget:
    """A file of fsspec, written in a transaction that hides it until it is complete."""

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
        """Do nothing: what was written to the caller's file stays."""


def _filesystem(name: str) -> tuple[Any, str]:
    try:
        fsspec = importlib.import_module("fsspec.core")
    except ImportError:
        raise F3Error(f"{name}: needs fsspec: pip install fsspec") from None
    try:
        # A separate instance, because a transaction covers the whole instance.
        filesystem, path = fsspec.url_to_fs(name, skip_instance_cache=True)
    except (ImportError, ValueError) as error:
        # A package is missing, or fsspec does not support the protocol.
        raise F3Error(f"{name}: {error}") from None
    return filesystem, path


def _opened(filesystem: Any, path: str, name: str, mode: str) -> Any:
    try:
        return filesystem.open(path, mode)
    except NotImplementedError:
        raise F3Error(f"{name}: {type(filesystem).__name__} of fsspec does not open files with mode {mode!r}") from None
