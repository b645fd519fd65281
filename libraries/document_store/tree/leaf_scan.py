"""Find the visible records of each leaf by reading only keys. Newer components hide records of older components that
have the same keys.

A scan visits the leaves of all components in the order of their first keys. The keys of a leaf can then be released as
soon as no leaf of an older component can have the same keys. Leaves of the row layouts are combined until they are as
large as a leaf of columns (mega leaf).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from libraries.document_store.key_filter import hash_keys
from libraries.document_store.layouts.layout import LEAF_RECORDS, Component, ComponentLeaf, Key, Keys
from libraries.document_store.schema import Schema
from libraries.document_store.shredding import CodedColumn, Column, Shredded, shred
from libraries.document_store.tree.memtable import key_array


class ScanPart(Protocol):
    """Some documents of a snapshot, adjacent in one component or in memory. Parts of one scan have disjoint keys."""

    @property
    def count(self) -> int:
        """Number of documents."""

    @property
    def keys(self) -> Keys:
        """Keys of the documents, ascending."""

    @property
    def visible(self) -> np.ndarray:
        """The positions of the part's documents among all keys of the leaf (int64)."""

    @property
    def schema(self) -> Schema:
        """The part's schema, the same object at each call.

        If columns are stored, the number of a schema leaf means the same leaf in all parts of a snapshot.
        """

    @property
    def columnar(self) -> bool:
        """Whether columns are stored. Otherwise rows are stored, and `columns` converts them."""

    def rows(self) -> list[bytes]:
        """Return the documents as MessagePack, in the order of `keys`. Raises CorruptError."""

    def columns(self, leaf_numbers: Iterable[int]) -> dict[int, Column]:
        """Return columns of the documents. Columns that the part's schema lacks are omitted. Raises CorruptError."""

    def coded_columns(self, leaf_numbers: Iterable[int]) -> Mapping[int, Column | CodedColumn]:
        """Like `columns`, but texts with few distinct values may be returned as codes. The arrays must not be
        modified."""

    def may_match(self, leaf_number: int, low: object, high: object) -> bool:
        """Return False only if no document has a value in this column from `low` to `high`. None means unbounded."""

    def narrowed(self, index: np.ndarray) -> ScanPart:
        """Return a part with only the documents at these positions (int64, ascending)."""


class MemoryPart:
    """Documents of a memtable."""

    columnar = False

    def __init__(self, rows: dict[Key, bytes], base: Callable[[], Schema]) -> None:
        """`base` returns the schema that the documents extend. It is called when columns are requested."""
        self.keys = key_array(sorted(rows))
        self._rows = [rows[key] for key in self.keys.tolist()]
        self._base = base
        self.count = len(self._rows)
        self.visible = np.arange(self.count, dtype=np.int64)

    @cached_property
    def _shredded(self) -> Shredded:
        return shred(self._rows, self._base())

    @property
    def schema(self) -> Schema:
        """See `ScanPart`. The schema is computed on first use, by converting the documents to columns."""
        return self._shredded.schema

    def rows(self) -> list[bytes]:
        """See `ScanPart`."""
        return self._rows

    def columns(self, leaf_numbers: Iterable[int]) -> dict[int, Column]:
        """See `ScanPart`."""
        return _some(self._shredded, leaf_numbers)

    def coded_columns(self, leaf_numbers: Iterable[int]) -> Mapping[int, Column | CodedColumn]:
        """See `ScanPart`."""
        return self.columns(leaf_numbers)

    def may_match(self, leaf_number: int, low: object, high: object) -> bool:
        """Return True, because a memtable has no minimum and maximum codes."""
        return True

    def narrowed(self, index: np.ndarray) -> MemoryPart:
        """See `ScanPart`."""
        keys = self.keys.tolist()
        return MemoryPart({keys[place]: self._rows[place] for place in index.tolist()}, lambda: self.schema)


class Span:
    """Adjacent leaves of a component that are read together: one mega leaf, or a similar number of pages of rows."""

    def __init__(self, component: Component, age: int, leaves: Sequence[ComponentLeaf]) -> None:
        """`age` counts components from the newest (0). The leaves keep the data that they read."""
        self.age, self.leaves = age, leaves
        self.min_key, self.max_key = leaves[0].min_key, leaves[-1].max_key
        self.columnar = component.layout == "amax"
        self._keys: tuple[Keys, np.ndarray] | None = None

    def keys(self) -> tuple[Keys, np.ndarray]:
        """Return all keys, and which keys are marked as deleted. The result is kept until `forget`."""
        if self._keys is None:
            pairs = [leaf.keys() for leaf in self.leaves]
            keys, gone = zip(*pairs, strict=True)
            self._keys = pairs[0] if len(pairs) == 1 else (np.concatenate(keys), np.concatenate(gone))
        return self._keys

    def forget(self) -> None:
        """Release the keys, because the scan no longer needs them. Parts that were yielded still refer to the
        leaves."""
        self._keys, self.leaves = None, ()


class StoredPart:
    """Documents of a component's span."""

    def __init__(
        self, leaves: Sequence[ComponentLeaf], columnar: bool, keys: Keys, visible: np.ndarray | None = None
    ) -> None:
        """`keys` are the keys of the part's documents. `visible` are the positions of these keys in the leaves; None
        means that all documents of the leaves are visible."""
        self.keys, self._visible, self._leaves = keys, visible, leaves
        self.count = len(keys)
        self.columnar = columnar

    @cached_property
    def visible(self) -> np.ndarray:
        """See `ScanPart`."""
        return np.arange(self.count) if self._visible is None else self._visible

    @property
    def schema(self) -> Schema:
        """See `ScanPart`. The layout `open` stores no schema, so there the schema is inferred from the rows."""
        return self._stored_schema if self.columnar else self._shredded.schema

    @property
    def _stored_schema(self) -> Schema:
        # Within a component, the schema of a leaf begins with all shorter schemas, so the longest schema covers all
        # leaves.
        return max((leaf.schema for leaf in self._leaves), key=lambda schema: len(schema.leaves))

    @cached_property
    def _all_rows(self) -> list[bytes]:
        rows: list[bytes] = []
        start = 0
        for leaf in self._leaves:
            within = self.visible[bisect_left(self.visible, start) : bisect_left(self.visible, start + leaf.count)]
            if len(within):
                rows.extend(leaf.rows(within - start))
            start += leaf.count
        return rows

    @cached_property
    def _shredded(self) -> Shredded:
        return shred(self._all_rows, self._stored_schema)

    def rows(self) -> list[bytes]:
        """See `ScanPart`."""
        return self._all_rows

    def columns(self, leaf_numbers: Iterable[int]) -> dict[int, Column]:
        """See `ScanPart`."""
        if not self.columnar:
            return _some(self._shredded, leaf_numbers)
        (leaf,) = self._leaves
        return leaf.columns(leaf_numbers, self._visible)

    def coded_columns(self, leaf_numbers: Iterable[int]) -> Mapping[int, Column | CodedColumn]:
        """See `ScanPart`."""
        if not self.columnar:
            return self.columns(leaf_numbers)
        (leaf,) = self._leaves
        return leaf.coded_columns(leaf_numbers, self._visible)

    def may_match(self, leaf_number: int, low: object, high: object) -> bool:
        """See `ScanPart`."""
        return any(leaf.may_match(leaf_number, low, high) for leaf in self._leaves)

    def narrowed(self, index: np.ndarray) -> StoredPart:
        """See `ScanPart`."""
        return StoredPart(self._leaves, self.columnar, self.keys[index], self.visible[index])


def scan(newer_keys: Keys, components: Sequence[Component]) -> Iterator[StoredPart]:
    """Yield the newest version of each document, except documents whose key is in `newer_keys` (ascending).
    `components` are given newest first. Reads only keys."""
    spans = [_spans(component, age) for age, component in enumerate(components)]
    first_keys = [[span.min_key for span in some] for some in spans]
    last_keys = [[span.max_key for span in some] for some in spans]
    kept: dict[int, Span] = {}
    for span in sorted((span for some in spans for span in some), key=lambda span: (span.min_key, span.age)):
        kept = _forget_before(span.min_key, kept)
        keys, gone = span.keys()
        hidden = gone | among(keys, newer_keys)
        for age in range(span.age):
            start, end = bisect_left(last_keys[age], span.min_key), bisect_right(first_keys[age], span.max_key)
            for newer in spans[age][start:end]:
                hidden |= among(keys, newer.keys()[0])
                kept[id(newer)] = newer
        kept[id(span)] = span
        if not hidden.any():
            yield StoredPart(span.leaves, span.columnar, keys)
        elif not hidden.all():
            visible = np.flatnonzero(~hidden)
            yield StoredPart(span.leaves, span.columnar, keys[visible], visible)


def look_up(components: Sequence[Component], keys: Keys) -> Iterator[StoredPart]:
    """Yield the components' documents with these keys (ascending, unique). Reads only leaves that may hold a key."""
    rest = keys
    for age, component in enumerate(components):
        if len(rest) == 0:
            return
        maybe = rest[component.key_filter.may_contain(hash_keys(rest))]
        numbers = component.leaves_of(maybe)
        for number in np.unique(numbers[numbers >= 0]).tolist():
            span = Span(component, age, [component.leaf(number)])
            stored, gone = span.keys()
            here = among(stored, maybe[numbers == number])
            rest = rest[~among(rest, stored[here])]
            visible = np.flatnonzero(here & ~gone)
            if len(visible):
                yield StoredPart(span.leaves, span.columnar, stored[visible], visible)


def may_hold(components: Sequence[Component], keys: Keys) -> np.ndarray:
    """Return for each key whether any component may have it (bool). False means that no component has the key. Uses
    only the key filters."""
    found = np.zeros(len(keys), bool)
    hashes = hash_keys(keys)
    for component in components:
        found |= component.key_filter.may_contain(hashes)
    return found


def _spans(component: Component, age: int) -> list[Span]:
    if component.layout == "amax":
        return [Span(component, age, [leaf]) for leaf in component.leaves]
    spans: list[Span] = []
    some: list[ComponentLeaf] = []
    records = 0
    for leaf in component.leaves:
        if some and records + leaf.count > LEAF_RECORDS:
            spans.append(Span(component, age, some))
            some, records = [], 0
        some.append(leaf)
        records += leaf.count
    return [*spans, Span(component, age, some)] if some else spans


def _forget_before(key: Key, spans: dict[int, Span]) -> dict[int, Span]:
    """Keep the spans that reach `key`, and release the keys of the others. The others are not needed, because no later
    span begins before `key`."""
    kept = {}
    for identity, span in spans.items():
        if span.max_key < key:  # type: ignore[operator]
            span.forget()
        else:
            kept[identity] = span
    return kept


def among(keys: Keys, sorted_keys: Keys) -> np.ndarray:
    """Return for each key whether it is in `sorted_keys` (bool). Both arrays ascend."""
    if len(keys) == 0 or len(sorted_keys) == 0:
        return np.zeros(len(keys), bool)
    if keys.dtype == object:
        others = set(sorted_keys.tolist())
        return np.fromiter((key in others for key in keys.tolist()), bool, len(keys))
    start, end = np.searchsorted(sorted_keys, keys[0]), np.searchsorted(sorted_keys, keys[-1], side="right")
    within = sorted_keys[start:end]
    if len(within) == 0:
        return np.zeros(len(keys), bool)
    places = np.searchsorted(within, keys)
    return within[np.minimum(places, len(within) - 1)] == keys


def _some(shredded: Shredded, leaf_numbers: Iterable[int]) -> dict[int, Column]:
    return {number: shredded.columns[number] for number in leaf_numbers if number < len(shredded.columns)}
