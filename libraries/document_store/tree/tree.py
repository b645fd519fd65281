"""The LSM tree. Data survive crashes once a write has returned, and unfinished work is never visible.

Batches and flushes run one at a time under the lock `writing`. New files are installed one at a time. A reader takes
the newest version under the lock `state`, which is held only briefly.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Condition, Lock, RLock
from typing import cast

from msgspec import structs

from libraries.document_store.errors import ClosedError, CorruptError, DocumentError, DocumentStoreError, LockedError
from libraries.document_store.files import ReadCounter, told_as
from libraries.document_store.indexes.index_files import IndexFile
from libraries.document_store.layouts import (
    ComponentOptions,
    CompressionName,
    KeyKind,
    LayoutName,
    ReadCache,
    StoredComponent,
)
from libraries.document_store.messagepack import check_rows
from libraries.document_store.schema import Schema
from libraries.document_store.tree.background_merge import Merge, Merger
from libraries.document_store.tree.log import HEADER_BYTES, ReadLog, log_numbers, log_path, read_logs
from libraries.document_store.tree.logs import Logs
from libraries.document_store.tree.manifest import (
    Manifest,
    highest_number,
    is_manifest,
    leftovers,
    read_manifest,
    write_manifest,
)
from libraries.document_store.tree.memtable import Batch, Key, Memtable
from libraries.document_store.tree.memtable_flush import Workshop
from libraries.document_store.tree.policy import MOST_COMPONENTS
from libraries.document_store.tree.versions import Held, Version
from libraries.document_store.values import ValueKind
from libraries.durable.calls import FileCalls, InUseError, own_folder

LOGS_FOR_MEMTABLE = 2
"""A memtable is flushed when its logs are larger than this number times the memtable's size limit.

Such a memtable can be small: if the same keys are written again and again, the log keeps every version.
"""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to open a store. If a layout or compression is None, use that of the existing store, or `amax` and `zstd` for
    a new store.

    With `late_merges`, no merge is due until the maximum number of components exists. `cache_bytes` is the size of the
    read cache.
    """

    key: str
    layout: LayoutName | None
    compression: CompressionName | None
    synced: bool
    memtable_bytes: int
    late_merges: bool = False
    cache_bytes: int = 0


_NO_FOLDER = (errno.ENOTDIR, errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG)
"""Errors about the chosen folder, not about the disk."""


class Tree:
    """The folder of a store, which no other process can open until `close`. Thread-safe."""

    def __init__(self, folder: Path, settings: Settings, calls: FileCalls) -> None:
        """Open or create the store. Raises LockedError, CorruptError, FullError, DocumentStoreError."""
        self.calls, self.folder, self._settings = calls, folder, settings
        self.writing, self._installing, self.state = RLock(), Lock(), Condition(Lock())
        self.counter = ReadCounter()
        self._closed = self._in_doubt = False
        with told_as("the store's folder"):
            try:
                self._lock = own_folder(calls, folder)
            except InUseError as error:
                raise LockedError(str(error)) from None
            except OSError as error:
                if error.errno not in _NO_FOLDER:
                    raise
                raise DocumentStoreError(
                    f"{folder}: cannot hold a store ({os.strerror(error.errno or 0)}). Use a writable folder, or one "
                    "that can be created."
                ) from None
        try:
            with told_as("the store"):
                self._open()
        except BaseException:
            calls.close(self._lock)
            raise
        self._merger = Merger(self, settings.late_merges)
        with self.state:
            self._merger.wake()

    # --- opening -----------------------------------------------------------------------------------------

    def _open(self) -> None:
        names = self.calls.listdir(self.folder)
        self._numbers = count(highest_number(names) + 1)
        manifest = read_manifest(self.calls, self.folder)
        if manifest is None:
            manifest, logs = self._created(names)
        else:
            self._check_settings(manifest)
            self._numbers = count(max(manifest.next_number, highest_number(names) + 1))
            there = [number for number in log_numbers(names) if number >= manifest.log]
            logs = self._new_logs(found := read_logs(self.calls, self.folder, manifest.log), there)
            self._memtable = self._replayed(found)
        self._manifest, self._logs = manifest, logs
        options = ComponentOptions(compression=manifest.compression)
        cache = ReadCache(self._settings.cache_bytes)
        self.workshop = Workshop(self.calls, self.folder, manifest.layout, options, self.counter, cache)
        self.version = self._opened(manifest)
        left = leftovers(self.calls.listdir(self.folder), manifest, set(logs.numbers))
        if left:
            # The manifest's name may not be durable yet. Make it durable before files of older manifests are removed.
            self.calls.fsync_folder(self.folder)
        for name in left:
            self.calls.unlink(self.folder / name)

    def _created(self, names: list[str]) -> tuple[Manifest, Logs]:
        """Create a store. Create the log first, so that a manifest never names a missing log."""
        for number in log_numbers(names):
            # An unfinished creation leaves at most the header of a log.
            if self.calls.status(log_path(self.folder, number)).size_bytes > HEADER_BYTES:
                raise CorruptError(
                    "the store's manifest is missing, but a log exists. Restore the manifest from a copy."
                )
        for name in leftovers(names, None, set()):
            self.calls.unlink(self.folder / name)
        logs = self._new_logs([], [])
        try:
            manifest = Manifest(
                key=self._settings.key,
                layout=self._settings.layout or "amax",
                compression=self._settings.compression or "zstd",
                log=logs.begin(),
                next_number=self.next_number(),
            )
            write_manifest(self.calls, self.folder, manifest)
        except BaseException:
            logs.close()
            raise
        self._memtable = Memtable()
        return manifest, logs

    def _new_logs(self, found: list[ReadLog], numbers: list[int]) -> Logs:
        return Logs(self.calls, self.folder, found, self.next_number, synced=self._settings.synced, numbers=numbers)

    def _check_settings(self, manifest: Manifest) -> None:
        asked = {"key": self._settings.key, "layout": self._settings.layout, "compression": self._settings.compression}
        for name, wanted in asked.items():
            stored = getattr(manifest, name)
            if wanted not in (None, stored):
                # By default, the key is 'id', and the others are those of the store.
                with_it = f"{name}={stored!r}" if name == "key" else f"{name}={stored!r}, or omit {name}="
                raise DocumentStoreError(
                    f"{self.folder}: this store's {name} is {stored!r}, not {wanted!r}. Open the store with "
                    f"{with_it}; for {name}={wanted!r}, use a new folder."
                )

    def _replayed(self, found: list[ReadLog]) -> Memtable:
        memtable = Memtable()
        for log in found:
            for payload in log.payloads:
                batch = Batch.from_bytes(payload)
                try:
                    check_rows([row for row in batch.rows if row is not None])
                except DocumentError as error:
                    raise CorruptError(f"log {log.number}: {error}") from None
                memtable.apply(batch)
        kinds = set(map(type, memtable.rows))
        if len(kinds) > 1:
            raise CorruptError("the logs hold keys of two kinds")
        return memtable

    def _opened(self, manifest: Manifest) -> Version:
        opened: list[Held[StoredComponent] | Held[IndexFile]] = []
        try:
            components, indexes = [], {}
            for number in manifest.components:
                component = self.workshop.open_component(number)
                opened.append(component)
                components.append(component)
            for path, numbers in manifest.indexes.items():
                files = [self.workshop.open_index(number) for number in numbers]
                opened.extend(files)
                indexes[path] = tuple(files)
        except BaseException:
            for file in opened:
                file.release()
            raise
        return Version(log=manifest.log, components=tuple(components), indexes=indexes)

    def next_number(self) -> int:
        """Return a new file number, which is never reused."""
        return next(self._numbers)

    # --- what it is --------------------------------------------------------------------------------------

    @property
    def manifest(self) -> Manifest:
        """The last durable manifest."""
        return self._manifest

    @property
    def memtable_bytes(self) -> int:
        """Approximate memory of the memtable."""
        return self._memtable.size_bytes

    @property
    def log_bytes(self) -> int:
        """Number of log bytes to read if the store were opened again now."""
        return self._logs.size_bytes

    @property
    def merges_done(self) -> int:
        """Number of merges since the store was opened."""
        return self._merger.done

    def key_kind(self) -> KeyKind | None:
        """The kind of keys; None while there are no keys."""
        with self.state:
            for key in self._memtable.rows:
                return "integer" if isinstance(key, int) else "text"
            return self._manifest.key_kind

    def schema_of(self, version: Version) -> Schema:
        """Return the newest component's schema, which the next flush extends."""
        if version.components:
            return version.components[0].content.schema
        kind = ValueKind.TEXT if self.key_kind() == "text" else ValueKind.INTEGER
        return Schema.new(self._manifest.key, kind)

    def hold(self, keys: Iterable[Key] | None = None) -> tuple[Memtable, Version]:
        """Return the current state: a copy of the memtable and a version. With `keys`, the copy has only the entries of
        these keys.

        The version's files stay until the caller releases the version. Raises ClosedError.
        """
        with self.state:
            self._check_open()
            if keys is None:
                memtable = self._memtable.copied()
            else:
                rows = self._memtable.rows
                memtable = Memtable({key: rows[key] for key in keys if key in rows})
            self.version.hold()
            return memtable, self.version

    # --- writing -----------------------------------------------------------------------------------------

    def write(self, batch: Batch) -> None:
        """Write the batch completely or not at all, durably if the log is synced. The caller holds `writing`.

        Raises FullError or DocumentStoreError if the disk fails, or if an earlier merge failed.
        """
        self._check_usable()
        size = self._memtable.size_bytes + batch.size_bytes()
        limit = self._settings.memtable_bytes
        full = size > limit or self._logs.size_bytes > LOGS_FOR_MEMTABLE * limit
        if self._memtable.rows and (full or self._logs.holds_found):
            # Flush before the batch is written, so that the batch is not written if the flush fails.
            self.flush()
        if self._in_doubt:
            self._write_manifest_again()
        with told_as("the log"):
            self._logs.append(batch.to_bytes())
        with self.state:
            self._memtable.apply(batch)

    def flush(self) -> None:
        """Write the memtable as one component. Wait for merges first while there are too many files.

        Raises the errors of `write`. After an error, the memtable and its log are unchanged.
        """
        with self.writing:
            self._check_usable()
            memtable = self._memtable
            if not memtable.rows:
                return
            self._merger.wait_for_room(MOST_COMPONENTS)
            with told_as("the flush"):
                log = self._logs.begin()
                made: list[Held[StoredComponent] | Held[IndexFile]] = []
                with self._given_up_unless_installed(made):
                    component = self.workshop.flush(self.next_number(), memtable, self.schema_of(self.version))
                    made.append(component)
                    indexes = {}
                    for path in self.version.indexes:
                        if entries := memtable.entries.get(path):
                            indexes[path] = self.workshop.flush_index(self.next_number(), entries)
                            made.append(indexes[path])
                    self._install(lambda version: version.flushed(log, component, indexes), Memtable())
            # A log that cannot be removed now is removed when the store is opened again: the manifest begins after it.
            with suppress(OSError):
                self._logs.flushed(log)

    def add_index(self, path: str, entries: Iterable[dict[bytes, bool]]) -> None:
        """Add an index with these entries. The entries are given in disjoint pieces, and each piece becomes a file.

        The caller holds `writing`, and the memtable must be empty. Raises the errors of `write`.
        """
        self._check_usable()
        made: list[Held[StoredComponent] | Held[IndexFile]] = []
        with told_as("the index"), self._given_up_unless_installed(made):
            for piece in entries:
                made.append(self.workshop.flush_index(self.next_number(), piece))
            files = cast("tuple[Held[IndexFile], ...]", tuple(made))
            self._install(lambda version: version.with_index(path, files), None)

    def install_merge(self, merge: Merge, made: Held[StoredComponent] | Held[IndexFile] | None) -> None:
        """Replace the merged files by the result. Raises `OSError`."""

        def change(version: Version) -> Version:
            if merge.path is None:
                return version.merged(merge.components, cast("Held[StoredComponent] | None", made))
            return version.index_merged(merge.path, merge.index_files, cast("Held[IndexFile] | None", made))

        with self._given_up_unless_installed([] if made is None else [made]):
            self._install(change, None)

    def _install(self, change: Callable[[Version], Version], memtable: Memtable | None) -> None:
        """Make a new version durable, then visible to readers. If `memtable` is given, it replaces the current memtable
        at the same moment. Raises `OSError`."""
        with self._installing:
            before = self.version
            after = change(before)
            manifest = structs.replace(
                self._manifest,
                key_kind=self.key_kind(),
                next_number=self.next_number(),
                log=after.log,
                components=tuple(file.number for file in after.components),
                indexes={path: tuple(file.number for file in files) for path, files in after.indexes.items()},
            )
            write_manifest(self.calls, self.folder, manifest)
            with self.state:
                self.version, self._manifest, self._in_doubt = after, manifest, False
                if memtable is not None:
                    self._memtable = memtable
                self._merger.wake()
        kept = set(map(id, after.files()))
        for file in before.files():
            if id(file) not in kept:
                file.release(unwanted=True)

    @contextmanager
    def _given_up_unless_installed(self, made: Sequence[Held[StoredComponent] | Held[IndexFile]]) -> Iterator[None]:
        """After an error, remove the new files. Keep them if the disk may have a manifest that names them."""
        try:
            yield
        except BaseException:
            unnamed = is_manifest(self.calls, self.folder, self._manifest)
            self._in_doubt = self._in_doubt or not unnamed
            installed = set(map(id, self.version.files()))
            for file in made:
                if id(file) not in installed:
                    file.release(unwanted=unnamed)
            raise

    def _write_manifest_again(self) -> None:
        """Write the current manifest again after an earlier write of a manifest failed.

        Without this, the next open could find the manifest of the failed write, with an index that later batches did
        not update. Raises the errors of `write`.
        """
        with told_as("the manifest"), self._installing:
            write_manifest(self.calls, self.folder, self._manifest)
            self._in_doubt = False

    # --- the end -----------------------------------------------------------------------------------------

    def wait_for_merges(self) -> None:
        """Return when no merge is due. Raises the error of a failed merge."""
        with self.state:
            self._check_open()
        self._merger.wait()

    def close(self, wait: bool) -> None:
        """Flush, wait for merges (or abort them if `wait` is false), and release the folder in any case.

        Raises the errors of `flush`. After an error, the memtable's data are still in the log.
        """
        with self.writing:
            if self._closed:
                return
            try:
                self.flush()
                if wait:
                    self._merger.wait()
            finally:
                self._merger.stop()
                with self.state:
                    self._closed = True
                try:
                    with told_as("the log"):
                        self._logs.sync()
                finally:
                    self._logs.close()
                    self.version.release()
                    self.workshop.give_up()
                    self.calls.close(self._lock)

    def _check_usable(self) -> None:
        with self.state:
            self._check_open()
            self._merger.raise_error()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the store is closed: open it again")
