"""Components of secondary indexes: sorted entries in compressed blocks with checksums, and a footer with the blocks'
positions.

A removed entry is kept as a marker, which hides the entry in older components, until a merge includes the oldest
component.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

import msgspec
import xxhash
import zstandard

from libraries.document_store.errors import CorruptError
from libraries.document_store.files import FileReader, FileWriter

ENTRIES_IN_BLOCK = 1024
_LEVEL = 1
_MAGIC = b"DSIX"
_TAIL_BYTES = 20
_MOST_BLOCK_BYTES = 64 << 20

Decoded = TypeVar("Decoded")
Entry = tuple[bytes, bool]
"""An entry, and True if it is present or False if it was removed."""


class _Block(msgspec.Struct, array_like=True, frozen=True):
    """The position of a block, its stored length, its checksum, and its first entry."""

    offset_bytes: int
    length_bytes: int
    checksum: int
    first: bytes


class _Footer(msgspec.Struct, array_like=True, frozen=True):
    count: int
    blocks: list[_Block]


class _Entries(msgspec.Struct, array_like=True, frozen=True):
    entries: list[bytes]
    there: list[bool]


_FOOTERS, _BLOCKS = msgspec.msgpack.Decoder(_Footer), msgspec.msgpack.Decoder(_Entries)


def write_index(writer: FileWriter, entries: Iterable[Entry]) -> int:
    """Write ascending entries as one component; return their number. Holds one block in memory."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL)
    blocks: list[_Block] = []
    count = 0
    rest = iter(entries)
    while some := list(islice(rest, ENTRIES_IN_BLOCK)):
        plain = msgspec.msgpack.encode(_Entries([entry for entry, _ in some], [there for _, there in some]))
        data = compressor.compress(plain)
        blocks.append(_Block(writer.position_bytes, len(data), xxhash.xxh3_64_intdigest(data), some[0][0]))
        writer.write(data)
        count += len(some)
    footer = compressor.compress(msgspec.msgpack.encode(_Footer(count, blocks)))
    writer.write(footer)
    tail = len(footer).to_bytes(8, "little") + xxhash.xxh3_64_intdigest(footer).to_bytes(8, "little")
    writer.write(tail + _MAGIC)
    return count


class IndexFile:
    """An open component of a secondary index. Thread-safe."""

    def __init__(self, reader: FileReader) -> None:
        """Read the footer. Raises CorruptError."""
        self._reader = reader
        self.size_bytes = reader.size_bytes
        tail = reader.read(_TAIL_BYTES, max(0, reader.size_bytes - _TAIL_BYTES))
        length, checksum = int.from_bytes(tail[:8], "little"), int.from_bytes(tail[8:16], "little")
        if tail[16:] != _MAGIC:
            raise CorruptError(f"{reader.name}: not a component of an index")
        data = self._checked(length, reader.size_bytes - _TAIL_BYTES - length, checksum)
        footer = self._decoded(_FOOTERS, data)
        self.count, self._blocks = footer.count, footer.blocks
        self._firsts = [block.first for block in footer.blocks]

    def between(self, first: bytes, last: bytes) -> Iterator[Entry]:
        """Yield the entries from `first` to `last`, inclusive, in order. Reads only blocks that may hold such
        entries."""
        start = max(0, bisect_right(self._firsts, first) - 1)
        for block in self._blocks[start : bisect_right(self._firsts, last)]:
            some = self._decoded(_BLOCKS, self._checked(block.length_bytes, block.offset_bytes, block.checksum))
            yield from (
                (entry, there) for entry, there in zip(some.entries, some.there, strict=False) if first <= entry <= last
            )

    def at_least(self, first: bytes, last: bytes) -> int:
        """Return a lower bound of the number of entries that `between` yields, including removed entries. Reads
        nothing."""
        whole = bisect_right(self._firsts, last) - bisect_left(self._firsts, first) - 1
        return max(0, whole) * ENTRIES_IN_BLOCK

    def all(self) -> Iterator[Entry]:
        """Yield every entry in order, holding one block in memory."""
        return self.between(b"", b"\xff")

    def _checked(self, length_bytes: int, offset_bytes: int, checksum: int) -> bytes:
        data = self._reader.read(length_bytes, offset_bytes)
        if xxhash.xxh3_64_intdigest(data) != checksum:
            raise CorruptError(
                f"{self._reader.name}: the bytes at {offset_bytes} were changed after they were stored. "
                "Restore the file from a copy."
            )
        return data

    def _decoded(self, decoder: msgspec.msgpack.Decoder[Decoded], data: bytes) -> Decoded:
        try:
            if not 0 <= zstandard.frame_content_size(data) <= _MOST_BLOCK_BYTES:
                raise ValueError(f"a block declares no size, or more than {_MOST_BLOCK_BYTES} bytes")
            return decoder.decode(zstandard.ZstdDecompressor().decompress(data))
        except (zstandard.ZstdError, msgspec.MsgspecError, ValueError) as error:
            raise CorruptError(f"{self._reader.name}: {error}") from None


def newest(sources: Sequence[Iterable[Entry]], drop_removed: bool) -> Iterator[Entry]:
    """Merge sorted sources, given newest first. If an entry is in several sources, the newest of these sources decides
    whether the entry is present. With `drop_removed`, omit removed entries."""
    tagged = (_tag(source, age) for age, source in enumerate(sources))
    before: bytes | None = None
    for entry, _, there in heapq.merge(*tagged):
        if entry != before:
            before = entry
            if there or not drop_removed:
                yield entry, there


def _tag(source: Iterable[Entry], age: int) -> Iterator[tuple[bytes, int, bool]]:
    return ((entry, age, there) for entry, there in source)
