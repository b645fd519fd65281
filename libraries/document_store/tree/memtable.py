"""The data stored since the last flush: the latest row of each key, and the latest entries of the secondary indexes.

A batch is the change that one upsert or delete makes. A batch is also the content of one log frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec
import numpy as np

from libraries.document_store.errors import CorruptError

Key: TypeAlias = int | str

ENTRY_BYTES = 150
"""Approximate memory in bytes that an entry of a dict takes in addition to the row's bytes: the key, the row object,
and the slot in the dict."""


class Batch(msgspec.Struct, array_like=True, frozen=True):
    """Unique keys with their rows (None for deleted keys), and the added and removed entries of each secondary index,
    by the index's path."""

    keys: list[int | str]
    rows: list[bytes | None]
    added: dict[str, list[bytes]]
    removed: dict[str, list[bytes]]

    def to_bytes(self) -> bytes:
        """Serialize for `from_bytes`."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Batch:
        """Deserialize. Raises CorruptError for bytes that `to_bytes` cannot have written."""
        try:
            batch = _DECODER.decode(data)
        except (msgspec.MsgspecError, ValueError) as error:
            raise CorruptError(f"a frame of the log is not a batch: {error}") from None
        if len(batch.keys) != len(batch.rows):
            raise CorruptError(f"a frame of the log has {len(batch.keys)} keys, but {len(batch.rows)} rows")
        if len(set(map(type, batch.keys))) > 1:
            raise CorruptError("a frame of the log has both integers and texts as keys")
        return batch

    def size_bytes(self) -> int:
        """Approximate memory use."""
        entries = [entry for part in (self.added, self.removed) for some in part.values() for entry in some]
        count = len(self.keys) + len(entries)
        return sum(len(row) for row in self.rows if row is not None) + sum(map(len, entries)) + ENTRY_BYTES * count


_DECODER = msgspec.msgpack.Decoder(Batch)


@dataclass
class Memtable:
    """The data in memory. Not thread-safe; the tree holds a lock when it uses the memtable.

    `rows` maps a key to its row (None for a deleted key). `entries` maps an index's path to the index's entries (False
    for a removed entry).
    """

    rows: dict[Key, bytes | None] = field(default_factory=dict)
    entries: dict[str, dict[bytes, bool]] = field(default_factory=dict)
    size_bytes: int = 0

    def apply(self, batch: Batch) -> None:
        """Apply the whole batch. The memtable's size also counts rows that were replaced, because the log still has
        these rows."""
        self.rows.update(zip(batch.keys, batch.rows, strict=True))
        for path, removed in batch.removed.items():
            self.entries.setdefault(path, {}).update(dict.fromkeys(removed, False))
        # Add entries after removals, because an entry is both removed and added if a document keeps its value.
        for path, added in batch.added.items():
            self.entries.setdefault(path, {}).update(dict.fromkeys(added, True))
        self.size_bytes += batch.size_bytes()

    def copied(self) -> Memtable:
        """Return a copy for a snapshot. The row and entry objects are shared."""
        return Memtable(dict(self.rows), {path: dict(some) for path, some in self.entries.items()}, self.size_bytes)


def sorted_rows(rows: dict[Key, bytes | None]) -> tuple[np.ndarray, list[bytes | None]]:
    """Return the sorted keys (int64, or an object array of str) and their rows."""
    keys = key_array(sorted(rows))
    return keys, [rows[key] for key in keys.tolist()]


def key_array(keys: Sequence[Key]) -> np.ndarray:
    """Return keys as an array of the type that the layouts use: int64, or dtype object holding str."""
    if not keys or isinstance(keys[0], int):
        return np.array(keys, np.int64)
    made = np.empty(len(keys), object)
    made[:] = keys
    return made
