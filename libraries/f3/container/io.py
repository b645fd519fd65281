"""Where a file's bytes come from and go to: local paths, URLs that fsspec knows, and open files.

Faults of the device are OSErrors, as everywhere in Python.
"""

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
_ROOM_BYTES = 16 * 1024 * 1024
"""What a few columns take as a rule."""

Location = str | os.PathLike[str] | BinaryIO


class Room:
    """Memory that reads go to, again and again. Fresh memory costs more than what is read into it: the system clears it
    page by page, while memory that was used a moment ago lies in the processor's cache.

    What somebody still holds is never written over: then the next reads go to fresh memory.
    """

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)
        self._references_of_ours = 0
        self._used = 0

    def begin(self, size_bytes: int) -> None:
        """The next reads take so many bytes together; what was read before is not needed any more."""
        # Every view of the memory, and of a view, is a reference more.
        if sys.getrefcount(self._memory) > self._references_of_ours or len(self._memory) < size_bytes:
            # The old one first: both need not be there together.
            self._memory = np.empty(0, np.uint8)
            self._memory = _in_large_pages(max(size_bytes, _ROOM_BYTES))
            self._references_of_ours = sys.getrefcount(self._memory)
        self._used = 0

    def taken(self, size_bytes: int) -> memoryview:
        """Memory for a read."""
        if size_bytes > len(self._memory) - self._used:
            return np.empty(size_bytes, np.uint8).data
        self._used += size_bytes
        return self._memory.data[self._used - size_bytes : self._used]


def _in_large_pages(size_bytes: int) -> np.ndarray:
    """Memory that begins and ends with large pages, where the system has them; numpy asks for them. What is not used of
    it costs nothing."""
    whole_bytes = -(-size_bytes // LARGE_BYTES) * LARGE_BYTES
    memory = np.empty(whole_bytes + LARGE_BYTES, np.uint8)
    first = -memory.ctypes.data % LARGE_BYTES
    return memory[first : first + whole_bytes]


class Source(Protocol):
    """What is read: bytes at an offset, each time into memory of their own, or where `room` has some."""

    name: str
    size_bytes: int
    at_once_bytes: int
    """How much to ask for together: as much as makes a read pay, and does not fill the memory."""
    near_bytes: int
    """A gap that is cheaper read along than left out by a second read."""
    shared_by_threads: bool
    """Whether several may read at the same time."""

    def read(self, offset: int, size_bytes: int, room: Room | None = None) -> memoryview:
        """Raises F3Error where the file has no such bytes (any more); its name is added where it is placed."""

    def close(self) -> None:
        """Give back what was opened here."""


class Target(Protocol):
    """What is written: nothing is seen under the final name before `commit`."""

    def write(self, data: bytes) -> None:
        """Append."""

    def commit(self) -> None:
        """Make it durable and give it its name."""

    def abort(self) -> None:
        """Leave nothing behind."""


def open_source(location: Location) -> Source:
    """Raises OSError where there is no such file, F3Error for what is no location of a file, and where fsspec would be
    needed and is not there."""
    if not isinstance(location, str | os.PathLike):
        _check_open(location, "seek", "read")
        return _OpenSource(location, getattr(location, "name", "an open file"), ours=False)
    name = _text(location)
    if "://" in name:
        filesystem, path = _filesystem(name)
        return _OpenSource(_opened(filesystem, path, name, "rb"), name, ours=True)
    return _LocalSource(name)


def open_target(location: Location) -> Target:
    """Raises OSError where no file can be written, F3Error for what is no location of a file, and where fsspec would be
    needed and is not there."""
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
        raise F3Error(f"{name!r:.60} is a path of bytes; os.fsdecode makes a text of it")
    return name


def read_spans(
    source: Source, spans: Iterable[tuple[int, int]], room: Room | None = None
) -> dict[tuple[int, int], memoryview]:
    """The bytes of each (start, stop), those that lie next to each other by one read.

    Raises F3Error for spans that overlap: no two things of a file lie in the same place, and a file that says so could
    make a reader work without end.
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
        block = source.read(start, stop - start, room)
        for span in wanted[first:last]:
            found[span] = block[span[0] - start : span[1] - start]
        first = last
    return found


def pieces(source: Source, size_bytes: int) -> Iterable[memoryview]:
    """The beginning of a file, piece by piece."""
    for start in range(0, size_bytes, _HASHED_AT_ONCE_BYTES):
        yield source.read(start, min(_HASHED_AT_ONCE_BYTES, size_bytes - start))


class _LocalSource:
    """A file of this machine, read by position."""

    at_once_bytes = 4 * 1024 * 1024
    # A call takes about as long as copying so much.
    near_bytes = 8 * 1024
    shared_by_threads = True

    def __init__(self, name: str) -> None:
        self.name = name
        # Without O_NONBLOCK a pipe would be waited for, before it could be seen that it is one.
        self._descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        # f3.open(path).read() leaves nobody who could close it.
        self.close = weakref.finalize(self, os.close, self._descriptor)
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            self.close()
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a device, a pipe or a socket"
            raise F3Error(f"{name}: is no file but {kind}")
        self.size_bytes = status.st_size

    def read(self, offset: int, size_bytes: int, room: Room | None = None) -> memoryview:
        if not self.close.alive:
            raise F3Error("is closed; open it again")
        _check_within(self, offset, size_bytes)
        # Not zeroed before it is overwritten, as a bytearray would be.
        data = np.empty(size_bytes, np.uint8).data if room is None else room.taken(size_bytes)
        done = 0
        while done < size_bytes:
            count = os.preadv(self._descriptor, [data[done:]], offset + done)
            if count == 0:
                raise F3Error(f"ended at {offset + done} while it was read")
            done += count
        return data.toreadonly()


class _OpenSource:
    """Anything that can seek and read, perhaps far away; closed only by who opened it."""

    at_once_bytes = 32 * 1024 * 1024
    near_bytes = 64 * 1024
    shared_by_threads = False

    def __init__(self, file: BinaryIO, name: str, *, ours: bool) -> None:
        self.name = str(name)
        self._file, self._ours = file, ours
        self.size_bytes = file.seek(0, os.SEEK_END)

    def read(self, offset: int, size_bytes: int, room: Room | None = None) -> memoryview:
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


def _check_within(source: Source, offset: int, size_bytes: int) -> None:
    if not 0 <= offset <= offset + size_bytes <= source.size_bytes:
        raise F3Error(f"{size_bytes} bytes at {offset} do not lie in a file of {source.size_bytes}")


class _LocalTarget:
    """A temporary file beside the final one, on the same file system, so that the renaming is one step."""

    def __init__(self, path: Path) -> None:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if path.exists() and not path.is_file():
            # /dev/null would be a file from then on.
            raise F3Error(f"{path}: is a device, a pipe or a socket and no file; name another path")
        self._asked = path
        # A link stays one: what it leads to is written.
        path = Path(os.path.realpath(path))
        self._path = path
        # Of long names the beginning: a name has at most 255 bytes.
        self._temporary = path.with_name(f".{path.name[:50]}.{secrets.token_hex(6)}.part")
        # Not by tempfile: the file keeps its permissions, which are those of every new file.
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
        # Closing writes what is still held, which fails again where the disk is full.
        with contextlib.suppress(OSError):
            self._file.close()
        self._temporary.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Faults of the device name the file that the user asked for."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._asked)) from None


class _RemoteTarget:
    """A file of fsspec, written in a transaction, which keeps it out of sight until it is complete."""

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
    """A file that the caller opened and will close: what is written stays."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def commit(self) -> None:
        self._file.flush()

    def abort(self) -> None:
        """Nothing of it is ours to take back."""


def _filesystem(name: str) -> tuple[Any, str]:
    try:
        fsspec = importlib.import_module("fsspec.core")
    except ImportError:
        raise F3Error(f"{name}: needs fsspec: pip install fsspec") from None
    try:
        # An instance of our own: a transaction is one of the whole instance.
        filesystem, path = fsspec.url_to_fs(name, skip_instance_cache=True)
    except (ImportError, ValueError) as error:
        # A package that is missing, or a protocol that fsspec does not know.
        raise F3Error(f"{name}: {error}") from None
    return filesystem, path


def _opened(filesystem: Any, path: str, name: str, mode: str) -> Any:
    try:
        return filesystem.open(path, mode)
    except NotImplementedError:
        raise F3Error(f"{name}: {type(filesystem).__name__} of fsspec does not open files as {mode!r}") from None
