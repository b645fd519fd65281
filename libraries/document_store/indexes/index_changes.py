"""Compute a batch's changes to the secondary indexes from the previous and new values of the batch's documents.

Previous values are looked up for the whole batch at once, and only for keys that are in the memtable or pass a key
filter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from libraries.document_queries.paths import ITEMS, Path, parse
from libraries.document_store.indexes.entries import Key, entries
from libraries.document_store.indexes.path_values import Finder, values_at
from libraries.document_store.layouts.layout import Component
from libraries.document_store.messagepack import decode
from libraries.document_store.projection import rows_under
from libraries.document_store.snapshot import Snapshot
from libraries.document_store.tree.leaf_scan import ScanPart, look_up, may_hold
from libraries.document_store.tree.memtable import Memtable, key_array

PIECE_ENTRIES = 1_000_000
"""Approximate entries per piece when an index is built for existing documents; each piece is sorted in memory."""

Changes = tuple[dict[str, list[bytes]], dict[str, list[bytes]]]
"""Added entries and removed entries. Each dict maps the path of an index to entries."""


class Finders:
    """The paths of a store's indexes, ready to be evaluated on rows and columns."""

    def __init__(self, paths: Iterable[str]) -> None:
        """`paths` are paths in text form."""
        self._finders = {path: Finder(parse(path)) for path in paths}

    def __bool__(self) -> bool:
        return bool(self._finders)

    def changes(self, latest: dict[Key, bytes | None], memtable: Memtable, components: Sequence[Component]) -> Changes:
        """Return the changes that a batch makes to each index. `latest` maps the batch's keys to their new rows (None
        for deleted keys).

        `memtable` must contain only keys of the batch. Raises CorruptError.
        """
        added: dict[str, list[bytes]] = {}
        removed: dict[str, list[bytes]] = {}
        parts = _old_parts(latest, memtable, components)
        keys = list(latest)
        for path, finder in self._finders.items():
            old = set(self._old_entries(finder, memtable, parts))
            rows = [(key, row) for key in keys if (row := latest[key]) is not None]
            values = finder.in_rows([row for _, row in rows])
            new = {entry for (key, _), some in zip(rows, values, strict=True) for entry in entries(some, key)}
            added[path], removed[path] = sorted(new - old), sorted(old - new)
        return added, removed

    @staticmethod
    def _old_entries(finder: Finder, memtable: Memtable, parts: Sequence[ScanPart]) -> Iterator[bytes]:
        for key, row in memtable.rows.items():
            if row is not None:
                yield from entries(finder.in_rows([row])[0], key)
        for part in parts:
            for key, values in zip(part.keys.tolist(), _values(finder, part), strict=True):
                yield from entries(values, key)


def all_entries(snapshot: Snapshot, path: Path) -> Iterator[dict[bytes, bool]]:
    """Yield the index entries of all documents, in pieces without common entries."""
    finder = Finder(path)
    piece: dict[bytes, bool] = {}
    for part in snapshot.parts():
        for key, values in zip(part.keys.tolist(), _values(finder, part), strict=True):
            piece.update(dict.fromkeys(entries(values, key), True))
        if len(piece) >= PIECE_ENTRIES:
            yield piece
            piece = {}
    if piece:
        yield piece


def _old_parts(latest: dict[Key, bytes | None], memtable: Memtable, components: Sequence[Component]) -> list[ScanPart]:
    keys = key_array(sorted(key for key in latest if key not in memtable.rows))
    if len(keys) == 0 or not components:
        return []
    return list(look_up(components, keys[may_hold(components, keys)]))


def _values(finder: Finder, part: ScanPart) -> list[list[Any]]:
    if not part.columnar:
        return finder.in_rows(part.rows())
    fields = Path(finder.path[: finder.path.index(ITEMS)] if ITEMS in finder.path else finder.path)
    return [values_at(decode(row), finder.path) for row in rows_under(part, [fields])]
