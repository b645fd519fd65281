"""Read the page headers of a column chunk: number of values, bytes and encoding of each page.

Together with the lengths of dictionary values, the headers give an upper bound of the decoded size before the chunk is
decoded.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import pyarrow as pa

from libraries.near_storage.errors import DamagedError, FooterError
from libraries.near_storage.parquet.thrift import BINARY, FALSE, I32, I64, STRUCT, TRUE, Struct, read_struct_at

DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = range(4)
_PREFIXED = 7
"""DELTA_BYTE_ARRAY, in which a value may share a prefix with the previous value."""
_OF_DICTIONARY = (2, 8)
"""PLAIN_DICTIONARY and RLE_DICTIONARY, whose values are indices into the chunk's dictionary."""

_FIELD_OF_KIND = {DATA_PAGE: 5, DICTIONARY_PAGE: 7, DATA_PAGE_V2: 8}
"""Id of the field with a page's number of values, by the kind of page."""
_NEXT_I32 = 1 << 4 | I32
"""First byte of a field that is an integer of 32 bits and whose id is the previous id plus 1."""

_MOST_USUAL_IDS = 1_000
"""Limit of the sum of differences between field ids in a usual page header, far below the 16 bits of an id."""
_MOST_USUAL_BYTES = 5
"""Limit of the bytes of a skipped integer in a usual page header."""

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


_ENTRY_BYTES = 16
"""Bytes of a decoded dictionary value in addition to its page. For a text, pyarrow keeps the position and length.
Numbers take at most 12 bytes."""


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

    @property
    def decoded_bytes(self) -> int:
        """Bytes that pyarrow allocates for the page: the decompressed page, and the values of a dictionary."""
        return self.plain_bytes + _ENTRY_BYTES * self.values * (self.kind == DICTIONARY_PAGE)


class PageSizes(NamedTuple):
    """Sums over the pages of a chunk: `Page.decoded_bytes`, and the values of data pages."""

    decoded_bytes: int
    values: int


def sizes(chunk: memoryview) -> PageSizes:
    """Return the sizes that the page headers of a complete chunk declare. Raises DamagedError for invalid headers."""
    try:
        found = _sizes_of_usual_headers(chunk)
    except IndexError:
        found = None
    if found is not None:
        return found
    pages = read(chunk)
    return PageSizes(
        sum(page.decoded_bytes for page in pages), sum(page.values for page in pages if page.kind != DICTIONARY_PAGE)
    )


def _sizes_of_usual_headers(data: memoryview) -> PageSizes | None:
    """Return what `sizes` returns, in a third of the time that `read` takes. Return None for invalid headers, and for
    headers that writers do not usually write."""
    decoded_bytes = all_values = position = 0
    while position < len(data):
        kind, negative = divmod(data[position + 1], 2)
        if negative or kind not in _FIELD_OF_KIND or not data[position] == data[position + 2] == _NEXT_I32:
            return None
        plain_bytes, position = _varint(data, position + 3)
        if data[position] != _NEXT_I32:
            return None
        stored_bytes, position = _varint(data, position + 1)
        number, checksum = 3, 0
        if data[position] == _NEXT_I32:
            checksum, position = _varint(data, position + 1)
            number = 4
        if data[position] != _FIELD_OF_KIND[kind] - number << 4 | STRUCT or data[position + 1] != _NEXT_I32:
            return None
        values, position = _varint(data, position + 2)
        if (plain_bytes | stored_bytes | values) & 1 or (plain_bytes | stored_bytes | values | checksum) >> 32:
            return None
        # Skip the remaining fields. Each of them has a higher id than the previous one, so none replaces a size.
        depth, ids = 2, 0
        while depth:
            header = data[position]
            wire = header & 15
            ids += header >> 4
            position += 1
            if not header:
                depth -= 1
            elif header < 16 or wire < TRUE or ids > _MOST_USUAL_IDS or (wire == BINARY and data[position] > 127):
                return None
            elif wire == BINARY:
                position += 1 + data[position]
            elif wire in (I32, I64):
                begin = position
                while data[position] > 127:
                    position += 1
                position += 1
                if position - begin > _MOST_USUAL_BYTES:
                    return None
            elif wire == STRUCT:
                depth += 1
            elif wire > FALSE:
                return None
        position += stored_bytes >> 1
        if kind == DICTIONARY_PAGE:
            decoded_bytes += _ENTRY_BYTES * (values >> 1)
        else:
            all_values += values >> 1
        decoded_bytes += plain_bytes >> 1
    return PageSizes(decoded_bytes, all_values) if position == len(data) else None


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    """Return the number at `position`, still in zigzag form (twice the number if it is not negative), and its end."""
    value = shift = 0
    while (byte := data[position]) > 127:
        value |= (byte & 127) << shift
        shift += 7
        position += 1
        if shift > 28:
            break
    return value | byte << shift, position + 1


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
        of_values = found.get(_FIELD_OF_KIND.get(kind, 0), {})
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
