"""Write a memtable to durable files that the manifest does not name yet: a component, and a file per secondary
index."""

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
    """Creates and opens the files of a store. Thread-safe."""

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
        # The garbage collector may release an iterator during a call of this object.
        self._naming, self._given_up = RLock(), False

    def give_up(self) -> None:
        """Stop removing files.

        The folder may soon belong to another process. That process may create files with the same names as files that
        this process still reads. Files that remain are removed when the store is opened again.
        """
        with self._naming:
            self._given_up = True

    def _unlink(self, path: Path) -> None:
        with self._naming:
            if not self._given_up:
                self.calls.unlink(path)

    def flush(self, number: int, memtable: Memtable, schema: Schema) -> Held[StoredComponent]:
        """Write a memtable's rows as a component. Raises `OSError`."""

        def write(writer: FileWriter) -> ComponentInfo:
            return layouts.write_component(writer, self.layout, [sorted_rows(memtable.rows)], schema, self.options)

        return self.component(number, write)

    def component(
        self, number: int, write: Callable[[FileWriter], ComponentInfo], check: Callable[[], None] = nothing_to_check
    ) -> Held[StoredComponent]:
        """Write a component with `write`. `check` is called before each piece, and can raise to stop. Raises
        `OSError`."""
        with written(self.calls, component_path(self.folder, number), check) as writer:
            schema = write(writer).schema
        return self.open_component(number, schema)

    def index(
        self, number: int, write: Callable[[FileWriter], int], check: Callable[[], None] = nothing_to_check
    ) -> Held[IndexFile]:
        """Write a component of a secondary index with `write`. `check` is called before each piece. Raises
        `OSError`."""
        with written(self.calls, index_path(self.folder, number), check) as writer:
            write(writer)
        return self.open_index(number)

    def flush_index(self, number: int, entries: dict[bytes, bool]) -> Held[IndexFile]:
        """Write a memtable's entries of one secondary index as a component. Raises `OSError`."""
        rising: list[Entry] = sorted(entries.items())
        return self.index(number, lambda writer: write_index(writer, rising))

    def open_component(self, number: int, known: Schema | None = None) -> Held[StoredComponent]:
        """Open a component; `known` is a schema that the file probably has. Raises CorruptError."""
        path = component_path(self.folder, number)
        reader = FileReader(self.calls, path, self.counter)
        try:
            content = layouts.open_component(reader, self.cache, known)
        except BaseException:
            reader.close()
            raise
        return Held(number, reader, content, lambda: self._unlink(path))

    def open_index(self, number: int) -> Held[IndexFile]:
        """Open a component of a secondary index. Raises CorruptError."""
        path = index_path(self.folder, number)
        reader = FileReader(self.calls, path, self.counter)
        try:
            content = IndexFile(reader)
        except BaseException:
            reader.close()
            raise
        return Held(number, reader, content, lambda: self._unlink(path))
