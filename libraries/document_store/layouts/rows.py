"""The row layouts. A leaf is one page, with rows as MessagePack (`open`) or in compacted form (`vector`).

Keys and rows are on the same pages, so reading keys reads rows too. The row stores that the paper compares with do the
same. This module converts rows to MessagePack; `row_leaves.py` defines the bytes of a leaf.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from libraries.document_store.errors import CorruptError, DocumentError
from libraries.document_store.layouts.footer import LeafEntry
from libraries.document_store.layouts.layout import KeyKind, Keys
from libraries.document_store.layouts.leaf_summary import LeafFacts, may_hold_keys
from libraries.document_store.layouts.pages import PageReader
from libraries.document_store.layouts.place import placed
from libraries.document_store.layouts.row_leaves import RowLeaf, decode_leaf
from libraries.document_store.layouts.vector_rows import VectorRows
from libraries.document_store.messagepack import check_rows
from libraries.document_store.schema import Schema
from libraries.document_store.shredding import CodedColumn, Column
from libraries.document_store.shredding.columns import KEY


class RowsLeaf(LeafFacts):
    """One leaf of rows. The object keeps the data that it read. To release the data, get a new object from the
    component's `leaves`."""

    def __init__(
        self, pages: PageReader, first_page: int, entry: LeafEntry, kind: KeyKind, schema: Schema,
        vector: VectorRows | None,
    ) -> None:  # fmt: skip
        """`vector` converts compacted rows. If it is None, rows are plain MessagePack."""
        super().__init__(pages, first_page, entry, kind, schema)
        self._vector = vector

    @cached_property
    def _leaf(self) -> RowLeaf:
        pages = self._pages.read(self._first_page, self._entry.pages)
        with placed(self._where):
            leaf = decode_leaf(self._kind, pages)
            self.check(leaf.keys, leaf.antimatter)
        return leaf

    def keys(self) -> tuple[Keys, np.ndarray]:
        """See `ComponentLeaf`."""
        return self._leaf.keys, self._leaf.antimatter

    def may_match(self, number: int, low: Any, high: Any) -> bool:
        """See `ComponentLeaf`. Only a range of keys can exclude the leaf, so the result is True for other columns."""
        return number != KEY or may_hold_keys(self._entry, low, high)

    def columns(self, numbers: Iterable[int], ordinals: np.ndarray | None = None) -> dict[int, Column]:
        """Raise TypeError, because rows have no columns."""
        raise TypeError(f"{self._where}: a row layout stores no columns; read the rows and shred them")

    def coded_columns(
        self, numbers: Iterable[int], ordinals: np.ndarray | None = None
    ) -> dict[int, Column | CodedColumn]:
        """Raise TypeError, because rows have no columns."""
        raise TypeError(f"{self._where}: a row layout stores no columns; read the rows and shred them")

    def rows(self, ordinals: np.ndarray | None = None) -> list[bytes]:
        """See `ComponentLeaf`."""
        pieces = self.stored_rows(ordinals)
        with placed(self._where):
            if self._vector is not None:
                return self._vector.decode(pieces)
            rows = list(map(bytes, pieces))
            try:
                check_rows(rows)
            except DocumentError as error:
                raise CorruptError(f"a row is not a valid document: {error}") from None
            return rows

    def stored_rows(self, ordinals: np.ndarray | None = None) -> list[memoryview]:
        """Return rows in their stored form, for a merge that copies them."""
        leaf = self._leaf
        if ordinals is None or self.antimatter_count == 0:
            return leaf.pieces(ordinals)
        return leaf.pieces((np.cumsum(~leaf.antimatter) - 1)[ordinals])
