"""Write a component sequentially: its leaves, then the footer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from libraries.document_store.key_filter import KeyFilter, hash_keys
from libraries.document_store.layouts.amax import chunks_of
from libraries.document_store.layouts.footer import Footer, LeafEntry, info_of, write_footer
from libraries.document_store.layouts.keys import empty_keys, encoded_sizes
from libraries.document_store.layouts.layout import (
    PAGE_BYTES,
    ComponentInfo,
    ComponentOptions,
    Entries,
    FileWriter,
    KeyKind,
    Keys,
    LayoutName,
)
from libraries.document_store.layouts.mega_leaf import Chunk, page_0_bytes
from libraries.document_store.layouts.mega_leaf import encode_leaf as encode_mega_leaf
from libraries.document_store.layouts.pages import PageReader, PageWriter
from libraries.document_store.layouts.row_leaves import ENTRY_BYTES, HEADER_BYTES
from libraries.document_store.layouts.row_leaves import encode_leaf as encode_row_leaf
from libraries.document_store.layouts.vector import names_of
from libraries.document_store.layouts.vector_rows import VectorRows
from libraries.document_store.schema import Schema
from libraries.document_store.shredding import becomes_full, infer, most_frequent, shred
from libraries.document_store.values import ValueKind

_BATCH_BYTES = 1 << 20
"""Maximum bytes of rows that are converted at once in the row layouts."""

_COPIED_PAGES = 8
"""Pages of a leaf that are copied at once (1 MiB)."""


class ComponentWriter:
    """A component's file that is being written."""

    def __init__(self, writer: FileWriter, layout: LayoutName, key_kind: KeyKind, options: ComponentOptions) -> None:
        self._writer = writer
        self._layout = layout
        self._options = options
        self._pages = PageWriter(writer, options.compression)
        self._leaves: list[LeafEntry] = []
        self._hashes: list[np.ndarray] = []
        self.key_kind = key_kind

    def add_leaf(
        self, pages: Sequence[bytes | bytearray], keys: Keys, antimatter: np.ndarray, columns: int, row_bytes: int
    ) -> None:
        """Write the pages of one more leaf. The keys of this leaf must follow the keys of the previous leaf."""
        for page in pages:
            self._pages.append(page)
        low, high = keys[:1].tolist()[0], keys[-1:].tolist()[0]
        self._end_leaf(LeafEntry(len(pages), len(keys), int(antimatter.sum()), columns, row_bytes, low, high), keys)

    def copy_leaf(self, pages: PageReader, first_page: int, entry: LeafEntry, keys: Keys) -> None:
        """Copy the stored bytes of a leaf from another component with the same compression."""
        for start in range(first_page, first_page + entry.pages, _COPIED_PAGES):
            for body in pages.stored(start, min(_COPIED_PAGES, first_page + entry.pages - start)):
                self._pages.copy(body)
        self._end_leaf(entry, keys)

    def _end_leaf(self, entry: LeafEntry, keys: Keys) -> None:
        self._leaves.append(entry)
        self._hashes.append(hash_keys(keys))

    def finish(self, schema: Schema) -> ComponentInfo:
        """Write the footer. `schema` must cover all leaves that were written."""
        footer = Footer(
            layout=self._layout,
            compression=self._options.compression,
            key_kind=self.key_kind,
            schema=schema.to_bytes(),
            key_filter=KeyFilter.of(np.concatenate([np.empty(0, np.uint64), *self._hashes])).to_bytes(),
            encoded_bytes=self._pages.raw_bytes,
            page_bytes=self._pages.stored_bytes,
            leaves=self._leaves,
        )
        footer_bytes = write_footer(self._writer, footer)
        return info_of(footer, schema, sum(self._pages.stored_bytes) + footer_bytes)


class MegaLeaves:
    """Writes entries with their columns as mega leaves."""

    def __init__(self, out: ComponentWriter) -> None:
        self._out = out

    def add(self, keys: Keys, antimatter: np.ndarray, columns: int, chunks: Iterable[Chunk], row_bytes: int) -> None:
        """Add one mega leaf. `columns` is the number of columns (leaves of the schema). Raises ValueError if the keys
        do not fit in page 0."""
        pages = encode_mega_leaf(keys, antimatter, columns, chunks)
        self._out.add_leaf(pages, keys, antimatter, columns, row_bytes)


def fitting_entries(keys: Keys, columns: int) -> int:
    """Return how many of the keys, from the first on, fit in page 0 together with the metadata of this many columns.
    Return at least 1."""
    room = PAGE_BYTES - page_0_bytes(columns, 0, 0)
    # One bit per entry for anti-matter, rounded up to bytes.
    ends = np.cumsum(encoded_sizes(keys)) + (np.arange(len(keys)) + 8) // 8
    return max(1, int(np.searchsorted(ends, room, side="right")))


class RowLeaves:
    """Writes leaves of stored rows. Each page is filled before the next page is started."""

    def __init__(self, out: ComponentWriter) -> None:
        self._out = out
        self._keys = empty_keys(out.key_kind)
        self._rows: list[bytes | memoryview | None] = []

    def add(self, keys: Keys, rows: Sequence[bytes | memoryview | None], columns: int) -> None:
        """Add entries. `columns` is the number of columns (leaves of the schema). A row of None marks a deleted key."""
        self._keys = np.concatenate((self._keys, keys))
        self._rows += rows
        ends = np.cumsum(encoded_sizes(self._keys) + [len(row or b"") + ENTRY_BYTES for row in self._rows])
        room = PAGE_BYTES - HEADER_BYTES
        start = used = 0
        while len(ends) and ends[-1] - used > room:
            # A row that exceeds a page gets a separate leaf.
            end = max(start + 1, int(np.searchsorted(ends, used + room, side="right")))
            self._write(start, end, columns)
            start, used = end, int(ends[end - 1])
        self._keys, self._rows = self._keys[start:], self._rows[start:]

    def finish(self, columns: int) -> None:
        """Write the remaining rows."""
        if len(self._keys):
            self._write(0, len(self._keys), columns)

    def _write(self, start: int, end: int, columns: int) -> None:
        keys, rows = self._keys[start:end], self._rows[start:end]
        antimatter = np.fromiter((row is None for row in rows), np.bool_, len(rows))
        present = [row for row in rows if row is not None]
        pages = encode_row_leaf(keys, antimatter, present)
        self._out.add_leaf(pages, keys, antimatter, columns, sum(map(len, present)))


def write_component(
    writer: FileWriter, layout: LayoutName, entries: Entries, schema: Schema, options: ComponentOptions
) -> ComponentInfo:
    """Write sorted entries as one component, and extend the schema by the fields of these entries. In `open` the schema
    is not extended, because rows contain their field names.

    Memory is limited to one leaf. Raises the errors of the writer, DocumentError for a row that cannot be stored, and
    ValueError for keys that do not fit in a page.
    """
    kind: KeyKind = "integer" if schema.leaves[0].kind is ValueKind.INTEGER else "text"
    out = ComponentWriter(writer, layout, kind, options)
    if layout == "amax":
        leaves = MegaLeaves(out)
        for keys, rows in _groups(entries, options.leaf_records, options.leaf_bytes):
            schema = _write_mega_leaves(leaves, keys, rows, schema)
        return out.finish(schema)
    row_leaves = RowLeaves(out)
    for keys, rows in _groups(entries, options.leaf_records, min(options.leaf_bytes, _BATCH_BYTES)):
        if layout == "vector":
            schema = _inferred([row for row in rows if row is not None], schema)
            row_leaves.add(keys, _compacted(rows, schema), len(schema.leaves))
        else:
            row_leaves.add(keys, rows, len(schema.leaves))
    row_leaves.finish(len(schema.leaves))
    return out.finish(schema)


def _write_mega_leaves(leaves: MegaLeaves, keys: Keys, rows: Sequence[bytes | None], schema: Schema) -> Schema:
    """Write entries as one leaf, or as several leaves if the keys do not fit in one page 0. Return the extended
    schema."""
    while len(keys):
        count = fitting_entries(keys, len(schema.leaves))
        antimatter = np.fromiter((row is None for row in rows[:count]), np.bool_, min(count, len(rows)))
        present = [row for row in rows[:count] if row is not None]
        shredded = shred(present, schema)
        if becomes_full(schema, shredded.schema):
            schema = most_frequent([row for row in rows if row is not None], schema)
            continue
        schema = shredded.schema
        if count > 1 and count > fitting_entries(keys[:count], len(schema.leaves)):
            # These rows added columns that page 0 must describe, so retry with fewer rows.
            continue
        chunks = chunks_of(schema, shredded.columns)
        leaves.add(keys[:count], antimatter, len(schema.leaves), chunks, sum(map(len, present)))
        keys, rows = keys[count:], rows[count:]
    return schema


def _inferred(rows: Sequence[bytes], schema: Schema) -> Schema:
    larger = infer(rows, schema)
    return infer(rows, most_frequent(rows, schema)) if becomes_full(schema, larger) else larger


def _compacted(rows: Sequence[bytes | None], schema: Schema) -> list[bytes | None]:
    compacted = iter(VectorRows(names_of(schema)).encode([row for row in rows if row is not None]))
    return [None if row is None else next(compacted) for row in rows]


def _groups(entries: Entries, most_records: int, most_bytes: int) -> Iterator[tuple[Keys, list[bytes | None]]]:
    """Split the entries into groups. A group ends with the record that reaches one of the two limits."""
    pieces: list[Keys] = []
    rows: list[bytes | None] = []
    row_bytes = 0
    for more_keys, more_rows in entries:
        pieces.append(more_keys)
        rows += more_rows
        row_bytes += sum(len(row or b"") for row in more_rows)
        if len(rows) < most_records and row_bytes < most_bytes:
            continue
        keys = np.concatenate(pieces)
        ends = np.cumsum([len(row or b"") for row in rows])
        start = used = 0
        while (end := _end_of_group(ends, start, used, most_records, most_bytes)) <= len(rows):
            yield keys[start:end], rows[start:end]
            start, used = end, int(ends[end - 1])
        pieces, rows, row_bytes = [keys[start:]], rows[start:], row_bytes - used
    if rows:
        yield np.concatenate(pieces), rows


def _end_of_group(ends: np.ndarray, start: int, used: int, most_records: int, most_bytes: int) -> int:
    """Return the end of the group that begins at `start`. Return a number above the number of rows if no limit is
    reached."""
    return min(start + most_records, int(np.searchsorted(ends, used + most_bytes)) + 1)
