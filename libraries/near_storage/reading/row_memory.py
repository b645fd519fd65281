"""What rows take in memory when they are decoded, known before they are: at most, for any batch of them.

Few bytes of a file may decode to many: a dictionary is stored once, and each of its values in every row. So a batch has
as many rows as fit, by the widths of the columns' types, the longest value of each dictionary, and the sizes of pages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from libraries.near_storage.reading import pages
from libraries.near_storage.reading.footers import COMPRESSED, UNCOMPRESSED, VALUES, ParsedFooter, place_of
from libraries.near_storage.reading.pages import Page

WIDE_BYTES = 32 << 20
"""Most bytes that a batch may decode to, unless one row does: twice what batches have that decode to what they are
stored as."""

SMALL_BYTES = 4 << 20
"""A chunk that decodes to no more is not looked into."""

COARSE_BYTES = 64 << 20
"""Row groups that are no larger before compression are taken to need all of that for pages, without a look at them."""

ROUNDED = 1.25
"""A batch may be so many times as wide as the least that is possible."""

COPIES = 3
"""Of a batch at a time: pyarrow's buffers grow by doubling, a cast or filter makes another, and what is sent one."""


class Reading(NamedTuple):
    """How many rows a batch may have, and bytes that reading takes at most: chunks, pages and a batch."""

    rows: int
    nbytes: int


def estimate(footer: ParsedFooter, groups: Sequence[int], leaves: Sequence[int], rows: int) -> int:
    """Bytes that reading these columns takes if all values are of average length, and a large group's pages small."""
    sizes = [footer.chunk_sizes(group, leaves) for group in groups]
    plain_bytes = sum(int(each[:, UNCOMPRESSED].sum()) for each in sizes)
    held = sum(int(each[:, COMPRESSED].sum()) for each in sizes)
    count = max(1, sum(footer.metadata.row_group(group).num_rows for group in groups))
    share = min(1.0, rows / count)
    value_bytes = np.array([footer.shapes[leaf].value_bytes for leaf in leaves], np.int64)
    is_bytes = np.array([footer.shapes[leaf].is_bytes for leaf in leaves], np.bool_)
    decoded = sum(int(each[:, VALUES] @ value_bytes + each[is_bytes, UNCOMPRESSED].sum()) for each in sizes)
    return held + min(plain_bytes, COARSE_BYTES) + int(COPIES * share * decoded)


def reading(
    footer: ParsedFooter,
    look: Callable[[int, int], memoryview],
    groups: Sequence[int],
    leaves: Sequence[int],
    rows: int,
) -> Reading:
    """How these leaf columns of some row groups are read in batches of at most `rows` rows.

    `look` gives a chunk by its place in the file; only chunks of texts and bytes are looked into, and those of large
    row groups.
    """
    # Of row groups without rows nothing is read, and writers put any place for their chunks.
    groups = [group for group in groups if footer.metadata.row_group(group).num_rows]
    sizes = [footer.chunk_sizes(group, leaves) for group in groups]
    counts = [footer.metadata.row_group(group).num_rows for group in groups]
    plain_bytes = sum(int(each[:, UNCOMPRESSED].sum()) for each in sizes)
    coarse = plain_bytes <= COARSE_BYTES
    held = sum(int(each[:, COMPRESSED].sum()) for each in sizes)
    page_bytes = plain_bytes if coarse else 0
    per_row = apart = 0
    texts: list[_Text] = []
    for place, leaf in enumerate(leaves):
        shape = footer.shapes[leaf]
        if shape.repeated:
            # Where rows begin is not known before: one batch may have all values.
            values = [
                max(int(size[place, VALUES]), count * shape.slots) for size, count in zip(sizes, counts, strict=True)
            ]
            apart += shape.value_bytes * sum(values)
        else:
            per_row += shape.value_bytes
        if coarse and not shape.is_bytes:
            continue
        text = _Text()
        for group, size in zip(groups, sizes, strict=True):
            chunk = _Chunk(footer, look, group, leaf, int(size[place, UNCOMPRESSED]))
            if shape.is_bytes:
                text.add(chunk, int(size[place, VALUES]))
            if not coarse:
                page_bytes += chunk.page_bytes()
        if shape.repeated:
            apart += text.nbytes()
        else:
            texts.append(text)
    rows = max(1, min(rows, sum(counts)))
    # One row may already take all of a page, where nothing tells how long its values are: fewer rows would not help.
    most = max(WIDE_BYTES, ROUNDED * _widest(texts, per_row, 1))
    while (width := _widest(texts, per_row, rows)) > most and rows > 1:
        rows //= 2
    return Reading(rows, held + page_bytes + COPIES * (width + apart))


def _widest(texts: Sequence[_Text], per_row: int, rows: int) -> int:
    return rows * per_row + sum(text.widest(rows) for text in texts)


class _Chunk:
    """One column chunk, looked into where that must be."""

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
        """Bytes of pages that are held at a time: a dictionary, and a page as it is stored and decompressed."""
        if self.plain_bytes <= SMALL_BYTES:
            return self.plain_bytes
        dictionary = sum(page.plain_bytes for page in self.all_pages() if page.kind == pages.DICTIONARY_PAGE)
        return dictionary + max((page.plain_bytes for page in self.all_pages()), default=0)

    def longest(self, dictionary: Page) -> int:
        known = self._footer.longest
        if (self._group, self._leaf) not in known:
            codec = self._footer.metadata.row_group(self._group).column(self._leaf).compression
            known[self._group, self._leaf] = pages.longest(self._bytes(), dictionary, codec)
        return known[self._group, self._leaf]


class _Text:
    """What texts or bytes of one column take, page by page: values, bytes of all of them, and of the longest."""

    def __init__(self) -> None:
        self._pages: list[tuple[int, int, int]] = []

    def add(self, chunk: _Chunk, values: int) -> None:
        """Take the pages of the next chunk, or all of it as one page where it is small however it decodes."""
        dictionary = next((page for page in chunk.all_pages() if page.kind == pages.DICTIONARY_PAGE), None)
        data = [page for page in chunk.all_pages() if page.kind in (pages.DATA_PAGE, pages.DATA_PAGE_V2)]
        # In a dictionary a value's length has four bytes.
        each = 0 if dictionary is None else dictionary.plain_bytes - 4 * dictionary.values
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
        """Bytes of all values."""
        return sum(nbytes for _, nbytes, _ in self._pages)

    def widest(self, rows: int) -> int:
        """Bytes that a batch of so many rows has at most, if batches follow each other from the first row on."""
        if not self._pages:
            return 0
        values, nbytes, longest = np.array(self._pages, np.float64).T
        ends = np.cumsum(values)
        until = np.concatenate(([0], np.cumsum(np.minimum(nbytes, rows * longest))))
        begins = np.arange(0, max(ends[-1], 1), rows)
        first = np.searchsorted(ends, begins, side="right")
        last = np.minimum(np.searchsorted(ends, begins + rows, side="left") + 1, len(values))
        return int((until[last] - until[np.minimum(first, len(values) - 1)]).max())
