"""Read fields of Arrow IPC messages for which pyarrow has no call, such as the codec and the positions of buffers.

Messages and the footers of files are flatbuffers, which Arrow's Message.fbs and File.fbs define. Flatbuffers omit
fields that have their default value. Callers find the messages in their files, and pass the bytes to this module.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_CODECS = {0: "lz4", 1: "zstd"}
"""Values of the field BodyCompression.codec, LZ4_FRAME and ZSTD, and this project's names of these codecs."""

_RECORD_BATCH = 3
"""The value of the field Message.header_type in messages with a record batch."""


@dataclass(frozen=True)
class Message:
    """The metadata of an Arrow IPC message, which is a flatbuffer.

    In a file, 8 bytes with the length of the metadata precede it. They are not part of `metadata`."""

    metadata: bytes

    @property
    def body_bytes(self) -> int:
        """Number of bytes of the message's body, which follows the metadata (Message.bodyLength is field 3)."""
        place = _field(self.metadata, _root(self.metadata), 3)
        return 0 if place is None else int(struct.unpack_from("<q", self.metadata, place)[0])

    @property
    def is_record_batch(self) -> bool:
        """Whether the message has a record batch, that is rows (Message.header_type is field 1)."""
        place = _field(self.metadata, _root(self.metadata), 1)
        return place is not None and self.metadata[place] == _RECORD_BATCH

    @property
    def rows(self) -> int:
        """Number of rows of the record batch (RecordBatch.length is field 0)."""
        place = _field(self.metadata, self._batch(), 0)
        return 0 if place is None else int(struct.unpack_from("<q", self.metadata, place)[0])

    def codec(self) -> str:
        """Return the codec of the record batch (RecordBatch.compression is field 3, BodyCompression.codec is field 0),
        or 'none'."""
        compression = _field(self.metadata, self._batch(), 3)
        if compression is None:
            return "none"
        codec = _field(self.metadata, _followed(self.metadata, compression), 0)
        return _CODECS[0 if codec is None else self.metadata[codec]]

    def buffers(self, schema: pa.Schema) -> list[list[tuple[int, ...]]]:
        """Return for each column of the record batch a list of its buffers, including buffers of child columns.

        A buffer is a tuple of its offset in the message's body and its length."""
        # RecordBatch.buffers is field 2, with offset and length of every buffer. RecordBatch.variadicBufferCounts is
        # field 4, with the number of additional buffers of every column of views.
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
        """Return the offset of the record batch in the metadata (Message.header is field 2)."""
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
    """Return the offsets of a file's record batches, which the file's footer lists.

    The list is Footer.recordBatches (field 3). It has three numbers for each batch: the offset, the length of the
    metadata with padding, and the length of the body.
    """
    blocks = _field(footer, _root(footer), 3)
    if blocks is None:
        return []
    start = _followed(footer, blocks)
    (length,) = struct.unpack_from("<I", footer, start)
    return [offset for offset, _, _ in struct.iter_unpack("<qqq", footer[start + 4 : start + 4 + 24 * length])]


def _buffers_of(kind: pa.DataType) -> tuple[int, int]:
    """Return two numbers for a column of this type and its child columns: the number of buffers in a message, and the
    number of these columns with the type string_view or binary_view.

    Columns of views have additional buffers, which are not included in the first number. Each message states the number
    of these additional buffers.
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
    """Return the offset of a field of a flatbuffer table; None if the field is omitted and so has its default value."""
    layout = table - struct.unpack_from("<i", data, table)[0]
    (layout_bytes,) = struct.unpack_from("<H", data, layout)
    entry = 4 + 2 * number
    if entry >= layout_bytes:
        return None
    (offset,) = struct.unpack_from("<H", data, layout + entry)
    return table + offset if offset else None
