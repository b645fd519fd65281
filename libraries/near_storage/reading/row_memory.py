"""Compute upper bounds of the memory that a batch of decoded rows takes, before decoding.

Few bytes of a file may decode to many, because a dictionary value is stored once and repeated in every row. The number
of rows of a batch is therefore limited by the widths of the columns' types, the longest value of each dictionary and
the page sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from libraries.near_storage.reading import pages
from libraries.near_storage.reading.footers import COMPRESSED, UNCOMPRESSED, VALUES, ParsedFooter, place_of
from libraries.near_storage.reading.pages import Page

DECODED_BYTES, PAGE_VALUES = range(2)
"""Fields of `PageSizes`, as columns of an array."""

WIDE_BYTES = 32 << 20
"""Maximum decoded bytes of a batch, unless a single row has more. This is twice the size of a batch whose data do not
grow when decoded."""

SMALL_BYTES = 4 << 20
"""Up to this decoded size, the pages of a chunk are not counted separately."""

COARSE_BYTES = 64 << 20
"""Up to this size of all pages, all pages are assumed to be in memory at the same time."""

ROUNDED = 1.25
"""A batch may exceed WIDE_BYTES if a single row alone does. The size of the batch is then at most this multiple of the
size of a batch of one row."""

COPIES = 3
"""Assumed number of copies of a batch in memory. pyarrow's buffers grow by doubling, and casts, filters and sending
copy a batch."""


class Reading(NamedTuple):
    """How many rows a batch may have, and an upper bound of the memory for reading: chunks, pages and a batch."""

    rows: int
    nbytes: int


def estimate(footer: ParsedFooter, groups: Sequence[int], leaves: Sequence[int], rows: int) -> int:
    """Estimate the memory to read these columns. Assumes values of average length, small pages in large groups, and
    correct sizes in the footer."""
    sizes = [footer.chunk_sizes(group, leaves) for group in groups]
    # As doubles, because the sums of sizes in a hostile footer exceed 64 bits.
    plain_bytes = int(sum(each[:, UNCOMPRESSED].sum(dtype=np.float64) for each in sizes))
    held = sum(int(each[:, COMPRESSED].sum()) for each in sizes)
    count = max(1, sum(footer.metadata.row_group(group).num_rows for group in groups))
    share = min(1.0, rows / count)
    value_bytes = np.array([footer.shapes[leaf].value_bytes for leaf in leaves], np.float64)
    is_bytes = np.array([footer.shapes[leaf].is_bytes for leaf in leaves], np.bool_)
    decoded = sum(each[:, VALUES] @ value_bytes + each[is_bytes, UNCOMPRESSED].sum(dtype=np.float64) for each in sizes)
    return held + min(plain_bytes, COARSE_BYTES) + int(COPIES * share * decoded)


def reading(
    footer: ParsedFooter,
    look: Callable[[int, int], memoryview],
    groups: Sequence[int],
    leaves: Sequence[int],
    rows: int,
    claim: Callable[[int], None] = lambda nbytes: None,
) -> Reading:
    """Return how to read these leaf columns of row groups in batches of at most `rows` rows.

    `look` returns a chunk by its position in the file. It is called for text and binary chunks, for large chunks, and
    for chunks whose page headers were not read before. `claim` is called with the memory for chunks and pages before
    a page is decompressed.
    """
    # Empty row groups are not read, and writers set any position for their chunks.
    groups = [group for group in groups if footer.metadata.row_group(group).num_rows]
    sizes = [footer.chunk_sizes(group, leaves) for group in groups]
    counts = [footer.metadata.row_group(group).num_rows for group in groups]
    in_pages = [footer.page_sizes(group, leaves, look) for group in groups]

    @cache
    def chunk(number: int, place: int) -> _Chunk:
        return _Chunk(footer, look, groups[number], leaves[place], int(in_pages[number][place, DECODED_BYTES]))

    held = sum(int(each[:, COMPRESSED].sum()) for each in sizes)
    page_bytes = int(sum(each[:, DECODED_BYTES].sum(dtype=np.float64) for each in in_pages))
    if page_bytes > COARSE_BYTES:
        page_bytes = sum(
            chunk(number, place).page_bytes() for number in range(len(groups)) for place in range(len(leaves))
        )
    claim(held + page_bytes)
    per_row = apart = 0
    texts: list[_Text] = []
    for place, leaf in enumerate(leaves):
        shape = footer.shapes[leaf]
        if not (shape.repeated or shape.is_bytes):
            per_row += shape.value_bytes
            continue
        values = [int(each[place, PAGE_VALUES]) for each in in_pages]
        if shape.repeated:
            # Row boundaries are unknown before decoding, so one batch may have all values.
            most_values = [max(each, count * shape.slots) for each, count in zip(values, counts, strict=True)]
            apart += shape.value_bytes * sum(most_values)
        else:
            per_row += shape.value_bytes
        if not shape.is_bytes:
            continue
        text = _Text()
        for number in range(len(groups)):
            text.add(chunk(number, place), values[number])
        if shape.repeated:
            apart += text.nbytes()
        else:
            texts.append(text)
    rows = max(1, min(rows, sum(counts)))
    # If the lengths of values are unknown, one row may take a whole page, and fewer rows would not help.
    most = max(WIDE_BYTES, ROUNDED * _widest(texts, per_row, 1))
    while (width := _widest(texts, per_row, rows)) > most and rows > 1:
        rows //= 2
    return Reading(rows, held + page_bytes + COPIES * (width + apart))


def _widest(texts: Sequence[_Text], per_row: int, rows: int) -> int:
    return rows * per_row + sum(text.widest(rows) for text in texts)


class _Chunk:
    """One column chunk, inspected where necessary."""

    def __init__(
        self, footer: ParsedFooter, look: Callable[[int, int], memoryview], group: int, leaf: int, plain_bytes: int
    ) -> None:
        self._footer, self._look, self._group, self._leaf = footer, look, group, leaf
        self.plain_bytes = plain_bytes
        self._pages: list[Page] | None = None

    def _bytes(self) -> memoryview:
        return self._look(*place_of(self._footer.metadata.row_group(self._group).column(self._leaf)))

    def all_pages(self) -> list[Page]:
        if self._pages is None:
            self._pages = pages.read(self._bytes())
        return self._pages

    def page_bytes(self) -> int:
        """Return the decompressed size of the pages that are in memory at the same time. These are the dictionary and
        the largest page. For a small chunk, all pages are counted."""
        if self.plain_bytes <= SMALL_BYTES:
            return self.plain_bytes
        dictionary = sum(page.decoded_bytes for page in self.all_pages() if page.kind == pages.DICTIONARY_PAGE)
        return dictionary + max((page.plain_bytes for page in self.all_pages()), default=0)

    def longest(self, dictionary: Page) -> int:
        known = self._footer.longest
        if (self._group, self._leaf) not in known:
            codec = self._footer.metadata.row_group(self._group).column(self._leaf).compression
            known[self._group, self._leaf] = pages.longest(self._bytes(), dictionary, codec)
        return known[self._group, self._leaf]


class _Text:
    """Upper bounds for the text or binary values of one column, per page: number of values, total bytes, and bytes of
    the longest value."""

    def __init__(self) -> None:
        self._pages: list[tuple[int, int, int]] = []

    def add(self, chunk: _Chunk, values: int) -> None:
        """Add the pages of the next chunk. A chunk that is small even when decoded is added as one page."""
        dictionary = next((page for page in chunk.all_pages() if page.kind == pages.DICTIONARY_PAGE), None)
        data = [page for page in chunk.all_pages() if page.kind in (pages.DATA_PAGE, pages.DATA_PAGE_V2)]
        # Each dictionary value is preceded by a length of four bytes.
        each = 0 if dictionary is None else max(0, dictionary.plain_bytes - 4 * dictionary.values)
        most = chunk.plain_bytes + values * each
        if most <= SMALL_BYTES and not any(page.prefixed for page in data):
            self._pages.append((values, most, most))
            return
        longest = 0 if dictionary is None else chunk.longest(dictionary)
        for page in data:
            one = longest if page.of_dictionary else page.plain_bytes
            repeats = page.of_dictionary or page.prefixed
            self._pages.append((page.values, page.values * one if repeats else page.plain_bytes, one))

    def nbytes(self) -> int:
        return sum(nbytes for _, nbytes, _ in self._pages)

    def widest(self, rows: int) -> int:
        """Return an upper bound of the bytes of any batch, if all rows are divided into consecutive batches of `rows`
        rows."""
        if not self._pages:
            return 0
        values, nbytes, longest = np.array(self._pages, np.float64).T
        ends = np.cumsum(values)
        until = np.concatenate(([0], np.cumsum(np.minimum(nbytes, rows * longest))))
        begins = np.arange(0, max(ends[-1], 1), rows)
        first = np.searchsorted(ends, begins, side="right")
        last = np.minimum(np.searchsorted(ends, begins + rows, side="left") + 1, len(values))
        return int((until[last] - until[np.minimum(first, len(values) - 1)]).max())
