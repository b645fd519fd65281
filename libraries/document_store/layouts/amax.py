"""The AMAX layout of mega leaves, which stores up to 15,000 records column by column (paper, 4.2 to 4.4). A reader
reads only the pages of the requested columns.

This module selects pages and decodes columns; `mega_leaf.py` defines the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from libraries.document_store import assembly, kernels
from libraries.document_store.encodings import (
    MOST_TEXT_BYTES,
    MOST_TOKENS,
    decode_coded,
    decode_column,
    encode_column,
    native,
)
from libraries.document_store.encodings.chunks import Chunks
from libraries.document_store.errors import CorruptError
from libraries.document_store.layouts.footer import LeafEntry
from libraries.document_store.layouts.layout import KeyKind, Keys
from libraries.document_store.layouts.leaf_summary import LeafFacts, may_hold_keys
from libraries.document_store.layouts.mega_leaf import Chunk, PageZero, decode_page_0
from libraries.document_store.layouts.pages import CacheKey, PageReader
from libraries.document_store.layouts.place import placed
from libraries.document_store.layouts.prefixes import (
    HIGHEST,
    LOWEST,
    NO_VALUES,
    codes_of_numbers,
    codes_of_texts,
    may_hold,
)
from libraries.document_store.record_selection import record_count, take, take_coded
from libraries.document_store.schema import Leaf, Schema
from libraries.document_store.shredding import CodedColumn, Column, Texts, key_column
from libraries.document_store.shredding.columns import KEY, values_of
from libraries.document_store.values import ValueKind

C = TypeVar("C", Column, Column | CodedColumn)

FEW_RECORDS = 8
"""If at most one of this many records is requested, rows are made without decoding the texts of the other records."""

_PAGE_0, _CHUNKS = -1, -2
"""Used in cache keys in place of a column's number: for page 0, and for the chunks of all columns together."""


def chunk_of(column: Column) -> Chunk | None:
    """Encode a column as a chunk with its lowest and highest code. Return None if no record has a value in the column,
    or an object or array around such a value."""
    if not column.levels.any():
        return None
    return Chunk(column.leaf.number, encode_column(column), _codes(column))


def chunks_of(schema: Schema, columns: Sequence[Column]) -> Iterator[Chunk]:
    """Encode the columns of all leaves of a schema as chunks with their lowest and highest codes. Skip the key's column
    and columns that no record has."""
    encoded = native.encode_all(schema, columns, MOST_TOKENS, MOST_TEXT_BYTES) if kernels.NATIVE else None
    if encoded is None:
        yield from filter(None, map(chunk_of, columns[1:]))
        return
    for number, (data, codes) in enumerate(encoded):
        if data:
            yield Chunk(number, data, codes)


def merged_chunk(
    leaf: Leaf, chunks: Sequence[memoryview | None], records: Sequence[int], ordinals: np.ndarray
) -> Chunk | None:
    """Return one chunk of a column, made from the column's chunks in several leaves without decoding whole columns.

    `ordinals` are the positions of the records to keep, counted across all leaves. `records` is the number of records
    of each leaf. A chunk of None means that no record of that leaf has the column. Return None if the columns must be
    decoded, because the C kernels are not built or a chunk is faulty.
    """
    if not kernels.NATIVE:
        return None
    merged = native.merge_column(leaf, chunks, records, ordinals, MOST_TOKENS, MOST_TEXT_BYTES)
    return None if merged is None else Chunk(leaf.number, *merged)


def _codes(column: Column) -> tuple[int, int]:
    if not column.leaf.has_values:
        return NO_VALUES
    if column.leaf.kind is ValueKind.REST:
        return LOWEST, HIGHEST
    if isinstance(column.values, Texts):
        return codes_of_texts(column.values.offsets, column.values.data)
    return codes_of_numbers(column.leaf.kind, column.values)


class AmaxLeaf(LeafFacts):
    """One mega leaf. The object keeps its page 0 once it is read. To release page 0, get a new object from the
    component's `leaves`."""

    keep_pages = 0
    """Number of pages to keep between calls of `columns`. Set this before reading columns one by one, because
    neighbouring columns share pages."""

    def __init__(self, pages: PageReader, first_page: int, entry: LeafEntry, kind: KeyKind, schema: Schema) -> None:
        super().__init__(pages, first_page, entry, kind, schema)
        self._kept: dict[int, bytes] = {}

    @cached_property
    def _page_0(self) -> PageZero:
        kept: PageZero | None = self._pages.cache.get(self._place_of(_PAGE_0))
        if kept is None:
            kept = self._read_page_0()
            _protect((kept.keys, kept.antimatter))
            self._pages.cache.put(self._place_of(_PAGE_0), kept, kept.size_bytes)
        return kept

    def _place_of(self, number: int) -> CacheKey:
        return self._pages.name, self._first_page, number

    def _read_page_0(self) -> PageZero:
        (page,) = self._pages.read(self._first_page, keep=False)
        with placed(self._where):
            zero = decode_page_0(self._kind, page, self._entry.pages)
            self.check(zero.keys, zero.antimatter)
            if zero.columns != self._entry.columns:
                raise CorruptError(f"page 0 has {zero.columns} columns, but the footer declares {self._entry.columns}")
        return zero

    def keys(self) -> tuple[Keys, np.ndarray]:
        """See `ComponentLeaf`."""
        return self._page_0.keys, self._page_0.antimatter

    def order_of_columns(self) -> list[int]:
        """Return the numbers of the columns that some record has, in the order of their chunks in the file."""
        offsets = self._page_0.offsets
        return sorted((number for number, offset in enumerate(offsets) if offset), key=offsets.__getitem__)

    def has_column(self, number: int) -> bool:
        """Return whether some record has a value in this column, or an object or array around such a value."""
        return number == KEY or self._page_0.offsets[number] != 0

    def chunk(self, number: int) -> memoryview | None:
        """Return the chunk of a column; None if no record has the column. Raises CorruptError."""
        zero = self._page_0
        own = zero.pages_of(number)
        if not own:
            return None
        is_kept = len(own) == 1 and own[0] in self._kept
        pages = self._kept if is_kept else self._fetch([number], keep=True)
        try:
            return zero.chunk(number, [pages[page] for page in own])
        except CorruptError as error:
            raise CorruptError(f"{self._where}: column {number}: {error}") from None

    def may_match(self, number: int, low: Any, high: Any) -> bool:
        """See `ComponentLeaf`."""
        if number >= len(self._schema.leaves):
            return False
        leaf = self._schema.leaves[number]
        if number == KEY:
            return may_hold_keys(self._entry, low, high)
        if low is None and high is None:
            # NaN has no code, but is a value too.
            return self._page_0.offsets[number] != 0
        return may_hold(self._page_0.codes[number].tolist(), leaf.kind, low, high)

    def columns(self, numbers: Iterable[int], ordinals: np.ndarray | None = None) -> dict[int, Column]:
        """See `ComponentLeaf`."""
        columns = self._decoded(numbers, decode_column)
        if ordinals is None:
            return columns
        records = self._records(ordinals)
        return {number: take(column, records) for number, column in columns.items()}

    def coded_columns(
        self, numbers: Iterable[int], ordinals: np.ndarray | None = None
    ) -> dict[int, Column | CodedColumn]:
        """See `ComponentLeaf`."""
        columns = self._whole_columns(numbers)
        if ordinals is None:
            return columns
        records = self._records(ordinals)
        return {number: take_coded(column, records) for number, column in columns.items()}

    def _whole_columns(self, numbers: Iterable[int]) -> dict[int, Column | CodedColumn]:
        columns: dict[int, Column | CodedColumn] = {}
        missing = []
        for number in numbers:
            kept = self._pages.cache.get(self._place_of(number))
            if kept is None:
                missing.append(number)
            else:
                columns[number] = kept
        for number, column in self._decoded(missing, decode_coded, keep=False).items():
            columns[number] = column
            _protect(column.arrays)
            # Do not cache columns without pages, because creating them is as fast as a lookup.
            if self._page_0.pages_of(number):
                self._pages.cache.put(self._place_of(number), column, sum(array.nbytes for array in column.arrays))
        return columns

    def _decoded(
        self, numbers: Iterable[int], decode: Callable[[Leaf, memoryview], C], *, keep: bool = True
    ) -> dict[int, C]:
        """Decode columns with `decode`. With `keep`, the cache holds the pages of these columns. Otherwise it may hold
        the decoded columns instead."""
        leaves = self._schema.leaves
        wanted = sorted({number for number in numbers if number < len(leaves)})
        pages = self._fetch(wanted, keep=keep)
        return {number: self._column(leaves[number], pages, decode) for number in wanted}

    def rows(self, ordinals: np.ndarray | None = None) -> list[bytes]:
        """See `ComponentLeaf`."""
        is_few = ordinals is not None and len(ordinals) * FEW_RECORDS <= self.count
        if ordinals is not None and is_few and Chunks.can_assemble(self._schema):
            some = self._few_rows(ordinals)
            if some is not None:
                return some
        columns = self.columns(range(len(self._schema.leaves)), ordinals)
        count = self.count - self.antimatter_count if ordinals is None else len(ordinals)
        with placed(self._where):
            return assembly.assemble_rows(self._schema, columns, count)

    def _few_rows(self, ordinals: np.ndarray) -> list[bytes] | None:
        """Return the rows of a small share of the records. Return None if a chunk is faulty. Decoding with `columns`
        then raises an error that explains the fault."""
        place = self._place_of(_CHUNKS)
        chunks: Chunks | None = self._pages.cache.get(place)
        if chunks is None:
            zero = self._page_0
            numbers = self.order_of_columns()
            pages = self._fetch(numbers, keep=False)
            chunks = Chunks(
                len(self._schema.leaves),
                {number: zero.chunk(number, [pages[page] for page in zero.pages_of(number)]) for number in numbers},
            )
            self._pages.cache.put(place, chunks, chunks.size_bytes)
        is_deleted = np.zeros(len(ordinals), np.bool_)
        keys = key_column(self._schema.leaves[KEY], self._page_0.keys[ordinals], is_deleted)
        return chunks.rows(self._schema, keys, self._records(ordinals), self.count - self.antimatter_count)

    def _records(self, ordinals: np.ndarray) -> np.ndarray:
        """Convert positions among all entries to positions among the records, which are the entries without deletion
        markers."""
        if self.antimatter_count == 0:
            return ordinals
        return (np.cumsum(~self._page_0.antimatter) - 1)[ordinals]

    def _fetch(self, numbers: Sequence[int], *, keep: bool) -> dict[int, bytes]:
        """Return the pages that hold these columns, by page number within the leaf. Adjacent pages are read
        together."""
        wanted = sorted({page for number in numbers for page in self._page_0.pages_of(number)})
        pages = {page: self._kept[page] for page in wanted if page in self._kept}
        for run in _runs([page for page in wanted if page not in pages]):
            if run[-1] >= self._entry.pages:
                raise CorruptError(
                    f"{self._where}: a column needs page {run[-1]}, the last page is {self._entry.pages - 1}"
                )
            # Use only free room. Otherwise a pass over all documents would evict the columns that queries use.
            read = self._pages.read(self._first_page + run[0], len(run), keep=keep, if_room=True)
            pages.update(zip(run, read, strict=True))
        if self.keep_pages:
            # A column shares only its first and last page with its neighbours.
            self._kept.update({page: pages[page] for page in {*wanted[:1], *wanted[-1:]}})
            for page in list(self._kept)[: -self.keep_pages]:
                del self._kept[page]
        return pages

    def _column(self, leaf: Leaf, pages: dict[int, bytes], decode: Callable[[Leaf, memoryview], C]) -> C:
        present = self.count - self.antimatter_count
        zero = self._page_0
        if leaf.number == KEY:
            return key_column(leaf, zero.keys[~zero.antimatter], np.zeros(present, np.bool_))
        own = zero.pages_of(leaf.number)
        if not own:
            return Column(leaf, np.zeros(present, np.uint8), values_of(leaf.kind, []))
        with placed(f"{self._where}: column {leaf.number} ({leaf.path})"):
            column = decode(leaf, zero.chunk(leaf.number, [pages[page] for page in own]))
            records = record_count(column)
            if records != present:
                raise CorruptError(f"the column has {records} records, but its leaf has {present}")
        return column


def _protect(arrays: Iterable[np.ndarray]) -> None:
    """Make arrays read-only, because several callers may share them."""
    for array in arrays:
        array.flags.writeable = False


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    """Split ascending numbers where they are not consecutive."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] + 1 == number:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs
