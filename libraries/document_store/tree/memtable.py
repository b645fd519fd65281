"""What was stored since the last flush: the latest row of each key, and the latest entries of the secondary indexes.

A batch is what one upsert or delete changes, and what one frame of the log holds.
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
"""About what a key, its row's object and their places in a dict take beside the row's bytes."""


class Batch(msgspec.Struct, array_like=True, frozen=True):
    """Keys, no key twice, with their rows (None: deleted), and what each index, by its path, gains and loses."""

    keys: list[int | str]
    rows: list[bytes | None]
    added: dict[str, list[bytes]]
    removed: dict[str, list[bytes]]

    def to_bytes(self) -> bytes:
        """As `from_bytes` reads it."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Batch:
        """Raises CorruptError for what `to_bytes` cannot have made."""
        try:
            batch = _DECODER.decode(data)
        except (msgspec.MsgspecError, ValueError) as error:
            raise CorruptError(f"a frame of the log is no batch: {error}") from None
        if len(batch.keys) != len(batch.rows) or len(set(map(type, batch.keys))) > 1:
            raise CorruptError("a frame of the log has not one row for each key, or keys of two kinds")
        return batch

    def size_bytes(self) -> int:
        """About what it takes in memory."""
        entries = [entry for part in (self.added, self.removed) for some in part.values() for entry in some]
        count = len(self.keys) + len(entries)
        return sum(len(row) for row in self.rows if row is not None) + sum(map(len, entries)) + ENTRY_BYTES * count


_DECODER = msgspec.msgpack.Decoder(Batch)


@dataclass
class Memtable:
    """Not safe for threads: the tree reads and changes it under its lock.

    `rows` maps a key to its row (None: deleted), `entries` an index's path to its entries (False: removed).
    """

    rows: dict[Key, bytes | None] = field(default_factory=dict)
    entries: dict[str, dict[bytes, bool]] = field(default_factory=dict)
    size_bytes: int = 0

    def apply(self, batch: Batch) -> None:
        """All of the batch. Rows that are replaced still count: their log has them too."""
        self.rows.update(zip(batch.keys, batch.rows, strict=True))
        for path, removed in batch.removed.items():
            self.entries.setdefault(path, {}).update(dict.fromkeys(removed, False))
        # After what is removed: a document may keep its value.
        for path, added in batch.added.items():
            self.entries.setdefault(path, {}).update(dict.fromkeys(added, True))
        self.size_bytes += batch.size_bytes()

    def copied(self) -> Memtable:
        """What a snapshot keeps; rows and entries themselves are shared."""
        return Memtable(dict(self.rows), {path: dict(some) for path, some in self.entries.items()}, self.size_bytes)


def sorted_rows(rows: dict[Key, bytes | None]) -> tuple[np.ndarray, list[bytes | None]]:
    """The keys, sorted (int64, or objects holding str), and their rows."""
    keys = key_array(sorted(rows))
    return keys, [rows[key] for key in keys.tolist()]


def key_array(keys: Sequence[Key]) -> np.ndarray:
    """As the layouts have keys: int64, or dtype object holding str."""
    if not keys or isinstance(keys[0], int):
        return np.array(keys, np.int64)
    made = np.empty(len(keys), object)
    made[:] = keys
    return made
