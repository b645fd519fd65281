"""Which entries live on: the keys of several components merged, the newest of each key first (paper, 4.4 and 4.5).

Keys alone are read, a leaf of each component at a time, and whole arrays are merged at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from libraries.document_store.layouts.keys import empty_keys
from libraries.document_store.layouts.layout import ComponentLeaf, KeyKind, Keys

_BUFFERED_KEYS = 15_000
"""Keys of a component that are merged at once, at least: leaves of rows have few."""

LeafType = TypeVar("LeafType", bound=ComponentLeaf)


@dataclass(frozen=True)
class Picked:
    """Entries that live on, by rising keys: for each its component (0 is the newest) and its place among all entries of
    that component, anti-matter too."""

    keys: Keys
    components: np.ndarray
    entries: np.ndarray
    antimatter: np.ndarray

    def __len__(self) -> int:
        """How many."""
        return len(self.keys)

    def part(self, choice: slice | np.ndarray) -> Picked:
        """Some of them."""
        return Picked(self.keys[choice], self.components[choice], self.entries[choice], self.antimatter[choice])


def joined(parts: Sequence[Picked]) -> Picked:
    """One behind the other."""
    return Picked(
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.components for part in parts]),
        np.concatenate([part.entries for part in parts]),
        np.concatenate([part.antimatter for part in parts]),
    )


@dataclass
class ComponentCursor(Generic[LeafType]):
    """One component while it is merged: its leaves, each let go of once it was passed."""

    leaves: list[LeafType | None]
    kind: KeyKind
    starts: np.ndarray = field(init=False)
    """For each leaf the place of its first entry in the component, and the number of all."""

    def __post_init__(self) -> None:
        counts = [leaf.count for leaf in self.leaves if leaf is not None]
        self.starts = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
        self._keys = empty_keys(self.kind)
        self._antimatter = np.empty(0, np.bool_)
        self._next_leaf = 0
        self._next_entry = 0

    @property
    def is_whole(self) -> bool:
        """Whether no leaf is left whose keys were not read."""
        return self._next_leaf == len(self.leaves)

    @property
    def last_key(self) -> Keys:
        """Up to which key it was read, in an array of one."""
        return self._keys[-1:]

    def read_ahead(self) -> None:
        """Have some keys, if there are."""
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
        """The entries up to a key, all that were read for None."""
        count = len(self._keys)
        if limit is not None:
            count = int(np.searchsorted(self._keys, limit[0], side="right"))
        entries = np.arange(self._next_entry, self._next_entry + count, dtype=np.int64)
        taken = Picked(self._keys[:count], np.full(count, component), entries, self._antimatter[:count])
        self._keys, self._antimatter = self._keys[count:], self._antimatter[count:]
        self._next_entry += count
        return taken

    def leaf(self, number: int) -> LeafType:
        """A leaf that was not let go of."""
        leaf = self.leaves[number]
        assert leaf is not None
        return leaf

    def release(self, before: int) -> None:
        """Let go of the leaves before that number, and of what they keep."""
        self.leaves[:before] = [None] * before


def reconcile(sources: Sequence[ComponentCursor[LeafType]], drop_antimatter: bool) -> Iterator[Picked]:
    """All entries that live on, in parts; each source, the newest first, has unique and sorted keys."""
    while True:
        for source in sources:
            source.read_ahead()
        # What lies behind the first end of a component that goes on may still meet a key of that component.
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
    """Sorted, and of each key the first: entries of newer components lie before those of older ones."""
    order = np.argsort(taken.keys, kind="stable")
    keys = taken.keys[order]
    is_first = np.ones(len(keys), np.bool_)
    is_first[1:] = keys[1:] != keys[:-1]
    return taken.part(order[is_first])
