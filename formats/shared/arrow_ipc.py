"""Read the metadata of Arrow IPC messages from their flatbuffers (Message.fbs and File.fbs), which pyarrow cannot.

Flatbuffers omit fields that have their default value. The modules of the formats find the messages in their files.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_CODECS = {0: "lz4", 1: "zstd"}
"""BodyCompression.codec: LZ4_FRAME and ZSTD."""

_RECORD_BATCH = 3
"""Message.header_type."""


@dataclass(frozen=True)
class Message:
    """The metadata of a message, without the preceding 8 bytes, which hold their length."""

    metadata: bytes

    @property
    def body_bytes(self) -> int:
        """Bytes of the body, which follows the metadata (Message.bodyLength is field 3)."""
        place = _field(self.metadata, _root(self.metadata), 3)
        return 0 if place is None else int(struct.unpack_from("<q", self.metadata, place)[0])

    @property
    def is_record_batch(self) -> bool:
        """Whether the body holds rows (Message.header_type is field 1)."""
        place = _field(self.metadata, _root(self.metadata), 1)
        return place is not None and self.metadata[place] == _RECORD_BATCH

    @property
    def rows(self) -> int:
        """Rows of a record batch (RecordBatch.length is field 0)."""
        place = _field(self.metadata, self._batch(), 0)
        return 0 if place is None else int(struct.unpack_from("<q", self.metadata, place)[0])

    def codec(self) -> str:
        """The codec of a record batch (RecordBatch.compression is field 3, BodyCompression.codec is field 0)."""
        compression = _field(self.metadata, self._batch(), 3)
        if compression is None:
            return "none"
        codec = _field(self.metadata, _followed(self.metadata, compression), 0)
        return _CODECS[0 if codec is None else self.metadata[codec]]

    def buffers(self, schema: pa.Schema) -> list[list[tuple[int, ...]]]:
        """Return offset in the body and length of each buffer of each column of a record batch, including children."""
        # RecordBatch.buffers is field 2: offset and length of each; RecordBatch.variadicBufferCounts is field 4.
        buffers = list(self._vector(2, "<qq"))
        further = (count for (count,) in self._vector(4, "<q"))
        first, columns = 0, []
        for field in schema:
            own, views = _buffers_of(field.type)
            end = first + own + sum(next(further) for _ in range(views))
            columns.append(buffers[first:end])
            first = end
        return columns

    def _batch(self) -> int:
        """Offset of the record batch (Message.header is field 2)."""
        header = _field(self.metadata, _root(self.metadata), 2)
        assert header is not None  # pyarrow refuses messages without a header
        return _followed(self.metadata, header)

    def _vector(self, number: int, layout: str) -> Iterator[tuple[int, ...]]:
        place = _field(self.metadata, self._batch(), number)
        if place is not None:
            start = _followed(self.metadata, place)
            (length,) = struct.unpack_from("<I", self.metadata, start)
            stop = start + 4 + length * struct.calcsize(layout)
            yield from struct.iter_unpack(layout, self.metadata[start + 4 : stop])


def batches_of(footer: bytes) -> list[int]:
    """Return the offsets of a file's record batches, from its footer.

    Footer.recordBatches is field 3, a vector of blocks of an offset, the length of the metadata with padding, and the
    length of the body.
    """
    blocks = _field(footer, _root(footer), 3)
    if blocks is None:
        return []
    start = _followed(footer, blocks)
    (length,) = struct.unpack_from("<I", footer, start)
    return [offset for offset, _, _ in struct.iter_unpack("<qqq", footer[start + 4 : start + 4 + 24 * length])]


def _buffers_of(kind: pa.DataType) -> tuple[int, int]:
    """Return the number of buffers of a column in a message, including its children, and of columns of views in it.

    Columns of views have further buffers, whose number the message states.
    """
    import pyarrow.types as of

    is_view = of.is_string_view(kind) or of.is_binary_view(kind)
    if of.is_null(kind):
        own = 0
    elif of.is_struct(kind) or of.is_fixed_size_list(kind):
        own = 1
    elif of.is_string(kind) or of.is_large_string(kind) or of.is_binary(kind) or of.is_large_binary(kind):
        own = 3
    else:
        own = 2
    inside = [_buffers_of(kind.field(place).type) for place in range(kind.num_fields)]
    return own + sum(buffers for buffers, _ in inside), is_view + sum(views for _, views in inside)


def _root(data: bytes) -> int:
    return int(struct.unpack_from("<I", data)[0])


def _followed(data: bytes, place: int) -> int:
    """Return the offset of the table or vector to which the offset at `place` points."""
    return place + int(struct.unpack_from("<I", data, place)[0])


def _field(data: bytes, table: int, number: int) -> int | None:
    """Return the offset of a field of a flatbuffer table; None if it has its default."""
    layout = table - struct.unpack_from("<i", data, table)[0]
    (layout_bytes,) = struct.unpack_from("<H", data, layout)
    entry = 4 + 2 * number
    if entry >= layout_bytes:
        return None
    (offset,) = struct.unpack_from("<H", data, layout + entry)
    return table + offset if offset else None
