"""Pages that were read, checked and decompressed, kept in memory: the paper's buffer cache (section 6).

One serves all files of a store. It knows neither files nor what pages hold.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock


class PageCache:
    """At most so many bytes of pages; those asked for longest ago go first. For any thread."""

    def __init__(self, most_bytes: int) -> None:
        """Empty; 0 keeps nothing."""
        self._most_bytes, self._bytes = most_bytes, 0
        self._pages: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._changing = Lock()

    @property
    def size_bytes(self) -> int:
        """What the pages take."""
        return self._bytes

    def get(self, file: str, number: int) -> bytes | None:
        """A page of a file, by the file's name, which no other file of the store ever has; None: it is not kept."""
        with self._changing:
            page = self._pages.get((file, number))
            if page is not None:
                self._pages.move_to_end((file, number))
            return page

    def put(self, file: str, number: int, page: bytes) -> None:
        """Keep a page, unless it is larger than all that may be kept."""
        if len(page) > self._most_bytes:
            return
        with self._changing:
            before = self._pages.pop((file, number), b"")
            self._pages[file, number] = page
            self._bytes += len(page) - len(before)
            while self._bytes > self._most_bytes:
                _, gone = self._pages.popitem(last=False)
                self._bytes -= len(gone)
