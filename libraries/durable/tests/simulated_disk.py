"""A disk in memory that tells what was written from what was synced, and at a cut loses or tears the difference.

It stands in for `FileCalls`. What it takes from POSIX: bytes are durable after fsync of their file, names after fsync
of their folder, and until then any part of them may survive, in blocks of 512 bytes and in any order; a rename is seen
whole or not at all; after an fsync that failed, the next one says nothing of the bytes before it.

SQLite's own files lie on it too, through a VFS of the module beside this one.
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
    """Counts the calls that change something, on all disks that share it, and goes out in place of number `cut_at`."""

    cut_at: int | None = None
    calls: int = 0
    out: bool = False

    def step(self) -> None:
        """One more call; raises `PowerLoss` from the cut on."""
        self.calls += 1
        self.out = self.out or self.calls == self.cut_at
        self.check()

    def cut(self) -> None:
        """The power goes out in place of the next call."""
        self.cut_at = self.calls + 1

    def check(self) -> None:
        """Raises `PowerLoss` if the power is out."""
        if self.out:
            raise PowerLoss


@dataclass
class File:
    """One file: what a reader sees now, what is on the disk for certain, and the changes between the two.

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
        """Everything becomes durable, unless an earlier sync failed: then nobody knows, so nothing does."""
        if not self.sync_failed:
            self.durable = bytes(self.content)
            self.pending.clear()

    def surviving(self, chance: random.Random) -> File:
        """The file after a cut: each block as of some moment since the last sync, the size likewise."""
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
                # A file that grew, whose data did not get there, may show what lay on the disk before.
                block += chance.randbytes(BLOCK_BYTES - len(block))
            content += block.ljust(BLOCK_BYTES, b"\0")
        del content[size:]
        return File(content, bytes(content))


def apply(content: bytearray, change: tuple[int, bytes] | int) -> None:
    """One write or truncation."""
    if isinstance(change, int):
        del content[change:]
        content.extend(bytes(change - len(content)))
        return
    offset, data = change
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


def torn(first: bytes, second: bytes, chance: random.Random) -> bytes:
    """The beginning of one state of a block, the rest of another."""
    at = chance.randint(0, min(len(first), len(second)))
    return first[:at] + second[at:]


@dataclass
class Folder:
    """One folder: its names now, those on the disk for certain, and the changes between the two.

    A change is a set of names with what they mean from then on (None: gone), seen whole or not at all.
    """

    entries: dict[str, Node] = field(default_factory=dict)
    durable: dict[str, Node] = field(default_factory=dict)
    pending: list[dict[str, Node | None]] = field(default_factory=list)

    def change(self, change: dict[str, Node | None]) -> None:
        """Names come and go, unsynced."""
        rename(self.entries, change)
        self.pending.append(change)

    def sync(self) -> None:
        """Every name becomes durable."""
        self.durable = dict(self.entries)
        self.pending.clear()

    def surviving(self, chance: random.Random, done: dict[int, Node]) -> Folder:
        """The folder after a cut: the durable names, and any selection of the later changes."""
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
    """One change of names. A name that means something else by now than the change knew stays as it is."""
    arriving = [node for node in change.values() if node is not None]
    for name, node in change.items():
        if node is not None:
            entries[name] = node
        elif not arriving or entries.get(name) is arriving[0]:
            entries.pop(name, None)


class SimulatedDisk:
    """`FileCalls` on a disk of its own, whose paths begin with `root`: another one after each cut.

    `fail(...)` makes later calls raise an error of the operating system; `lost(...)` is the disk that a machine finds
    after a power cut, `restarted(...)` the one that it finds when only its process died.
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

    # --- what happens to it ------------------------------------------------------------------------------

    def fail(self, after_calls: int, number: int, most: int = sys.maxsize) -> None:
        """After `after_calls` more calls, all raise error `number`, or so many of them; without space, those alone that
        need some."""
        self._failing = (self.power.calls + after_calls, number)
        self._failures_left = most

    def copied(self, power: Power) -> SimulatedDisk:
        """Another disk with the same on it."""
        return type(self)(power, deepcopy(self._top))

    def rot(self, path: Path, chance: random.Random) -> None:
        """A byte of the file changes by itself."""
        file = self.file(path)
        file.content[chance.randrange(len(file.content))] ^= 1 << chance.randrange(8)
        file.durable = bytes(file.content)

    def heal(self) -> None:
        """No call fails any more."""
        self._failing = None

    def lost(self, chance: random.Random, power: Power | None = None) -> SimulatedDisk:
        """The disk after the power came back."""
        return type(self)(power, self._top.surviving(chance, {}))

    def restarted(self, power: Power | None = None) -> SimulatedDisk:
        """The disk after its process was killed: the operating system kept what it had been given."""
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
            # The root itself was not made by a call, and does not go.
            return
        self._step(may_fail=self._failing is not None and self._failing[1] == errno.EIO)
        self._folder(folder).sync()

    def connect(self, path: Path) -> sqlite3.Connection:
        return connect(path)

    # --- for the VFS and for tests -----------------------------------------------------------------------

    def file(self, path: Path, create: bool = False) -> File:
        """The file at `path`, made if asked for."""
        above, name = self._place(path)
        if name not in above.entries and create:
            self._step(may_fail=True)
            above.change({name: File()})
        found = above.entries.get(name)
        if not isinstance(found, File):
            raise FileNotFoundError(errno.ENOENT, "no such file")
        return found

    def write_at(self, file: File, data: bytes, offset: int) -> None:
        """Write; on a disk that is full, half of it."""
        try:
            self._step(may_fail=True)
        except OSError:
            file.change((offset, data[: len(data) // 2]))
            raise
        file.change((offset, data))

    def truncate(self, file: File, size: int) -> None:
        """Give the file another size."""
        self._step()
        file.change(size)

    def sync_file(self, file: File) -> None:
        """fsync; one that fails leaves it open for ever what reached the disk."""
        try:
            self._step(may_fail=True)
        except OSError:
            file.sync_failed = True
            raise
        file.sync()

    def files(self, folder: Path) -> dict[str, bytes]:
        """What lies in a folder, for tests."""
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
