"""The protocol of components and leaves that the three layouts implement, and the limits of a leaf.

A component is one immutable file, written sequentially: leaves of sorted keys, then a footer. Do not confuse these
leaves with the leaves of a schema, which are columns. A leaf is read in two steps: first its keys, then the requested
parts of its records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from libraries.document_store.key_filter import KeyFilter
from libraries.document_store.schema import Schema
from libraries.document_store.shredding import CodedColumn, Column

LayoutName: TypeAlias = Literal["amax", "vector", "open"]
CompressionName: TypeAlias = Literal["none", "snappy", "zstd"]

LAYOUTS: tuple[LayoutName, ...] = ("amax", "vector", "open")
COMPRESSIONS: tuple[CompressionName, ...] = ("none", "snappy", "zstd")

PAGE_BYTES = 128 << 10
"""Size of a page before compression (paper, section 6). Pages are the unit of compression, checksums and reading."""

LEAF_RECORDS = 15_000
"""Maximum records of a mega leaf (paper, section 4.3)."""

LEAF_BYTES = 32 << 20
"""Maximum bytes of the rows of a mega leaf as MessagePack. This limits how much output a merge holds before
encoding."""

KEY_BYTES = 4 << 10
"""Maximum bytes of a text key. Page 0 must hold at least some keys, and the positions and codes of 4,000 columns."""

Keys: TypeAlias = np.ndarray
"""Sorted, unique keys: an int64 array, or an object array of str in the order of code points."""

Key: TypeAlias = int | str

KeyKind: TypeAlias = Literal["integer", "text"]


class FileWriter(Protocol):
    """A new file that is written sequentially. The code that provides the file syncs, names and closes it."""

    def write(self, data: bytes | memoryview) -> None:
        """Append all of `data`."""


class FileReader(Protocol):
    """An immutable file. Thread-safe."""

    @property
    def name(self) -> str:
        """The name of the file, as error messages show it."""

    @property
    def size_bytes(self) -> int:
        """The size of the file."""

    def read(self, length_bytes: int, offset_bytes: int) -> bytes:
        """Return exactly this range. Raises CorruptError if the file ends early."""


@dataclass(frozen=True, kw_only=True)
class ComponentOptions:
    """How to write a component. A leaf ends at the first limit that is reached, or when page 0 is full."""

    compression: CompressionName = "zstd"
    leaf_records: int = LEAF_RECORDS
    leaf_bytes: int = LEAF_BYTES


@dataclass(frozen=True, kw_only=True)
class ComponentInfo:
    """Counts, keys and sizes of a written component: number of entries, number of deletion markers (anti-matter), size
    of the file.

    `encoded_bytes` is the size of the pages before compression. The keys are None for an empty component.
    """

    layout: LayoutName
    key_kind: KeyKind
    count: int
    antimatter_count: int
    min_key: Key | None
    max_key: Key | None
    leaf_count: int
    encoded_bytes: int
    size_bytes: int
    schema: Schema


@dataclass
class ReadCounters:
    """Counts of reads from one component: stored (compressed) bytes of pages, and number of pages."""

    bytes_read: int = 0
    pages_read: int = 0


class ComponentLeaf(Protocol):
    """One leaf: `count` entries, of which `antimatter_count` only mark deleted keys.

    A leaf keeps its page 0 once it is read. To release page 0, get a new leaf from the component.
    """

    @property
    def count(self) -> int:
        """Number of entries, including deletion markers (anti-matter)."""

    @property
    def antimatter_count(self) -> int:
        """Number of deletion markers, which are entries without a record."""

    @property
    def min_key(self) -> Key:
        """The first key, known without reading the leaf."""

    @property
    def max_key(self) -> Key:
        """The last key, known without reading the leaf."""

    @property
    def schema(self) -> Schema:
        """The schema of this leaf's columns. It is the component's schema, or the beginning of that schema if columns
        were added after this leaf was written."""

    @property
    def row_bytes(self) -> int:
        """Approximate size of the leaf's rows as MessagePack."""

    def keys(self) -> tuple[Keys, np.ndarray]:
        """Return all keys, and for each key whether it is marked as deleted (bool). Raises CorruptError.

        Reads only page 0. In `vector` and `open`, that page also holds the rows.
        """

    def columns(self, numbers: Iterable[int], ordinals: np.ndarray | None = None) -> dict[int, Column]:
        """Return columns of the given records, by default of all records. Columns that the leaf's schema lacks are
        omitted.

        `ordinals` are ascending positions among the leaf's keys, without keys that are marked as deleted. Reads only
        the pages of these columns. Raises TypeError for layouts other than `amax`, which have no columns, and
        CorruptError.
        """

    def coded_columns(
        self, numbers: Iterable[int], ordinals: np.ndarray | None = None
    ) -> dict[int, Column | CodedColumn]:
        """Return columns like `columns`, except that texts with few distinct values may be returned as codes. The cache
        holds the decoded columns instead of their pages. The arrays must not be modified, because other callers may
        share them."""

    def rows(self, ordinals: np.ndarray | None = None) -> list[bytes]:
        """Return records as MessagePack, by default all records. `ordinals` as in `columns`. Raises CorruptError."""

    def may_match(self, number: int, low: Any, high: Any) -> bool:
        """Return whether the column may have a value between low and high, both inclusive; None means unbounded.

        Reads at most page 0. If the result is False, the leaf's columns need not be read. The leaf's keys must be read
        in any case: a document here that does not match may still hide an older version, in another component, that
        matches.
        """


class Component(Protocol):
    """One immutable file of sorted entries."""

    @property
    def layout(self) -> LayoutName:
        """The layout of the component's leaves."""

    @property
    def info(self) -> ComponentInfo:
        """Counts, keys and sizes, from the footer."""

    @property
    def schema(self) -> Schema:
        """The schema inferred from the component's records and all earlier records."""

    @property
    def leaves(self) -> Sequence[ComponentLeaf]:
        """Return the leaves in key order, as new objects. Reads nothing."""

    def leaf(self, number: int) -> ComponentLeaf:
        """Return one of the leaves as a new object."""

    @property
    def key_kind(self) -> KeyKind:
        """The kind of the keys: integer or text."""

    @property
    def key_filter(self) -> KeyFilter:
        """The filter of all keys, including keys that are marked as deleted."""

    @property
    def counters(self) -> ReadCounters:
        """Counts of the reads since the component was opened. Reading the footer is not counted."""

    def leaves_of(self, keys: Keys) -> np.ndarray:
        """Return for each key the number of the only leaf that may hold it, or -1 if no leaf can. Reads nothing."""


Entries: TypeAlias = Iterable[tuple[Keys, Sequence[bytes | None]]]
"""Batches of sorted, unique keys with their rows. A row of None marks a deleted key. Keys ascend across batches."""
