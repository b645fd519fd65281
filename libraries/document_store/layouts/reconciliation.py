"""Find the entries that remain after a merge: the newest entry of each key (paper, 4.4 and 4.5).

Reads only keys, some leaves of each component at a time, and merges whole arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from libraries.document_store.layouts.keys import empty_keys
from libraries.document_store.layouts.layout import ComponentLeaf, KeyKind, Keys

_BUFFERED_KEYS = 15_000
"""Keys of each component that are buffered before merging. In the row layouts, these are the keys of several leaves,
because a leaf of rows has fewer keys."""

LeafType = TypeVar("LeafType", bound=ComponentLeaf)


@dataclass(frozen=True)
class Picked:
    """Entries that remain after a merge, in ascending key order. An entry is identified by its component (0 is the
    newest) and by its position among all entries of that component, including deletion markers (anti-matter)."""

    keys: Keys
    components: np.ndarray
    entries: np.ndarray
    antimatter: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)

    def part(self, choice: slice | np.ndarray) -> Picked:
        """Return the entries at these positions."""
        return Picked(self.keys[choice], self.components[choice], self.entries[choice], self.antimatter[choice])


def joined(parts: Sequence[Picked]) -> Picked:
    """Concatenate several parts."""
    return Picked(
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.components for part in parts]),
        np.concatenate([part.entries for part in parts]),
        np.concatenate([part.antimatter for part in parts]),
    )


@dataclass
class ComponentCursor(Generic[LeafType]):
    """One component during a merge, with its leaves. Each leaf is released after use."""

    leaves: list[LeafType | None]
    kind: KeyKind
    starts: np.ndarray = field(init=False)
    """The position of each leaf's first entry in the component; at the end, the total number of entries."""

    def __post_init__(self) -> None:
        counts = [leaf.count for leaf in self.leaves if leaf is not None]
        self.starts = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
        self._keys = empty_keys(self.kind)
        self._antimatter = np.empty(0, np.bool_)
        self._next_leaf = 0
        self._next_entry = 0

    @property
    def is_whole(self) -> bool:
        """Whether the keys of all leaves have been read."""
        return self._next_leaf == len(self.leaves)

    @property
    def last_key(self) -> Keys:
        """The last key that was read, in an array of length 1."""
        return self._keys[-1:]

    def read_ahead(self) -> None:
        """Read the keys of further leaves, until enough keys are buffered or no leaf is left."""
        if len(self._keys) >= _BUFFERED_KEYS or self.is_whole:
            return
        keys, antimatter, count = [self._keys], [self._antimatter], len(self._keys)
        while count < _BUFFERED_KEYS and not self.is_whole:
            more_keys, more_antimatter = self.leaf(self._next_leaf).keys()
            keys.append(more_keys)
            antimatter.append(more_antimatter)
            count += len(more_keys)
            self._next_leaf += 1
        self._keys, self._antimatter = np.concatenate(keys), np.concatenate(antimatter)

    def take(self, component: int, limit: Keys | None) -> Picked:
        """Remove and return the buffered entries up to the key in `limit`, inclusive. If `limit` is None, return all
        buffered entries."""
        count = len(self._keys)
        if limit is not None:
            count = int(np.searchsorted(self._keys, limit[0], side="right"))
        entries = np.arange(self._next_entry, self._next_entry + count, dtype=np.int64)
        taken = Picked(self._keys[:count], np.full(count, component), entries, self._antimatter[:count])
        self._keys, self._antimatter = self._keys[count:], self._antimatter[count:]
        self._next_entry += count
        return taken

    def leaf(self, number: int) -> LeafType:
        """Return a leaf that was not released."""
        leaf = self.leaves[number]
        assert leaf is not None
        return leaf

    def release(self, before: int) -> None:
        """Release the leaves with numbers below `before`, and the data that these leaves hold."""
        self.leaves[:before] = [None] * before


def reconcile(sources: Sequence[ComponentCursor[LeafType]], drop_antimatter: bool) -> Iterator[Picked]:
    """Yield all entries that remain, in parts. `sources` are given newest first; the keys of each source are sorted and
    unique."""
    while True:
        for source in sources:
            source.read_ahead()
        # Unread keys of a component come after the last key that was read, so later entries are not decided yet.
        open_ends = [source.last_key for source in sources if not source.is_whole]
        limit = min(open_ends, key=lambda keys: keys[0]) if open_ends else None
        taken = joined([source.take(component, limit) for component, source in enumerate(sources)])
        newest = _newest(taken)
        if drop_antimatter:
            newest = newest.part(~newest.antimatter)
        if len(newest):
            yield newest
        if limit is None:
            return


def _newest(taken: Picked) -> Picked:
    """Sort the entries, and keep the newest entry of each key. In `taken`, entries of newer components come first."""
    order = np.argsort(taken.keys, kind="stable")
    keys = taken.keys[order]
    is_first = np.ones(len(keys), np.bool_)
    is_first[1:] = keys[1:] != keys[:-1]
    return taken.part(order[is_first])
