"""The metadata of a leaf that the footer holds, for all layouts. Reads nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from libraries.document_store.errors import CorruptError
from libraries.document_store.layouts.footer import LeafEntry
from libraries.document_store.layouts.layout import Key, KeyKind, Keys
from libraries.document_store.layouts.pages import PageReader
from libraries.document_store.schema import Schema


class LeafFacts:
    """One leaf before it is read. `ComponentLeaf` defines the properties."""

    def __init__(self, pages: PageReader, first_page: int, entry: LeafEntry, kind: KeyKind, schema: Schema) -> None:
        self._pages = pages
        self._first_page = first_page
        self._entry = entry
        self._kind = kind
        self._schema = schema
        self._where = f"{pages.name}: the leaf of page {first_page}"

    @property
    def count(self) -> int:
        """See `ComponentLeaf`."""
        return self._entry.count

    @property
    def antimatter_count(self) -> int:
        """See `ComponentLeaf`."""
        return self._entry.antimatter_count

    @property
    def min_key(self) -> Key:
        """See `ComponentLeaf`."""
        return self._entry.min_key

    @property
    def max_key(self) -> Key:
        """See `ComponentLeaf`."""
        return self._entry.max_key

    @property
    def schema(self) -> Schema:
        """See `ComponentLeaf`."""
        return self._schema

    @property
    def row_bytes(self) -> int:
        """See `ComponentLeaf`."""
        return self._entry.row_bytes

    def check(self, keys: Keys, antimatter: np.ndarray) -> None:
        """Raise CorruptError if the keys that were read do not match the footer."""
        found = (len(keys), int(antimatter.sum()))
        if found != (self.count, self.antimatter_count):
            raise CorruptError(f"the leaf has {found[0]} entries, {found[1]} of them anti-matter; the footer declares "
                               f"{self.count} entries, {self.antimatter_count} of them anti-matter")  # fmt: skip
        if (keys[0], keys[-1]) != (self.min_key, self.max_key):
            raise CorruptError(f"the leaf has the keys {keys[0]!r} to {keys[-1]!r}; the footer declares "
                               f"{self.min_key!r} to {self.max_key!r}")  # fmt: skip


def may_hold_keys(entry: LeafEntry, low: Any, high: Any) -> bool:
    """Return whether a leaf may have keys from low to high. Return True if a bound is of another kind than the keys."""
    smallest: Any = entry.min_key
    largest: Any = entry.max_key
    kind = type(smallest)
    below = type(high) is kind and high < smallest
    above = type(low) is kind and low > largest
    return not (below or above)
