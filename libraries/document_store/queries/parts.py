"""What queries need of a store: a snapshot and its parts, as protocols, so that tests and other stores can give
them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

import numpy as np

from libraries.document_store.schema import Schema
from libraries.document_store.shredding import CodedColumn, Column


class QueryPart(Protocol):
    """Some of the documents of a snapshot, at most one leaf of a component; parts hold disjoint keys."""

    @property
    def count(self) -> int:
        """Documents in it."""

    @property
    def schema(self) -> Schema:
        """Its own; a leaf's number means the same in all parts of one snapshot."""

    @property
    def keys(self) -> np.ndarray:
        """Of its documents, ascending: int64, or objects that are str."""

    @property
    def columnar(self) -> bool:
        """Whether columns are what is stored; otherwise rows are, and columns would have to be made of them."""

    def rows(self) -> list[bytes]:
        """Documents as MessagePack, in the order of keys."""

    def columns(self, leaf_numbers: Iterable[int]) -> dict[int, Column]:
        """Columns of those leaves, in the order of keys; a number that the part's schema lacks is left out."""

    def coded_columns(self, leaf_numbers: Iterable[int]) -> Mapping[int, Column | CodedColumn]:
        """The same; texts of which few differ may come as codes. Others may have got the same arrays, which nobody can
        write to."""

    def may_match(self, leaf_number: int, low: object, high: object) -> bool:
        """False only if no document of the part has a value of this leaf within [low, high]; None is an open end."""


class Snapshot(Protocol):
    """The store as it was at one moment."""

    def count(self) -> int:
        """Documents in it, by keys alone."""

    def most(self) -> int:
        """As many documents as there can be at most; reads nothing."""

    def parts(self, keys: np.ndarray | None = None) -> Iterator[QueryPart]:
        """All parts, in any order; parts without documents are left out. With `keys`, only documents of these."""

    def index_keys(self, path: str, low: object, high: object, most: float) -> np.ndarray | None:
        """Keys of documents, perhaps of too many, with a value at `path` from `low` to `high`; None: it is not indexed,
        or there are more than `most`."""
