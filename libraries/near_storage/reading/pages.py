"""Read the page headers of a column chunk: number of values, bytes and encoding of each page.

Together with the lengths of dictionary values, the headers give an upper bound of the decoded size before the chunk is
decoded.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import pyarrow as pa

from libraries.near_storage.errors import DamagedError, FooterError
from libraries.near_storage.parquet.thrift import I32, Struct, read_struct_at

DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = range(4)
_PREFIXED = 7
"""DELTA_BYTE_ARRAY, in which a value may share a prefix with the previous value."""
_OF_DICTIONARY = (2, 8)
"""PLAIN_DICTIONARY and RLE_DICTIONARY, whose values are indices into the chunk's dictionary."""

_HEADER = Struct(
    "PageHeader",
    {
        **{1: I32, 2: I32, 3: I32},
        5: Struct("DataPageHeader", {1: I32, 2: I32}, required=frozenset({1, 2})),
        7: Struct("DictionaryPageHeader", {1: I32}, required=frozenset({1})),
        8: Struct("DataPageHeaderV2", {1: I32, 4: I32}, required=frozenset({1, 4})),
    },
    required=frozenset({1, 2, 3}),
)


class Page(NamedTuple):
    """A page. `start` is the position of the first byte after the page's header, `plain_bytes` the page's size before
    compression."""

    kind: int
    start: int
    stored_bytes: int
    plain_bytes: int
    values: int
    encoding: int

    @property
    def of_dictionary(self) -> bool:
        """Whether the page's values are indices into the dictionary."""
        return self.encoding in _OF_DICTIONARY

    @property
    def prefixed(self) -> bool:
        """Whether a value may share a prefix with the previous value. A shared prefix is stored only once."""
        return self.encoding == _PREFIXED


def read(chunk: memoryview) -> list[Page]:
    """Return the pages of a complete chunk in order. Raises DamagedError for invalid headers."""
    pages: list[Page] = []
    position = 0
    while position < len(chunk):
        try:
            found, start = read_struct_at(chunk, position, _HEADER)
        except FooterError as error:
            raise DamagedError(f"the header of page {len(pages)} of a chunk is invalid ({error})") from error
        kind, plain_bytes, stored_bytes = found[1], found[2], found[3]
        of_values = found.get({DATA_PAGE: 5, DICTIONARY_PAGE: 7, DATA_PAGE_V2: 8}.get(kind, 0), {})
        values = of_values.get(1, 0)
        encoding = of_values.get(4 if kind == DATA_PAGE_V2 else 2, 0)
        if min(plain_bytes, stored_bytes, values) < 0:
            raise DamagedError(
                f"page {len(pages)} of a chunk declares {values} values in {stored_bytes} bytes ({plain_bytes} "
                "uncompressed); no number may be negative"
            )
        if start + stored_bytes > len(chunk):
            raise DamagedError(
                f"page {len(pages)} of a chunk declares {stored_bytes} bytes from byte {start} on, but the chunk has "
                f"{len(chunk)} bytes"
            )
        pages.append(Page(kind, start, stored_bytes, plain_bytes, values, encoding))
        position = start + stored_bytes
    return pages


def longest(chunk: memoryview, page: Page, codec: str) -> int:
    """Return an upper bound for the bytes of the longest value in a text or binary dictionary. If the dictionary cannot
    be read, e.g. because its codec is unsupported, return the size of the whole page."""
    stored = chunk[page.start : page.start + page.stored_bytes]
    values: memoryview | pa.Buffer = stored
    most = position = 0
    try:
        if codec != "UNCOMPRESSED":
            values = pa.Codec(_CODECS[codec]).decompress(stored, page.plain_bytes)
        length_at = struct.Struct("<I").unpack_from
        for _ in range(page.values):
            (length,) = length_at(values, position)
            position += 4 + length
            if length > most:
                most = length
    except (pa.ArrowException, OSError, KeyError, struct.error):
        return page.plain_bytes
    return min(most, page.plain_bytes)


_CODECS = {name.upper(): name for name in ("snappy", "gzip", "brotli", "zstd", "lz4_raw")} | {"LZ4": "lz4_raw"}
