"""What the leaves of all layouts have in common: the facts that the footer keeps of each. It reads nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from libraries.document_store.errors import CorruptError
from libraries.document_store.layouts.footer import LeafEntry
from libraries.document_store.layouts.layout import Key, KeyKind, Keys
from libraries.document_store.layouts.pages import PageReader
from libraries.document_store.schema import Schema


class LeafFacts:
    """One leaf before it is read; each property is that of `ComponentLeaf`."""

    def __init__(self, pages: PageReader, first_page: int, entry: LeafEntry, kind: KeyKind, schema: Schema) -> None:
        self._pages = pages
        self._first_page = first_page
        self._entry = entry
        self._kind = kind
        self._schema = schema
        self._where = f"{pages.name}: the leaf of page {first_page}"

    @property
    def count(self) -> int:
        """As `ComponentLeaf` has it."""
        return self._entry.count

    @property
    def antimatter_count(self) -> int:
        """As `ComponentLeaf` has it."""
        return self._entry.antimatter_count

    @property
    def min_key(self) -> Key:
        """As `ComponentLeaf` has it."""
        return self._entry.min_key

    @property
    def max_key(self) -> Key:
        """As `ComponentLeaf` has it."""
        return self._entry.max_key

    @property
    def schema(self) -> Schema:
        """As `ComponentLeaf` has it."""
        return self._schema

    @property
    def row_bytes(self) -> int:
        """As `ComponentLeaf` has it."""
        return self._entry.row_bytes

    def check(self, keys: Keys, antimatter: np.ndarray) -> None:
        """Raises CorruptError if what was read is not what the footer says of the leaf."""
        found = (len(keys), int(antimatter.sum()))
        if found != (self.count, self.antimatter_count):
            raise CorruptError(f"{found} entries and anti-matter are not what the footer counted")
        if (keys[0], keys[-1]) != (self.min_key, self.max_key):
            raise CorruptError(f"its keys {keys[0]!r} to {keys[-1]!r} are not those of the footer")


def may_hold_keys(entry: LeafEntry, low: Any, high: Any) -> bool:
    """Whether keys between low and high may be among those of a leaf; bounds of another kind than the keys prove
    nothing."""
    smallest: Any = entry.min_key
    largest: Any = entry.max_key
    kind = type(smallest)
    below = type(high) is kind and high < smallest
    above = type(low) is kind and low > largest
    return not (below or above)
