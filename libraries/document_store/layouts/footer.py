"""The footer at the end of a component's file: positions of pages and leaves, the inferred schema, and counts.

After the pages come the footer, as MessagePack, and 24 bytes: the footer's length, the footer's checksum (xxh3), and
the magic number of the format. A footer is accepted only if its parts are consistent with each other and with the
file's length.
"""

from __future__ import annotations

import struct
from itertools import chain
from typing import Any

import msgspec
import xxhash

from libraries.document_store.errors import CorruptError
from libraries.document_store.layouts.layout import (
    PAGE_BYTES,
    ComponentInfo,
    CompressionName,
    FileReader,
    FileWriter,
    Key,
    KeyKind,
    LayoutName,
)
from libraries.document_store.layouts.pages import FRAME_BYTES
from libraries.document_store.schema import Schema

_MARK = b"DOCCOMP1"
_TAIL = struct.Struct("<QQ8s")


class LeafEntry(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The metadata of one leaf, which a reader knows without reading the leaf."""

    pages: int
    count: int
    """Number of entries, including deletion markers (anti-matter)."""
    antimatter_count: int
    columns: int
    """Number of schema leaves (columns) when this leaf was written. These are the first leaves of the component's
    schema."""
    row_bytes: int
    """Approximate size of the leaf's rows as MessagePack. A merge uses this size to limit the size of leaves."""
    min_key: Key
    max_key: Key


class Footer(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole footer. Pages and leaves are in the order of the file."""

    layout: LayoutName
    compression: CompressionName
    key_kind: KeyKind
    schema: bytes
    key_filter: bytes
    encoded_bytes: int
    """Bytes of all pages before compression."""
    page_bytes: list[int]
    """Stored bytes of each page."""
    leaves: list[LeafEntry]


def info_of(footer: Footer, schema: Schema, size_bytes: int) -> ComponentInfo:
    """Return counts, keys and sizes of a component from its footer, the footer's schema, and the size of the file."""
    leaves = footer.leaves
    return ComponentInfo(
        layout=footer.layout,
        key_kind=footer.key_kind,
        count=sum(leaf.count for leaf in leaves),
        antimatter_count=sum(leaf.antimatter_count for leaf in leaves),
        min_key=leaves[0].min_key if leaves else None,
        max_key=leaves[-1].max_key if leaves else None,
        leaf_count=len(leaves),
        encoded_bytes=footer.encoded_bytes,
        size_bytes=size_bytes,
        schema=schema,
    )


def write_footer(writer: FileWriter, footer: Footer) -> int:
    """Append the footer to the file; return its size in bytes."""
    data = msgspec.msgpack.encode(footer)
    writer.write(data + _TAIL.pack(len(data), xxhash.xxh3_64_intdigest(data), _MARK))
    return len(data) + _TAIL.size


def read_footer(reader: FileReader) -> Footer:
    """Read the footer of a complete file. Raises CorruptError for anything that `write_footer` never wrote."""
    if reader.size_bytes < _TAIL.size:
        raise CorruptError(f"{reader.name}: {reader.size_bytes} bytes are too few for a component")
    end = reader.size_bytes - _TAIL.size
    length, checksum, mark = _TAIL.unpack(reader.read(_TAIL.size, end))
    if mark != _MARK:
        raise CorruptError(f"{reader.name}: ends in {mark!r}, but a component ends in {_MARK!r}")
    if length > end:
        raise CorruptError(
            f"{reader.name}: declares a footer of {length} bytes, but only {end} bytes are before its tail"
        )
    data = reader.read(length, end - length)
    if xxhash.xxh3_64_intdigest(data) != checksum:
        raise CorruptError(f"{reader.name}: the footer is damaged; restore the file from a copy")
    try:
        footer = msgspec.msgpack.decode(data, type=Footer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptError(f"{reader.name}: the footer cannot be read: {error}") from None
    if problem := _problem(footer, end - length):
        raise CorruptError(f"{reader.name}: {problem}")
    return footer


def _problem(footer: Footer, pages_bytes: int) -> str | None:
    longest = PAGE_BYTES + FRAME_BYTES
    if not all(FRAME_BYTES < size <= longest for size in footer.page_bytes) or sum(footer.page_bytes) != pages_bytes:
        return f"the {len(footer.page_bytes)} pages do not add up to {pages_bytes} bytes"
    if not 0 <= footer.encoded_bytes <= len(footer.page_bytes) * PAGE_BYTES:
        return f"{footer.encoded_bytes} encoded bytes do not fit in {len(footer.page_bytes)} pages"
    leaves = footer.leaves
    if not all(leaf.pages > 0 for leaf in leaves) or sum(leaf.pages for leaf in leaves) != len(footer.page_bytes):
        return f"the pages of the {len(leaves)} leaves do not add up to {len(footer.page_bytes)}"
    if not all(0 <= leaf.antimatter_count <= leaf.count > 0 <= leaf.row_bytes for leaf in leaves):
        return "a leaf has more anti-matter than entries, or no entries"
    if not all(leaf.columns > 0 for leaf in leaves):
        return "a leaf has no column"
    kind = int if footer.key_kind == "integer" else str
    keys: list[Any] = list(chain.from_iterable((leaf.min_key, leaf.max_key) for leaf in leaves))
    if not all(type(key) is kind for key in keys):
        return f"the keys of the leaves are not of the kind {footer.key_kind}"
    lows, highs = keys[::2], keys[1::2]
    if any(low > high for low, high in zip(lows, highs, strict=True)):
        return "the last key of a leaf is below its first key"
    if any(high >= low for high, low in zip(highs, lows[1:], strict=False)):
        return "the key ranges of two leaves overlap"
    return None
