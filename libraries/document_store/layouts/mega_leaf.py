"""Encode mega leaves: page 0, which holds keys and metadata of the columns, then the columns' chunks (paper, 4.2).

Page 0 never exceeds one page:

    24 bytes  numbers of entries, of anti-matter entries, of columns, of bytes of the keys (4 bytes each), and of bytes
              of the leaf (8 bytes)
              4 bytes per column: where its chunk begins, counted from page 0; 0 for a column that no record has
              16 bytes per column: the codes of its smallest and of its largest value (`prefixes.py`)
              the keys, plain; then, if there is anti-matter, one bit per entry

Anti-matter are deletion markers. The chunks follow, from largest to smallest. A chunk that does not fit in the
remaining bytes of a page starts a new page if that wastes less than 15 % of the page. Otherwise the chunk is split. The
key's column has no chunk. All numbers are little endian. A chunk begins with its length in 4 bytes; this module does
not interpret the rest of the chunk.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from libraries.document_store.errors import CorruptError
from libraries.document_store.layouts.keys import decode_keys, encode_keys
from libraries.document_store.layouts.layout import PAGE_BYTES, KeyKind, Keys
from libraries.document_store.layouts.prefixes import NO_VALUES
from libraries.document_store.layouts.row_leaves import antimatter_bits, antimatter_of

_HEADER = struct.Struct("<4IQ")
_LENGTH = struct.Struct("<I")
_OFFSET_BYTES, _CODES_BYTES = 4, 16
EMPTY_PAGE_TOLERANCE = 0.15
"""Maximum share of a page that may stay empty so that the next column starts on a new page (paper, 4.2). The value is
AsterixDB's."""
_MOST_BYTES = (1 << 32) - 1
_TEXT_BYTES, _INTEGER_BYTES = 64, 3 * 40
"""Approximate bytes of memory: of a Python text with its slot in an array, but without its characters; and of three
integers that are items of lists or dicts."""


def page_0_bytes(columns: int, keys_bytes: int, count: int) -> int:
    """Return the maximum size of page 0 with this many columns and entries."""
    return _HEADER.size + columns * (_OFFSET_BYTES + _CODES_BYTES) + keys_bytes + (count + 7) // 8


@dataclass(frozen=True)
class Chunk:
    """An encoded column that some record has, and the codes of the column's smallest and largest value."""

    number: int
    data: bytes | memoryview
    codes: tuple[int, int]


def encode_leaf(keys: Keys, antimatter: np.ndarray, columns: int, chunks: Iterable[Chunk]) -> list[bytes | bytearray]:
    """Return the pages of one leaf. Columns that no record has are not in `chunks`. Raises ValueError if page 0 is too
    long."""
    offsets = np.zeros(columns, "<u4")
    codes = np.tile(np.array(NO_VALUES, "<u8"), (columns, 1))
    pages: list[bytearray] = []
    waiting = sorted(chunks, key=lambda chunk: len(chunk.data))
    while waiting:
        # Pop chunks from the end, so that each chunk is released once it is on its pages. The leaf is in memory only
        # once.
        chunk = waiting.pop()
        codes[chunk.number] = chunk.codes
        offsets[chunk.number] = _place(pages, chunk.data)
    leaf_bytes = PAGE_BYTES * len(pages) + (len(pages[-1]) if pages else PAGE_BYTES)
    key_bytes = encode_keys(keys)
    header = _HEADER.pack(len(keys), int(antimatter.sum()), columns, len(key_bytes), leaf_bytes)
    page_0 = b"".join((header, offsets.tobytes(), codes.tobytes(), key_bytes, antimatter_bits(antimatter)))
    if len(page_0) > PAGE_BYTES:
        raise ValueError(
            f"{len(keys)} entries and {columns} columns need a page 0 of {len(page_0)} bytes; at most {PAGE_BYTES} fit"
        )
    return [page_0, *pages]


def _place(pages: list[bytearray], data: bytes | memoryview) -> int:
    """Append a chunk to the pages after page 0. Return the position of the chunk's first byte."""
    room = PAGE_BYTES - len(pages[-1]) if pages else 0
    if room == 0 or (len(data) > room and room < EMPTY_PAGE_TOLERANCE * PAGE_BYTES):
        pages.append(bytearray())
        room = PAGE_BYTES
    start = PAGE_BYTES * len(pages) + PAGE_BYTES - room
    if start > _MOST_BYTES:
        raise ValueError(f"a leaf would have more than {_MOST_BYTES} bytes")
    pages[-1] += data[:room]
    for at in range(room, len(data), PAGE_BYTES):
        pages.append(bytearray(data[at : at + PAGE_BYTES]))
    return start


@dataclass(frozen=True)
class PageZero:
    """A decoded page 0."""

    keys: Keys
    antimatter: np.ndarray
    offsets: list[int]
    codes: np.ndarray
    leaf_bytes: int
    page_bytes: int

    @property
    def columns(self) -> int:
        """Number of columns of the leaf."""
        return len(self.offsets)

    @property
    def size_bytes(self) -> int:
        """Approximate memory of this object: the bytes of page 0, and Python objects for its texts and integers."""
        texts = 0 if self.keys.dtype == np.int64 else _TEXT_BYTES * len(self.keys)
        return self.page_bytes + texts + self.antimatter.nbytes + _INTEGER_BYTES * self.columns

    @cached_property
    def _ends(self) -> dict[int, int]:
        """Start of each chunk -> an upper bound of its end, which is the start of the next chunk or the end of the
        leaf."""
        starts = sorted(offset for offset in self.offsets if offset)
        return dict(zip(starts, [*starts[1:], self.leaf_bytes], strict=True))

    def pages_of(self, number: int) -> range:
        """Return the leaf's pages that hold a column. A column that no record has is on no pages."""
        start = self.offsets[number]
        if start == 0:
            return range(0)
        return range(start // PAGE_BYTES, (self._ends[start] - 1) // PAGE_BYTES + 1)

    def chunk(self, number: int, pages: Sequence[bytes]) -> memoryview:
        """Return the chunk of a column. `pages` must be exactly the pages that `pages_of` names. Raises
        CorruptError."""
        data = pages[0] if len(pages) == 1 else b"".join(pages)
        at = self.offsets[number] % PAGE_BYTES
        if len(data) < at + _LENGTH.size:
            raise CorruptError(
                f"the column needs {_LENGTH.size} bytes at {at} for its length; its pages have {len(data)} bytes"
            )
        (length,) = _LENGTH.unpack_from(data, at)
        if length < _LENGTH.size or at + length > len(data):
            raise CorruptError(f"the column declares {length} bytes; {_LENGTH.size} to {len(data) - at} are possible")
        return memoryview(data)[at : at + length]


def decode_page_0(kind: KeyKind, page: bytes, pages: int) -> PageZero:
    """Decode page 0 of a leaf of this many pages. Raises CorruptError."""
    if len(page) < _HEADER.size:
        raise CorruptError(f"page 0 has {len(page)} bytes, but its header needs {_HEADER.size}")
    count, antimatter_count, columns, keys_bytes, leaf_bytes = _HEADER.unpack_from(page)
    codes_start = _HEADER.size + _OFFSET_BYTES * columns
    keys_start = codes_start + _CODES_BYTES * columns
    bits_start = keys_start + keys_bytes
    if antimatter_count > count or bits_start + ((count + 7) // 8 if antimatter_count else 0) != len(page):
        raise CorruptError(f"page 0 has {len(page)} bytes, which do not match the counts and sizes in its header")
    data = memoryview(page)
    offsets = np.frombuffer(data[_HEADER.size : codes_start], "<u4").tolist()
    used = [offset for offset in offsets if offset]
    if not (pages - 1) * PAGE_BYTES < leaf_bytes <= pages * PAGE_BYTES:
        raise CorruptError(f"page 0 declares a leaf of {leaf_bytes} bytes, which does not end on page {pages - 1}")
    if len(set(used)) != len(used):
        raise CorruptError("two columns of a leaf begin at the same byte")
    if used and not PAGE_BYTES <= min(used) <= max(used) < leaf_bytes:
        raise CorruptError(f"a column begins on page 0, or after the {leaf_bytes} bytes of its leaf")
    return PageZero(
        decode_keys(kind, count, data[keys_start:bits_start]),
        antimatter_of(count, antimatter_count, data[bits_start:]),
        offsets,
        np.frombuffer(data[codes_start:keys_start], "<u8").reshape(columns, 2),
        leaf_bytes,
        len(page),
    )
