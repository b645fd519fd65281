"""A disk in memory that distinguishes written from synced data. A power cut loses or tears the unsynced data.

The disk implements `FileCalls` and follows POSIX. Bytes are durable after fsync of their file, names after fsync of
their folder. Until then any part of them may survive, in blocks of 512 bytes and in any order. A rename is atomic.
After a failed fsync, a later fsync guarantees nothing about the bytes written before the failure.

SQLite's files are also on this disk, through the VFS in simulated_sqlite.py.
"""

from __future__ import annotations

import errno
import os
import random
import sqlite3
import sys
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TypeAlias

from libraries.durable.calls import Status
from libraries.durable.tests.simulated_sqlite import DISKS, PowerLoss, connect

__all__ = ["BLOCK_BYTES", "File", "Folder", "Power", "PowerLoss", "SimulatedDisk"]

BLOCK_BYTES = 512
NAMES = count(1)


@dataclass
class Power:
    """Counts the calls that change something, on all disks that share this object.

    Call number `cut_at` fails instead.
    """

    cut_at: int | None = None
    calls: int = 0
    out: bool = False

    def step(self) -> None:
        """Count a call. Raise `PowerLoss` from call number `cut_at` on."""
        self.calls += 1
        self.out = self.out or self.calls == self.cut_at
        self.check()

    def cut(self) -> None:
        """Cut the power instead of the next call."""
        self.cut_at = self.calls + 1

    def check(self) -> None:
        """Raise `PowerLoss` if the power is out."""
        if self.out:
            raise PowerLoss


@dataclass
class File:
    """A file: the content that readers see, the durable content, and the changes between the two.

    A change is (offset, data) for a write, or the new size for a truncation.
    """

    content: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    pending: list[tuple[int, bytes] | int] = field(default_factory=list)
    sync_failed: bool = False

    def change(self, change: tuple[int, bytes] | int) -> None:
        """Write or truncate, unsynced."""
        apply(self.content, change)
        self.pending.append(change)

    def sync(self) -> None:
        """Make all changes durable, unless an earlier sync failed: then their state is unknown and nothing happens."""
        if not self.sync_failed:
            self.durable = bytes(self.content)
            self.pending.clear()

    def surviving(self, chance: random.Random) -> File:
        """Return the file after a power cut. Each block, and the size, is as of some moment since the last sync."""
        moments = len(self.pending)
        if moments == 0:
            return File(bytearray(self.durable), self.durable)
        common = chance.choice([0, moments, chance.randint(0, moments), None])
        states = {0: self.durable}

        def state() -> bytes:
            moment = chance.randint(0, moments) if common is None else common
            if moment not in states:
                content = bytearray(self.durable)
                for change in self.pending[:moment]:
                    apply(content, change)
                states[moment] = bytes(content)
            return states[moment]

        size = len(state())
        content = bytearray()
        while len(content) < size:
            start = len(content)
            block = state()[start : start + BLOCK_BYTES]
            if common is None and chance.random() < 0.1:
                block = torn(block, state()[start : start + BLOCK_BYTES], chance)
            if len(block) < BLOCK_BYTES and start >= len(self.durable) and chance.random() < 0.1:
                # The end of a file that grew, but whose new data was lost, may show old content of the disk.
                block += chance.randbytes(BLOCK_BYTES - len(block))
            content += block.ljust(BLOCK_BYTES, b"\0")
        del content[size:]
        return File(content, bytes(content))


def apply(content: bytearray, change: tuple[int, bytes] | int) -> None:
    """Apply a write or truncation."""
    if isinstance(change, int):
        del content[change:]
        content.extend(bytes(change - len(content)))
        return
    offset, data = change
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


def torn(first: bytes, second: bytes, chance: random.Random) -> bytes:
    """Return the beginning of one state of a block, followed by the rest of another state."""
    at = chance.randint(0, min(len(first), len(second)))
    return first[:at] + second[at:]


@dataclass
class Folder:
    """A folder: its current names, its durable names, and the changes between the two.

    A change maps names to new nodes, or to None for a removed name, and is atomic.
    """

    entries: dict[str, Node] = field(default_factory=dict)
    durable: dict[str, Node] = field(default_factory=dict)
    pending: list[dict[str, Node | None]] = field(default_factory=list)

    def change(self, change: dict[str, Node | None]) -> None:
        """Add and remove names without syncing them."""
        rename(self.entries, change)
        self.pending.append(change)

    def sync(self) -> None:
        """Make all names durable."""
        self.durable = dict(self.entries)
        self.pending.clear()

    def surviving(self, chance: random.Random, done: dict[int, Node]) -> Folder:
        """Return the folder after a power cut: the durable names, and any selection of the later changes."""
        some = chance.randint(0, len(self.pending))
        kept = chance.choice(
            [
                [],
                self.pending,
                self.pending[:some],
                [change for number, change in enumerate(self.pending, 1) if number != some],
                [change for change in self.pending if chance.random() < 0.5],
            ]
        )
        entries = dict(self.durable)
        for change in kept:
            rename(entries, change)
        survivors: dict[str, Node] = {}
        for name, node in sorted(entries.items()):
            if id(node) not in done:
                done[id(node)] = node.surviving(chance, done) if isinstance(node, Folder) else node.surviving(chance)
            survivors[name] = done[id(node)]
        return Folder(survivors, dict(survivors))


Node: TypeAlias = File | Folder


def rename(entries: dict[str, Node], change: dict[str, Node | None]) -> None:
    """Apply a change of names. A name whose node has changed since stays as it is."""
    arriving = [node for node in change.values() if node is not None]
    for name, node in change.items():
        if node is not None:
            entries[name] = node
        elif not arriving or entries.get(name) is arriving[0]:
            entries.pop(name, None)


class SimulatedDisk:
    """`FileCalls` on a separate simulated disk, whose paths begin with `root`. Each power cut returns another disk.

    `fail(...)` makes later calls raise an error of the operating system. `lost(...)` returns the disk after a power
    cut, `restarted(...)` the disk after only its process was killed.
    """

    def __init__(self, power: Power | None = None, top: Folder | None = None) -> None:
        self.power = power or Power()
        self.root = Path(f"/simulated-{next(NAMES)}")
        self._top = top or Folder()
        self._open: dict[int, File] = {}
        self._locks: dict[int, Path] = {}
        self._descriptors = count(1_000_000)
        self._failing: tuple[int, int] | None = None
        self._failures_left = 0
        DISKS[self.root.parts[1]] = self

    # --- events ------------------------------------------------------------------------------------------

    def fail(self, after_calls: int, number: int, most: int = sys.maxsize) -> None:
        """Make calls raise error `number`, after `after_calls` more calls and at most `most` times.

        If the error is a full disk, only calls that need space fail."""
        self._failing = (self.power.calls + after_calls, number)
        self._failures_left = most

    def copied(self, power: Power) -> SimulatedDisk:
        """Return another disk with the same content."""
        return type(self)(power, deepcopy(self._top))

    def rot(self, path: Path, chance: random.Random) -> None:
        """Change a byte of the file, as a failing disk would."""
        file = self.file(path)
        file.content[chance.randrange(len(file.content))] ^= 1 << chance.randrange(8)
        file.durable = bytes(file.content)

    def heal(self) -> None:
        """Stop failing."""
        self._failing = None

    def lost(self, chance: random.Random, power: Power | None = None) -> SimulatedDisk:
        """Return the disk after a power cut."""
        return type(self)(power, self._top.surviving(chance, {}))

    def restarted(self, power: Power | None = None) -> SimulatedDisk:
        """Return the disk after its process was killed. The operating system keeps everything that was written."""
        return type(self)(power, self._top)

    # --- FileCalls ---------------------------------------------------------------------------------------

    def lock(self, path: Path) -> int:
        self.power.check()
        if path in self._locks.values():
            raise BlockingIOError(errno.EAGAIN, "locked")
        descriptor = self._descriptor(self.file(path, create=True))
        self._locks[descriptor] = path
        return descriptor

    def mkdir(self, folder: Path) -> None:
        self._step(may_fail=True)
        above, name = self._place(folder)
        if name in above.entries:
            raise FileExistsError(errno.EEXIST, "exists")
        above.change({name: Folder()})

    def listdir(self, folder: Path) -> list[str]:
        self.power.check()
        return list(self._folder(folder).entries)

    def status(self, path: Path) -> Status:
        self.power.check()
        return Status(len(self.file(path).content), 0.0)

    def create(self, path: Path) -> int:
        above, name = self._place(path)
        if name in above.entries:
            raise FileExistsError(errno.EEXIST, "exists")
        return self._descriptor(self.file(path, create=True))

    def open(self, path: Path) -> int:
        self.power.check()
        return self._descriptor(self.file(path))

    def read(self, descriptor: int, length: int, offset: int) -> bytes:
        self.power.check()
        return bytes(self._open[descriptor].content[offset : offset + length])

    def write(self, descriptor: int, data: bytes | memoryview) -> None:
        file = self._open[descriptor]
        self.write_at(file, bytes(data), len(file.content))

    def fsync(self, descriptor: int) -> None:
        self.sync_file(self._open[descriptor])

    def close(self, descriptor: int) -> None:
        self._locks.pop(descriptor, None)
        del self._open[descriptor]

    def rename(self, source: Path, target: Path) -> None:
        self._step(may_fail=True)
        above, name = self._place(target)
        assert source.parent == target.parent
        above.change({source.name: None, name: self.file(source)})

    def unlink(self, path: Path) -> None:
        self.file(path)
        self._step()
        above, name = self._place(path)
        above.change({name: None})

    def fsync_folder(self, folder: Path) -> None:
        if folder == self.root.parent:
            # The root folder was not created by a call, so it is always durable.
            return
        self._step(may_fail=self._failing is not None and self._failing[1] == errno.EIO)
        self._folder(folder).sync()

    def connect(self, path: Path) -> sqlite3.Connection:
        return connect(path)

    # --- for the VFS and for tests -----------------------------------------------------------------------

    def file(self, path: Path, create: bool = False) -> File:
        """Return the file at `path`. Create it if `create` is true and it does not exist."""
        above, name = self._place(path)
        if name not in above.entries and create:
            self._step(may_fail=True)
            above.change({name: File()})
        found = above.entries.get(name)
        if not isinstance(found, File):
            raise FileNotFoundError(errno.ENOENT, "no such file")
        return found

    def write_at(self, file: File, data: bytes, offset: int) -> None:
        """Write the data. On a full disk, write only half of it."""
        try:
            self._step(may_fail=True)
        except OSError:
            file.change((offset, data[: len(data) // 2]))
            raise
        file.change((offset, data))

    def truncate(self, file: File, size: int) -> None:
        """Change the size of the file."""
        self._step()
        file.change(size)

    def sync_file(self, file: File) -> None:
        """Sync the file. If that fails, it is unknown which bytes reached the disk."""
        try:
            self._step(may_fail=True)
        except OSError:
            file.sync_failed = True
            raise
        file.sync()

    def files(self, folder: Path) -> dict[str, bytes]:
        """Return the contents of a folder's files."""
        return {
            name: bytes(node.content) for name, node in self._folder(folder).entries.items() if isinstance(node, File)
        }

    def _step(self, may_fail: bool = False) -> None:
        self.power.step()
        if may_fail and self._failing is not None and self.power.calls > self._failing[0]:
            self._fail_now()

    def _fail_now(self) -> None:
        assert self._failing is not None
        number = self._failing[1]
        self._failures_left -= 1
        if self._failures_left == 0:
            self.heal()
        raise OSError(number, os.strerror(number))

    def _descriptor(self, file: File) -> int:
        descriptor = next(self._descriptors)
        self._open[descriptor] = file
        return descriptor

    def _place(self, path: Path) -> tuple[Folder, str]:
        return self._folder(path.parent), path.name

    def _folder(self, path: Path) -> Folder:
        found: Node = self._top
        assert path.parts[1] == self.root.name, f"{path} is on another disk"
        for name in path.parts[2:]:
            if not isinstance(found, Folder) or name not in found.entries:
                raise FileNotFoundError(errno.ENOENT, "no such folder")
            found = found.entries[name]
        if not isinstance(found, Folder):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder")
        return found
