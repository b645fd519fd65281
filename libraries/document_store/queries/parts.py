"""Protocols for a snapshot and its parts, which queries read. Tests and other stores can implement them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

import numpy as np

from libraries.document_store.schema import Schema
from libraries.document_store.shredding import CodedColumn, Column


class QueryPart(Protocol):
    """Some documents of a snapshot: documents in memory, or the documents of adjacent leaves of a component. No key is
    in two parts."""

    @property
    def count(self) -> int:
        """Number of documents."""

    @property
    def schema(self) -> Schema:
        """The schema of the part. The number of a schema leaf means the same leaf in all parts of one snapshot."""

    @property
    def keys(self) -> np.ndarray:
        """Return the keys of the part's documents in ascending order: int64, or an object array of str."""

    @property
    def columnar(self) -> bool:
        """Whether the part stores columns. Otherwise it stores rows, and `columns` converts them."""

    def rows(self) -> list[bytes]:
        """Return documents as MessagePack, in key order."""

    def columns(self, leaf_numbers: Iterable[int]) -> dict[int, Column]:
        """Return the columns of these schema leaves, in key order. Leaves that the part's schema lacks are omitted."""

    def coded_columns(self, leaf_numbers: Iterable[int]) -> Mapping[int, Column | CodedColumn]:
        """Like `columns`, but texts with few distinct values may be returned as codes.

        The arrays are read-only and may be shared with other callers."""

    def may_match(self, leaf_number: int, low: object, high: object) -> bool:
        """Return False only if no document of the part has a value in this column from `low` to `high`. None means
        unbounded."""

    def narrowed(self, index: np.ndarray) -> QueryPart:
        """Return a part with only the documents at these positions (int64, ascending)."""


class Snapshot(Protocol):
    """The store at one moment."""

    def count(self) -> int:
        """Return the number of documents. Reads only keys."""

    def most(self) -> int:
        """Return an upper bound of the number of documents; reads nothing."""

    def parts(self, keys: np.ndarray | None = None) -> Iterator[QueryPart]:
        """Yield all non-empty parts, in any order. With `keys`, only documents with these keys."""

    def index_keys(self, path: str, low: object, high: object, most: float) -> np.ndarray | None:
        """Return the keys of documents with a value at `path` from `low` to `high`, and possibly a few other keys.

        Returns None if the path is not indexed, or if there are more than `most` keys.
        """
