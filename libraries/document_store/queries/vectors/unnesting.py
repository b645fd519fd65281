"""Unnest arrays: join all tuples with the items of their arrays at once, for generated code over columns.

Tuples are represented by positions: a tuple has, for each name, the number of a slot.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from libraries.document_store.queries.vectors.codes import codes_of, compressed
from libraries.document_store.queries.vectors.slots import View
from libraries.document_store.queries.vectors.vector import Index, Vector


def items(views: Sequence[View], level: int) -> Index:
    """Return the slots that are items. `views` has one view for each kind of value that items may have."""
    found = views[0].reaches(level) | views[0].is_null(level)
    for view in views[1:]:
        found |= view.reaches(level)
    return None if found.all() else np.flatnonzero(found)


def joined(outer: Index, parents: np.ndarray, inner: Index) -> tuple[np.ndarray, Index]:
    """Join each tuple with its items. Return for each pair the number of the tuple and the slot of the item.

    `outer` is the slot of each tuple before the join. `parents` is the outer slot of each inner slot. `inner` are the
    inner slots that are items.
    """
    if inner is not None:
        parents = parents[inner]
    if outer is None:
        return parents, inner
    counts = np.bincount(parents, minlength=int(outer.max()) + 1 if len(outer) else 0)
    begins = np.cumsum(counts) - counts
    each = counts[outer]
    old = np.repeat(np.arange(len(outer)), each)
    within = np.arange(len(old)) - np.repeat(np.cumsum(each) - each, each)
    places = begins[outer][old] + within
    return old, places if inner is None else inner[places]


def narrowed(index: Index, kept: np.ndarray) -> np.ndarray:
    """Return the slots of the tuples that are kept."""
    return kept if index is None else index[kept]


def any_of(old: np.ndarray, count: int) -> np.ndarray:
    """Return for each of `count` outer tuples whether the tuple's number is in `old` (bool)."""
    found = np.zeros(count, np.bool_)
    found[old] = True
    return found


def first_of_each(old: np.ndarray, values: Vector) -> np.ndarray:
    """Return the positions of the pairs to keep. If several pairs have the same outer tuple and equal values, only the
    first pair is kept."""
    coded = codes_of(values)
    size = max(1, coded.size)
    pairs, numbers = compressed(old * size + coded.codes, (int(old.max()) + 1 if len(old) else 0) * size)
    first = np.full(len(pairs), len(old))
    np.minimum.at(first, numbers, np.arange(len(old)))
    return np.sort(first)
