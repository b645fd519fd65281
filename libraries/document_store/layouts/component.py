"""Open components. The footer is read and checked immediately; leaves are read when needed."""

from __future__ import annotations

import copy
from functools import cached_property, lru_cache
from itertools import accumulate

import numpy as np

from libraries.document_store.errors import CorruptError
from libraries.document_store.key_filter import KeyFilter
from libraries.document_store.layouts.amax import AmaxLeaf
from libraries.document_store.layouts.component_writer import ComponentWriter
from libraries.document_store.layouts.footer import info_of, read_footer
from libraries.document_store.layouts.keys import keys_of
from libraries.document_store.layouts.layout import (
    PAGE_BYTES,
    ComponentInfo,
    ComponentOptions,
    FileReader,
    KeyKind,
    Keys,
    LayoutName,
    ReadCounters,
)
from libraries.document_store.layouts.pages import PageReader, ReadCache
from libraries.document_store.layouts.place import placed
from libraries.document_store.layouts.rows import RowsLeaf
from libraries.document_store.layouts.segments import Bounds
from libraries.document_store.layouts.vector import names_of
from libraries.document_store.layouts.vector_rows import VectorRows
from libraries.document_store.schema import Schema
from libraries.document_store.values import ValueKind

COPIED_SHARE = 16
"""A merge may copy a mega leaf unchanged if the leaf is large. It is large if its rows take at least the maximum number
of bytes divided by this number (2 MiB), or if it has half of the maximum number of records. To combine such leaves into
larger ones would take more time than queries then save."""

_KEY_KINDS = {ValueKind.INTEGER: "integer", ValueKind.TEXT: "text"}


class StoredComponent:
    """The opened file of a component; implements `Component`. Thread-safe."""

    def __init__(self, reader: FileReader, cache: ReadCache, known: Schema | None = None) -> None:
        """Read only the footer. `known` is a schema that the file probably has. If the file has it, the file's schema
        is not decoded and checked again. Raises CorruptError."""
        self._footer = footer = read_footer(reader)
        with placed(f"{reader.name}: its footer"):
            is_known = known is not None and known.to_bytes() == footer.schema
            self._schema = known if known is not None and is_known else Schema.from_bytes(footer.schema)
            self._key_filter = KeyFilter.from_bytes(footer.key_filter)
            key_kind = _KEY_KINDS[self._schema.leaves[0].kind]
            if key_kind != footer.key_kind:
                raise CorruptError(f"declares {footer.key_kind} keys, but its schema has {key_kind} keys")
            if any(leaf.columns > len(self._schema.leaves) for leaf in footer.leaves):
                raise CorruptError("a leaf has more columns than the schema describes")
        self._pages = PageReader(reader, footer.compression, np.array(footer.page_bytes, np.int64), cache)
        self._first_pages = [0, *accumulate(leaf.pages for leaf in footer.leaves)]
        self._schema_of = lru_cache(maxsize=None)(self._beginning_of_schema)
        self.info: ComponentInfo = info_of(footer, self._schema, reader.size_bytes)

    def without_cache(self) -> StoredComponent:
        """Return the same component with an empty, disabled cache, for readers that read every page once."""
        other = copy.copy(self)
        other._pages = self._pages.without_cache()
        return other

    @property
    def name(self) -> str:
        """The name of the file, as error messages show it."""
        return self._pages.name

    @property
    def layout(self) -> LayoutName:
        """See `Component`."""
        return self._footer.layout

    @property
    def key_kind(self) -> KeyKind:
        """See `Component`."""
        return self._footer.key_kind

    @property
    def schema(self) -> Schema:
        """See `Component`."""
        return self._schema

    @property
    def key_filter(self) -> KeyFilter:
        """See `Component`."""
        return self._key_filter

    @property
    def counters(self) -> ReadCounters:
        """See `Component`."""
        return self._pages.counters

    @property
    def leaves(self) -> list[AmaxLeaf] | list[RowsLeaf]:
        """See `Component`."""
        numbers = range(self.info.leaf_count)
        if self.layout == "amax":
            return [self.mega_leaf(number) for number in numbers]
        return [self.row_leaf(number) for number in numbers]

    def leaf(self, number: int) -> AmaxLeaf | RowsLeaf:
        """See `Component`."""
        return self.mega_leaf(number) if self.layout == "amax" else self.row_leaf(number)

    def mega_leaf(self, number: int) -> AmaxLeaf:
        """Return a leaf of an `amax` component."""
        entry = self._footer.leaves[number]
        schema = self._schema_of(entry.columns)
        return AmaxLeaf(self._pages, self._first_pages[number], entry, self.key_kind, schema)

    def row_leaf(self, number: int) -> RowsLeaf:
        """Return a leaf of a component of rows."""
        entry = self._footer.leaves[number]
        return RowsLeaf(self._pages, self._first_pages[number], entry, self.key_kind, self._schema, self._vector)

    def bounds(self, options: ComponentOptions, drop_antimatter: bool) -> Bounds:
        """Return the first and last key of each leaf, and whether a merge may copy the leaf. A leaf must be merged if
        it is small, compressed differently, or has deletion markers that the merge drops."""
        entries = self._footer.leaves
        least_bytes, least_records = options.leaf_bytes // COPIED_SHARE, options.leaf_records // 2
        if self.layout != "amax":
            least_bytes = least_records = PAGE_BYTES // 2
        is_kept = [
            (entry.row_bytes >= least_bytes or entry.count >= least_records)
            and self._footer.compression == options.compression
            and not (drop_antimatter and entry.antimatter_count)
            for entry in entries
        ]
        return Bounds(*self._bounds, np.array(is_kept, np.bool_))

    def copy_leaf(self, number: int, out: ComponentWriter) -> None:
        """Copy the stored bytes of a leaf to another component with the same compression. Decode only the leaf's
        keys."""
        keys, _ = self.leaf(number).keys()
        out.copy_leaf(self._pages, self._first_pages[number], self._footer.leaves[number], keys)

    def leaves_of(self, keys: Keys) -> np.ndarray:
        """See `Component`."""
        min_keys, max_keys = self._bounds
        if not len(min_keys) or min_keys.dtype != keys.dtype:
            # No leaf has keys of another kind.
            return np.full(len(keys), -1, np.int64)
        leaves = np.searchsorted(min_keys, keys, side="right") - 1
        inside = np.asarray(keys <= max_keys[np.maximum(leaves, 0)], np.bool_)
        return np.where((leaves >= 0) & inside, leaves, -1)

    @cached_property
    def _bounds(self) -> tuple[Keys, Keys]:
        leaves = self._footer.leaves
        return (
            keys_of(self.key_kind, [leaf.min_key for leaf in leaves]),
            keys_of(self.key_kind, [leaf.max_key for leaf in leaves]),
        )

    @cached_property
    def _vector(self) -> VectorRows | None:
        return VectorRows(names_of(self._schema)) if self.layout == "vector" else None

    def _beginning_of_schema(self, leaves: int) -> Schema:
        """Return the schema as it was when it had this many schema leaves."""
        if leaves == len(self._schema.leaves):
            return self._schema
        nodes = self._schema.nodes[: self._schema.leaf_nodes[leaves - 1] + 1]
        return Schema(self._schema.key, nodes, self._schema.limit)


def open_component(reader: FileReader, cache: ReadCache | None = None, known: Schema | None = None) -> StoredComponent:
    """Open the file of a component. With a cache, keep what is read. `known` is a schema that the file probably has,
    which saves decoding the file's schema.

    Raises CorruptError for a file that the store did not write or that changed since.
    """
    return StoredComponent(reader, ReadCache(0) if cache is None else cache, known)
