"""What the three layouts promise: the one protocol of components and of their leaves, and the limits of a leaf.

A component is one immutable file, written front to back: leaves of sorted keys, then a footer. A leaf is read in two
steps, its keys first and then what is asked for of its records.
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
"""A page before compression (paper, section 6): what is compressed, checked and read as one."""

LEAF_RECORDS = 15_000
"""Records in one mega leaf at most (paper, section 4.3)."""

LEAF_BYTES = 32 << 20
"""So many bytes of rows as MessagePack end a mega leaf: what a merge holds of its output, before it is encoded."""

KEY_BYTES = 4 << 10
"""The longest text that may be a key: some must fit into page 0 beside 4,000 columns' pointers and prefixes."""

Keys: TypeAlias = np.ndarray
"""Sorted, unique keys: int64, or dtype object holding str, whose order is that of code points and of UTF-8 bytes."""

Key: TypeAlias = int | str

KeyKind: TypeAlias = Literal["integer", "text"]


class FileWriter(Protocol):
    """A new file, written front to back. Whoever gives it syncs it, names it and closes it."""

    def write(self, data: bytes | memoryview) -> None:
        """All of `data`, after what was written before."""


class FileReader(Protocol):
    """A file that does not change any more; for any thread."""

    @property
    def name(self) -> str:
        """What errors call it."""

    @property
    def size_bytes(self) -> int:
        """Its whole length."""

    def read(self, length_bytes: int, offset_bytes: int) -> bytes:
        """Exactly so many bytes. Raises CorruptError if the file ends before."""


@dataclass(frozen=True, kw_only=True)
class ComponentOptions:
    """How a component is written. The limits of a leaf end it, whichever is reached first; page 0 must fit as well."""

    compression: CompressionName = "zstd"
    leaf_records: int = LEAF_RECORDS
    leaf_bytes: int = LEAF_BYTES


@dataclass(frozen=True, kw_only=True)
class ComponentInfo:
    """What was written: entries with anti-matter, anti-matter alone, and the whole file's bytes.

    `encoded_bytes` are the pages before compression. The keys are None where there is no entry.
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
    """What was read of one component: stored bytes of pages, after compression, and how many pages."""

    bytes_read: int = 0
    pages_read: int = 0


class ComponentLeaf(Protocol):
    """One leaf: `count` entries of which `antimatter_count` only say that a key is gone.

    It keeps its page 0 once that was read. Take a new one from the component to let go of it.
    """

    @property
    def count(self) -> int:
        """Entries, anti-matter too."""

    @property
    def antimatter_count(self) -> int:
        """Entries without a record."""

    @property
    def min_key(self) -> Key:
        """The first key; known without reading the leaf."""

    @property
    def max_key(self) -> Key:
        """The last key; known without reading the leaf."""

    @property
    def schema(self) -> Schema:
        """The schema of this leaf's columns: the component's, or the beginning of it."""

    @property
    def row_bytes(self) -> int:
        """Its rows as MessagePack, about."""

    def keys(self) -> tuple[Keys, np.ndarray]:
        """All keys, and for each whether it is anti-matter (bool). Reads page 0 only, which in `vector` and `open`
        holds the rows as well. Raises CorruptError."""

    def columns(self, numbers: Iterable[int], ordinals: np.ndarray | None = None) -> dict[int, Column]:
        """Columns of the records asked for, of all by default; a number that the leaf's schema lacks is left out.

        Ordinals count the leaf's keys, rise, and never name anti-matter. Reads the pages of these columns only. `amax`
        alone has columns, the others raise TypeError. Raises CorruptError.
        """

    def coded_columns(self, numbers: Iterable[int]) -> dict[int, Column | CodedColumn]:
        """As `columns`, of all records; texts of which few differ may come as codes. Others may have got the same
        arrays, which nobody can write to."""

    def rows(self, ordinals: np.ndarray | None = None) -> list[bytes]:
        """Records as MessagePack: of these ordinals as in `columns`, or of all records. Raises CorruptError."""

    def may_match(self, number: int, low: Any, high: Any) -> bool:
        """Whether a value between low and high, both included and None for open, may be in the column of that number.

        Reads page 0 at most. False saves the reading of the leaf's columns, never that of its keys: a version here that
        does not match still hides an older one that does.
        """


class Component(Protocol):
    """One immutable file of sorted entries."""

    @property
    def layout(self) -> LayoutName:
        """How its leaves lie."""

    @property
    def info(self) -> ComponentInfo:
        """Counts, keys and sizes, from the footer."""

    @property
    def schema(self) -> Schema:
        """What was inferred of its records and of those before it."""

    @property
    def leaves(self) -> Sequence[ComponentLeaf]:
        """In the order of keys; made anew by each call, cheaply: nothing is read."""

    def leaf(self, number: int) -> ComponentLeaf:
        """One of the leaves, made anew."""

    @property
    def key_kind(self) -> KeyKind:
        """Which of the two kinds of keys."""

    @property
    def key_filter(self) -> KeyFilter:
        """Of all keys, anti-matter too."""

    @property
    def counters(self) -> ReadCounters:
        """What was read since it was opened, footer apart."""

    def leaves_of(self, keys: Keys) -> np.ndarray:
        """For each key the number of the only leaf that may hold it, -1 for none. Reads nothing."""


Entries: TypeAlias = Iterable[tuple[Keys, Sequence[bytes | None]]]
"""Batches of sorted, unique keys with their rows, None for anti-matter; each batch lies behind the one before."""
