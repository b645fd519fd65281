"""Files of pages. A page has at most 128 KiB before compression, and a checksum. A directory of lengths locates pages.
A page is stored as

    8 bytes  xxh3 of the rest of the page, seeded with the page's number, so that a misplaced page is refused too
    4 bytes  length before compression; the highest bit is set if the page is stored uncompressed
             the page, compressed unless that would make it longer

Numbers are little endian. The footer of the file holds the directory.
"""

from __future__ import annotations

import copy
import struct
import threading
from collections import OrderedDict
from itertools import pairwise
from typing import Any

import numpy as np
import xxhash

from libraries.document_store.errors import CorruptError
from libraries.document_store.layouts.compression import compress, decompress
from libraries.document_store.layouts.layout import PAGE_BYTES, CompressionName, FileReader, FileWriter, ReadCounters

_CHECKSUM = struct.Struct("<Q")
_LENGTH = struct.Struct("<I")
_STORED_AS_IT_IS = 1 << 31
FRAME_BYTES = _CHECKSUM.size + _LENGTH.size


class PageWriter:
    """Appends pages to a new file.

    `stored_bytes` is the directory so far: the stored bytes of each page. `raw_bytes` is the size of all pages before
    compression.
    """

    def __init__(self, writer: FileWriter, compression: CompressionName) -> None:
        self._writer = writer
        self._compression = compression
        self.stored_bytes: list[int] = []
        self.raw_bytes = 0

    def append(self, page: bytes | bytearray) -> int:
        """Write one page of at most PAGE_BYTES; return its number."""
        if not 0 < len(page) <= PAGE_BYTES:
            raise ValueError(f"a page must have 1 to {PAGE_BYTES} bytes (got {len(page)})")
        compressed = compress(self._compression, page)
        if len(compressed) < len(page):
            return self.copy(_LENGTH.pack(len(page)) + compressed)
        return self.copy(_LENGTH.pack(len(page) | _STORED_AS_IT_IS) + page)

    def copy(self, body: bytes | memoryview) -> int:
        """Write one page as `PageReader.stored` returned it from a file with the same compression. Return the page's
        number."""
        number = len(self.stored_bytes)
        self._writer.write(_CHECKSUM.pack(xxhash.xxh3_64_intdigest(body, seed=number)) + body)
        self.stored_bytes.append(_CHECKSUM.size + len(body))
        (length_bytes,) = _LENGTH.unpack_from(body)
        self.raw_bytes += length_bytes & ~_STORED_AS_IT_IS
        return number


ENTRY_BYTES = 1_000
"""Approximate overhead of a cached object: its arrays, its key, its slot."""
CacheKey = tuple[str | int, ...]
"""The unique name of a file, and numbers that identify a part of the file."""


class ReadCache:
    """A cache of limited size for parts of all files of a store, which the paper calls the buffer cache (section 6).

    The cache holds decompressed pages, and objects decoded from pages that are always requested together. Cached
    objects must not be modified. The least recently used objects are evicted first. Thread-safe.
    """

    def __init__(self, most_bytes: int) -> None:
        """Create an empty cache. With `most_bytes` 0, nothing is cached."""
        self._most_bytes, self._bytes = most_bytes, 0
        self._kept: OrderedDict[CacheKey, tuple[Any, int]] = OrderedDict()
        self._changing = threading.Lock()

    @property
    def size_bytes(self) -> int:
        """Total size of the cached objects."""
        return self._bytes

    def get(self, key: CacheKey) -> Any:
        """Return the cached object, or None."""
        with self._changing:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: CacheKey, thing: Any, size_bytes: int, *, if_room: bool = False) -> None:
        """Cache an object of this size, unless it exceeds the whole limit. With `if_room`, evict no other object."""
        size_bytes += ENTRY_BYTES
        if size_bytes > self._most_bytes:
            return
        with self._changing:
            if if_room and self._bytes + size_bytes > self._most_bytes:
                return
            _, before = self._kept.pop(key, (None, 0))
            self._kept[key] = thing, size_bytes
            self._bytes += size_bytes - before
            while self._bytes > self._most_bytes:
                _, (_, gone) = self._kept.popitem(last=False)
                self._bytes -= gone


class PageReader:
    """Reads pages of an immutable file. Thread-safe."""

    def __init__(
        self, reader: FileReader, compression: CompressionName, stored_bytes: np.ndarray, cache: ReadCache
    ) -> None:
        """`cache` holds the pages that `read` keeps. A key of the cache is the file's name and the page's number."""
        self._reader, self.cache = reader, cache
        self._compression = compression
        self._starts = np.concatenate(([0], np.cumsum(stored_bytes, dtype=np.int64))).tolist()
        self._lock = threading.Lock()
        self.counters = ReadCounters()

    def without_cache(self) -> PageReader:
        """Return a reader of the same pages that caches nothing. Both readers share their counters."""
        other = copy.copy(self)
        other.cache = ReadCache(0)
        return other

    @property
    def name(self) -> str:
        """The name of the file, as error messages show it."""
        return self._reader.name

    @property
    def count(self) -> int:
        """Number of pages in the file."""
        return len(self._starts) - 1

    def read(self, first: int, count: int = 1, *, keep: bool = True, if_room: bool = False) -> list[bytes]:
        """Return consecutive pages. Pages that are not cached are read in one call.

        With `keep`, these pages are then cached. With `if_room`, they are cached only if no other object must be
        evicted. Raises CorruptError, which names the file and the page.
        """
        self._check_pages(first, count)
        pages = [self.cache.get((self.name, number)) for number in range(first, first + count)]
        missing = [place for place, page in enumerate(pages) if page is None]
        if missing:
            low, high = missing[0], missing[-1] + 1
            for place, body in enumerate(self.stored(first + low, high - low), low):
                page = pages[place] = self._page(first + place, body)
                if keep:
                    self.cache.put((self.name, first + place), page, len(page), if_room=if_room)
        return [page for page in pages if page is not None]

    def stored(self, first: int, count: int = 1) -> list[memoryview]:
        """Check the checksums of stored pages, and return the stored pages without these checksums. Raises
        CorruptError."""
        self._check_pages(first, count)
        start, end = self._starts[first], self._starts[first + count]
        read = memoryview(self._reader.read(end - start, start))
        with self._lock:
            self.counters.bytes_read += end - start
            self.counters.pages_read += count
        starts = [place - start for place in self._starts[first : first + count + 1]]
        return [self._checked(first + place, read[low:high]) for place, (low, high) in enumerate(pairwise(starts))]

    def _check_pages(self, first: int, count: int) -> None:
        if not 0 <= first < first + count <= self.count:
            raise CorruptError(
                f"{self.name}: {count} pages from page {first} on are needed, but page {self.count - 1} is the last"
            )

    def _checked(self, number: int, stored: memoryview) -> memoryview:
        if len(stored) <= FRAME_BYTES:
            raise CorruptError(f"{self.name}: page {number} has {len(stored)} bytes, too few for any page")
        (checksum,) = _CHECKSUM.unpack_from(stored)
        body = stored[_CHECKSUM.size :]
        found = xxhash.xxh3_64_intdigest(body, seed=number)
        if found != checksum:
            raise CorruptError(
                f"{self.name}: page {number} is damaged: its checksum is {found:016x}, expected {checksum:016x}; "
                "restore the file from a copy"
            )
        return body

    def _page(self, number: int, body: memoryview) -> bytes:
        (length_bytes,) = _LENGTH.unpack_from(body)
        as_it_is = bool(length_bytes & _STORED_AS_IT_IS)
        length_bytes &= ~_STORED_AS_IT_IS
        if not 0 < length_bytes <= PAGE_BYTES:
            raise CorruptError(
                f"{self.name}: page {number} declares {length_bytes} bytes, 1 to {PAGE_BYTES} are allowed"
            )
        try:
            return decompress("none" if as_it_is else self._compression, body[_LENGTH.size :], length_bytes)
        except CorruptError as error:
            raise CorruptError(f"{self.name}: page {number}: {error}") from None
