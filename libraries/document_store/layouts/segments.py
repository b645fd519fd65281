"""Find the leaves that a merge can copy, because no other component has keys in their range. All other leaves are
merged.

If documents arrive with ascending keys, as in many stores, components do not overlap at all, and a merge only copies
leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from libraries.document_store.layouts.layout import Keys


@dataclass(frozen=True)
class Bounds:
    """The leaves of one component: their first and last keys, and which leaves a merge may copy (see
    `StoredComponent.bounds`)."""

    min_keys: Keys
    max_keys: Keys
    is_kept: np.ndarray

    def overlaps(self, others: Bounds) -> np.ndarray:
        """Return for each leaf of `others` whether its range of keys overlaps a leaf of this component."""
        if not len(self.min_keys):
            return np.zeros(len(others.min_keys), np.bool_)
        places = np.searchsorted(self.min_keys, others.max_keys, side="right") - 1
        return (places >= 0) & np.asarray(self.max_keys[np.maximum(places, 0)] >= others.min_keys, np.bool_)


@dataclass(frozen=True)
class Copied:
    """One leaf that is copied as stored."""

    component: int
    leaf: int


@dataclass(frozen=True)
class Mixed:
    """Leaves to merge: a range of leaves of each component."""

    leaves: tuple[range, ...]


def segments(components: Sequence[Bounds]) -> Iterator[Copied | Mixed]:
    """Yield all leaves of all components in ascending key order. Each key is in only one segment."""
    following = [0] * len(components)
    for component, leaf in _copied(components):
        key = components[component].min_keys[leaf : leaf + 1]
        ends = [int(np.searchsorted(bounds.min_keys, key)[0]) for bounds in components]
        yield from _mixed(following, ends)
        following = ends
        following[component] = leaf + 1
        yield Copied(component, leaf)
    yield from _mixed(following, [len(bounds.min_keys) for bounds in components])


def _copied(components: Sequence[Bounds]) -> list[tuple[int, int]]:
    found = []
    for number, bounds in enumerate(components):
        is_copied = bounds.is_kept.copy()
        for other in components:
            if other is not bounds:
                is_copied &= ~other.overlaps(bounds)
        leaves = np.flatnonzero(is_copied).tolist()
        found += [(bounds.min_keys[leaf], number, leaf) for leaf in leaves]
    return [(number, leaf) for _, number, leaf in sorted(found)]


def _mixed(starts: Sequence[int], ends: Sequence[int]) -> Iterator[Mixed]:
    if any(start < end for start, end in zip(starts, ends, strict=True)):
        yield Mixed(tuple(map(range, starts, ends)))
