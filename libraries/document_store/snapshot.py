"""A snapshot of the store, which scans, lookups and queries read.

Later writes and merges do not affect a snapshot. Files that a snapshot reads are deleted only after the snapshot is
closed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from types import TracebackType

import numpy as np

from libraries.document_store.errors import ClosedError
from libraries.document_store.indexes.entries import key_of, ranges
from libraries.document_store.indexes.index_files import Entry, newest
from libraries.document_store.layouts.layout import Component, Key, Keys
from libraries.document_store.schema import Schema
from libraries.document_store.tree.leaf_scan import MemoryPart, ScanPart, among, look_up, scan
from libraries.document_store.tree.memtable import Memtable, key_array
from libraries.document_store.tree.versions import Version

__all__ = ["ScanPart", "Snapshot"]


class Snapshot:
    """The store at one moment. A context manager; iterators over the snapshot end when it is closed."""

    def __init__(self, key_field: str, memtable: Memtable, version: Version, schema: Schema, text_keys: bool) -> None:
        """The caller acquires `version`, and closing the snapshot releases it. `schema` is the schema that the next
        flush extends."""
        self.key_field = key_field
        self._memtable, self._version, self._base, self._text_keys = memtable, version, schema, text_keys
        self._closed = False

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the files; repeated calls do nothing."""
        if not self._closed:
            self._closed = True
            self._version.release()

    def parts(self, keys: Keys | None = None) -> Iterator[ScanPart]:
        """Yield parts that together contain every document exactly once. With `keys`, the parts contain only the
        documents with these keys.

        `keys` must be ascending and unique; the order of the parts is undefined. Raises CorruptError or ClosedError.
        """
        components = self._components()
        rows = self._memtable.rows
        recent: ScanPart | None
        if keys is None:
            recent, stored = self._memory, scan(key_array(sorted(rows)), components)
        else:
            here = {key: rows[key] for key in keys.tolist() if key in rows}
            recent, stored = self._some_memory(here), look_up(components, keys[~among(keys, key_array(sorted(here)))])
        if recent is not None:
            yield recent
        for part in stored:
            yield part
            self._check_open()

    def count(self) -> int:
        """Return the number of documents. Reads only keys."""
        return sum(part.count for part in self.parts())

    def most(self) -> int:
        """Return an upper bound of the number of documents. The bound also counts versions that were replaced or
        deleted later. Reads nothing."""
        return len(self._memtable.rows) + sum(component.info.count for component in self._components())

    @property
    def schema(self) -> Schema | None:
        """The schema of the columnar parts and of the memtable; None if there are neither components nor documents in
        memory.

        To infer the memtable's schema, the documents in memory are converted to columns.
        """
        if self._memory is not None:
            return self._memory.schema
        components = self._components()
        return components[0].schema if components else None

    @property
    def stores_schemas(self) -> bool:
        """Whether `schema` has the fields of all documents. This is false for the layout `open`, which stores no
        schema."""
        return all(component.layout != "open" for component in self._components())

    def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        """Return for each key its row, or None if there is no such document. Keys may repeat, and may be in any
        order."""
        wanted = key_array(sorted(set(keys)))
        found: dict[Key, bytes] = {}
        for part in self.parts(wanted):
            found.update(zip(part.keys.tolist(), part.rows(), strict=True))
        return [found.get(key) for key in keys]

    def index_keys(self, path: str, low: object, high: object, most: float = math.inf) -> Keys | None:
        """Return the keys of documents with a value at `path` from `low` to `high`, ascending. A bound of None means
        unbounded.

        Returns None if the path is not indexed, or if there are more than `most` keys; reading stops there. Integers
        and doubles are compared by value. Long texts are compared only by their first bytes, so the result may include
        a few keys whose values are out of range. Callers must apply the filter again. Raises QueryError for bounds that
        cannot be compared.
        """
        files = self._version.indexes.get(path)
        if files is None:
            return None
        found: set[Key] = set()
        entries = self._memtable.entries.get(path, {})
        spans = ranges(low, high)
        if any(sum(file.content.at_least(*span) for span in spans) > most for file in files):
            return None
        for first, last in spans:
            recent: list[Entry] = sorted((entry, there) for entry, there in entries.items() if first <= entry <= last)
            stored = [file.content.between(first, last) for file in files]
            for entry, _ in newest([recent, *stored], drop_removed=True):
                found.add(key_of(entry, self._text_keys))
                if len(found) > most:
                    return None
            self._check_open()
        return key_array(sorted(found)) if found else np.empty(0, object if self._text_keys else np.int64)

    @cached_property
    def _memory(self) -> MemoryPart | None:
        return _memory_part(self._memtable.rows, lambda: self._base)

    def _some_memory(self, rows: dict[Key, bytes | None]) -> MemoryPart | None:
        """Return a part with these rows of the memtable. The part's schema leaves have the same numbers as in the whole
        memtable."""
        return _memory_part(rows, lambda: self.schema or self._base)

    def _components(self) -> list[Component]:
        self._check_open()
        return [file.content for file in self._version.components]

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the snapshot is closed: take another one")


def _memory_part(rows: dict[Key, bytes | None], base: Callable[[], Schema]) -> MemoryPart | None:
    there = {key: row for key, row in rows.items() if row is not None}
    return MemoryPart(there, base) if there else None
