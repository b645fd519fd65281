"""From a memtable to durable files that nothing names yet: one component, and one of each secondary index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import RLock

from libraries.document_store import layouts
from libraries.document_store.files import FileReader, FileWriter, ReadCounter, nothing_to_check, written
from libraries.document_store.indexes.index_files import Entry, IndexFile, write_index
from libraries.document_store.layouts import ComponentInfo, ComponentOptions, LayoutName, ReadCache, StoredComponent
from libraries.document_store.schema import Schema
from libraries.document_store.tree.manifest import component_path, index_path
from libraries.document_store.tree.memtable import Memtable, sorted_rows
from libraries.document_store.tree.versions import Held
from libraries.durable.calls import FileCalls


class Workshop:
    """Where files of a store are made and opened; for any thread."""

    def __init__(
        self,
        calls: FileCalls,
        folder: Path,
        layout: LayoutName,
        options: ComponentOptions,
        counter: ReadCounter,
        cache: ReadCache,
    ) -> None:
        self.calls, self.folder, self.layout, self.options, self.counter = calls, folder, layout, options, counter
        self.cache = cache
        # The collector may let an iterator go within a call of this very object.
        self._naming, self._given_up = RLock(), False

    def give_up(self) -> None:
        """No name is taken away from now on: the folder is about to be anybody's, and the next owner's files may have
        the names of those that are still read here. What is left behind goes when the store opens again."""
        with self._naming:
            self._given_up = True

    def _unlink(self, path: Path) -> None:
        with self._naming:
            if not self._given_up:
                self.calls.unlink(path)

    def flush(self, number: int, memtable: Memtable, schema: Schema) -> Held[StoredComponent]:
        """A component of a memtable's rows. Raises `OSError`."""

        def write(writer: FileWriter) -> ComponentInfo:
            return layouts.write_component(writer, self.layout, [sorted_rows(memtable.rows)], schema, self.options)

        return self.component(number, write)

    def component(
        self, number: int, write: Callable[[FileWriter], ComponentInfo], check: Callable[[], None] = nothing_to_check
    ) -> Held[StoredComponent]:
        """A component that `write` makes; `check` is called before each piece. Raises `OSError`."""
        with written(self.calls, component_path(self.folder, number), check) as writer:
            write(writer)
        return self.open_component(number)

    def index(
        self, number: int, write: Callable[[FileWriter], int], check: Callable[[], None] = nothing_to_check
    ) -> Held[IndexFile]:
        """A component of a secondary index that `write` makes. Raises `OSError`."""
        with written(self.calls, index_path(self.folder, number), check) as writer:
            write(writer)
        return self.open_index(number)

    def flush_index(self, number: int, entries: dict[bytes, bool]) -> Held[IndexFile]:
        """A component of a memtable's entries. Raises `OSError`."""
        rising: list[Entry] = sorted(entries.items())
        return self.index(number, lambda writer: write_index(writer, rising))

    def open_component(self, number: int) -> Held[StoredComponent]:
        """Raises CorruptError."""
        path = component_path(self.folder, number)
        reader = FileReader(self.calls, path, self.counter)
        try:
            content = layouts.open_component(reader, self.cache)
        except BaseException:
            reader.close()
            raise
        return Held(number, reader, content, lambda: self._unlink(path))

    def open_index(self, number: int) -> Held[IndexFile]:
        """Raises CorruptError."""
        path = index_path(self.folder, number)
        reader = FileReader(self.calls, path, self.counter)
        try:
            content = IndexFile(reader)
        except BaseException:
            reader.close()
            raise
        return Held(number, reader, content, lambda: self._unlink(path))
