"""Run SQLite on simulated disks, through a VFS that is implemented in Python.

The sqlite3 module cannot intercept SQLite's file calls, but SQLite accepts a VFS from any code in the process
(sqlite.org/c3ref/vfs.html). At a sync, an open and a delete this VFS does what os_unix.c does: the first sync of a new
journal also syncs the folder, and so does a delete that requests it.
"""

from __future__ import annotations

import atexit
import ctypes
import errno
import random
import sqlite3
import traceback
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_int, c_int64, c_void_p
from itertools import count
from pathlib import Path
from typing import Any
from weakref import WeakSet, WeakValueDictionary

import pytest

NAME = b"simulated"
OK, ERROR, FULL, IOERR, NOT_FOUND, CANTOPEN = 0, 1, 13, 10, 12, 14
SHORT_READ, NO_SUCH_FILE = IOERR | (2 << 8), IOERR | (23 << 8)
OPEN_CREATE, OPEN_DELETE_ON_CLOSE, OPEN_MAIN_JOURNAL, OPEN_WAL = 0x4, 0x8, 0x800, 0x80000
POWERSAFE_OVERWRITE = 0x1000
"""A write leaves neighbouring bytes unchanged. os_unix.c claims this property too."""

CHANCE = random.Random(1)
DISKS: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""First component of a path -> the simulated disk that holds SQLite's files."""

HANDLES = count(1)


class PowerLoss(BaseException):
    """The power is off. This is a BaseException, so that no `except Exception` of the tested code catches it."""


class OpenFile:
    """The file behind an sqlite3_file."""

    def __init__(self, disk: Any, path: Path, file: Any, new_journal: bool, delete: bool) -> None:
        self.disk, self.path, self.file, self.new_journal, self.delete = disk, path, file, new_journal, delete


OPEN: dict[int, OpenFile] = {}


class Handle(Structure):
    _fields_ = (("methods", c_void_p), ("number", c_int64))


TO_HANDLE = POINTER(Handle)
FILE_METHODS = (
    ("close", CFUNCTYPE(c_int, TO_HANDLE)),
    ("read", CFUNCTYPE(c_int, TO_HANDLE, c_void_p, c_int, c_int64)),
    ("write", CFUNCTYPE(c_int, TO_HANDLE, c_void_p, c_int, c_int64)),
    ("truncate", CFUNCTYPE(c_int, TO_HANDLE, c_int64)),
    ("sync", CFUNCTYPE(c_int, TO_HANDLE, c_int)),
    ("size", CFUNCTYPE(c_int, TO_HANDLE, POINTER(c_int64))),
    ("lock", CFUNCTYPE(c_int, TO_HANDLE, c_int)),
    ("unlock", CFUNCTYPE(c_int, TO_HANDLE, c_int)),
    ("reserved", CFUNCTYPE(c_int, TO_HANDLE, POINTER(c_int))),
    ("control", CFUNCTYPE(c_int, TO_HANDLE, c_int, c_void_p)),
    ("sector", CFUNCTYPE(c_int, TO_HANDLE)),
    ("traits", CFUNCTYPE(c_int, TO_HANDLE)),
)
VFS_METHODS: tuple[tuple[str, Any], ...] = (
    ("open", CFUNCTYPE(c_int, c_void_p, c_char_p, TO_HANDLE, c_int, POINTER(c_int))),
    ("delete", CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)),
    ("access", CFUNCTYPE(c_int, c_void_p, c_char_p, c_int, POINTER(c_int))),
    ("full", CFUNCTYPE(c_int, c_void_p, c_char_p, c_int, c_void_p)),
    ("dl_open", c_void_p),
    ("dl_error", c_void_p),
    ("dl_symbol", c_void_p),
    ("dl_close", c_void_p),
    ("randomness", CFUNCTYPE(c_int, c_void_p, c_int, c_void_p)),
    ("sleep", CFUNCTYPE(c_int, c_void_p, c_int)),
    ("now", CFUNCTYPE(c_int, c_void_p, POINTER(c_double))),
    ("last_error", CFUNCTYPE(c_int, c_void_p, c_int, c_void_p)),
)


class FileMethods(Structure):
    _fields_ = (("version", c_int), *FILE_METHODS)


class VFS(Structure):
    _fields_ = (
        ("version", c_int),
        ("handle_bytes", c_int),
        ("longest_path", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        *VFS_METHODS,
    )


def coded(function: Callable[..., int]) -> Callable[..., int]:
    """Convert exceptions to SQLite's error codes, because exceptions cannot pass through C."""

    def call(*arguments: Any) -> int:
        try:
            return function(*arguments)
        except PowerLoss:
            return IOERR
        except OSError as error:
            return FULL if error.errno == errno.ENOSPC else IOERR
        except BaseException:
            traceback.print_exc()
            return ERROR

    return call


def place(name: bytes) -> tuple[Any, Path]:
    path = Path(name.decode())
    return DISKS[path.parts[1]], path


def file_close(handle: Any) -> int:
    opened = OPEN.pop(handle.contents.number)
    if opened.delete:
        opened.disk.unlink(opened.path)
    return OK


def file_read(handle: Any, buffer: int, amount: int, offset: int) -> int:
    opened = OPEN[handle.contents.number]
    opened.disk.power.check()
    data = bytes(opened.file.content[offset : offset + amount])
    ctypes.memmove(buffer, data.ljust(amount, b"\0"), amount)
    return OK if len(data) == amount else SHORT_READ


def file_write(handle: Any, buffer: int, amount: int, offset: int) -> int:
    opened = OPEN[handle.contents.number]
    opened.disk.write_at(opened.file, ctypes.string_at(buffer, amount), offset)
    return OK


def file_truncate(handle: Any, size: int) -> int:
    opened = OPEN[handle.contents.number]
    opened.disk.truncate(opened.file, size)
    return OK


def file_sync(handle: Any, flags: int) -> int:
    opened = OPEN[handle.contents.number]
    opened.disk.sync_file(opened.file)
    if opened.new_journal:
        opened.disk.fsync_folder(opened.path.parent)
        opened.new_journal = False
    return OK


def file_size(handle: Any, size: Any) -> int:
    opened = OPEN[handle.contents.number]
    opened.disk.power.check()
    size[0] = len(opened.file.content)
    return OK


def file_reserved(handle: Any, answer: Any) -> int:
    answer[0] = 0
    return OK


def vfs_open(vfs: int, name: bytes | None, handle: Any, flags: int, flags_out: Any) -> int:
    handle.contents.methods = None
    if name is None:
        # SQLite opens temporary files without a name. The catalog keeps them in memory instead (PRAGMA temp_store).
        return CANTOPEN
    disk, path = place(name)
    new = path.name not in disk.listdir(path.parent)
    if new and not flags & OPEN_CREATE:
        return CANTOPEN
    file = disk.file(path, create=True)
    new_journal = new and bool(flags & (OPEN_MAIN_JOURNAL | OPEN_WAL))
    opened = OpenFile(disk, path, file, new_journal, delete=bool(flags & OPEN_DELETE_ON_CLOSE))
    number = next(HANDLES)
    OPEN[number] = opened
    handle.contents.number = number
    handle.contents.methods = ctypes.addressof(METHODS)
    if flags_out:
        flags_out[0] = flags
    return OK


def vfs_delete(vfs: int, name: bytes, sync_folder: int) -> int:
    disk, path = place(name)
    try:
        disk.unlink(path)
    except FileNotFoundError:
        return NO_SUCH_FILE
    if sync_folder:
        disk.fsync_folder(path.parent)
    return OK


def vfs_access(vfs: int, name: bytes, flags: int, answer: Any) -> int:
    disk, path = place(name)
    disk.power.check()
    answer[0] = int(path.name in disk.listdir(path.parent))
    return OK


def vfs_full(vfs: int, name: bytes, room: int, target: int) -> int:
    if len(name) + 1 > room:
        return CANTOPEN
    ctypes.memmove(target, name + b"\0", len(name) + 1)
    return OK


def vfs_randomness(vfs: int, amount: int, target: int) -> int:
    ctypes.memmove(target, CHANCE.randbytes(amount), amount)
    return amount


def vfs_now(vfs: int, days: Any) -> int:
    days[0] = 2460000.5
    return OK


FILE_CALLS: dict[str, Callable[..., int]] = {
    "close": file_close,
    "read": file_read,
    "write": file_write,
    "truncate": file_truncate,
    "sync": file_sync,
    "size": file_size,
    "lock": lambda *_: OK,
    "unlock": lambda *_: OK,
    "reserved": file_reserved,
    "control": lambda *_: NOT_FOUND,
    "sector": lambda *_: 4096,
    "traits": lambda *_: POWERSAFE_OVERWRITE,
}
VFS_CALLS: dict[str, Callable[..., int]] = {
    "open": vfs_open,
    "delete": vfs_delete,
    "access": vfs_access,
    "full": vfs_full,
    "randomness": vfs_randomness,
    "sleep": lambda *_: OK,
    "now": vfs_now,
    "last_error": lambda *_: OK,
}
METHODS = FileMethods(1, *(kind(coded(FILE_CALLS[name])) for name, kind in FILE_METHODS))
OURS = VFS(
    1,
    ctypes.sizeof(Handle),
    512,
    None,
    NAME,
    None,
    *(None if kind is c_void_p else kind(coded(VFS_CALLS[name])) for name, kind in VFS_METHODS),
)


def library() -> ctypes.CDLL:
    """Return the SQLite library that Python uses. Skip the test if it is linked into Python statically and cannot be
    reached."""
    import _sqlite3

    maps = Path("/proc/self/maps").read_text().splitlines()
    loaded = [line.split()[-1] for line in maps if "/libsqlite3" in line]
    for path in (*loaded, _sqlite3.__file__, None):
        found = ctypes.CDLL(path)
        if hasattr(found, "sqlite3_vfs_register"):
            return found
    pytest.skip("SQLite is built into this Python, so it cannot get a VFS")


REGISTERED: list[ctypes.CDLL] = []


def connect(path: Path) -> sqlite3.Connection:
    """Connect to the database `path` of a simulated disk."""
    if not REGISTERED:
        found = library()
        assert found.sqlite3_vfs_register(ctypes.byref(OURS), 0) == OK
        REGISTERED.append(found)
    connection = sqlite3.connect(
        f"file:{path}?vfs={NAME.decode()}", uri=True, isolation_level=None, check_same_thread=False, factory=Connection
    )
    CONNECTIONS.add(connection)
    return connection


class Connection(sqlite3.Connection):
    """A connection that supports weak references."""


CONNECTIONS: WeakSet[Connection] = WeakSet()


@atexit.register
def close_all() -> None:
    """Close all connections, so that SQLite does not call back into Python when the interpreter has ended."""
    for connection in list(CONNECTIONS):
        connection.close()
