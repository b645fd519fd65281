"""The chunk of a column: its header, its levels and values, and the encoding of each kind of value.

    u32     bytes of the whole chunk, including these; little endian
    zigzag  largest level of the leaf
    zigzag  bytes of the levels
    zigzag  number of the levels
    bytes   levels, RLE and bit-packed
    varint  bytes of the values, 0 if there are none
    bytes   values

`decode_column` checks every field. Hostile bytes raise CorruptError and never take more memory than the limits below.
"""

from __future__ import annotations

import struct

import numpy as np

from libraries.document_store import kernels
from libraries.document_store.encodings import decimals, delta, hybrid, native, strings
from libraries.document_store.encodings.bits import ByteReader, varint, zigzag
from libraries.document_store.errors import CorruptError, FullError
from libraries.document_store.schema import Leaf
from libraries.document_store.shredding.columns import (
    KEY,
    CodedColumn,
    Column,
    Texts,
    Values,
    dtype_of,
    is_text,
    values_of,
)
from libraries.document_store.values import ValueKind

MOST_TOKENS = 1 << 27
"""Maximum levels of one chunk."""
MOST_TEXT_BYTES = 1 << 29
"""Maximum decoded bytes of the texts of one chunk."""

_TOTAL = struct.Struct("<I")
_INTEGER = np.dtype("<i8")


def encode_column(column: Column, *, use_native: bool | None = None) -> bytes:
    """Encode a column as a chunk. Raises FullError if the column exceeds the limits of this module."""
    if len(column.levels) > MOST_TOKENS:
        raise FullError(
            f"a column has {len(column.levels)} levels, at most {MOST_TOKENS} are allowed; write smaller leaves"
        )
    if isinstance(column.values, Texts) and len(column.values.data) > MOST_TEXT_BYTES:
        raise FullError(f"a column has more than {MOST_TEXT_BYTES} bytes of text; write smaller leaves")
    if kernels.NATIVE if use_native is None else use_native:
        return native.encode(column)
    levels = hybrid.encode(column.levels, column.leaf.level_bits)
    values = _encoded(column) if len(column.values) else b""
    head = zigzag(column.leaf.max_level) + zigzag(len(levels)) + zigzag(len(column.levels))
    body = b"".join([head, levels, varint(len(values)), values])
    return _TOTAL.pack(_TOTAL.size + len(body)) + body


def decode_column(leaf: Leaf, data: bytes | memoryview, *, use_native: bool | None = None) -> Column:
    """Decode the column of a leaf from the chunk at the start of `data`. Bytes after the chunk are ignored.

    Raises CorruptError for bytes that `encode_column` never writes. Does not check that texts are UTF-8.
    """
    if kernels.NATIVE if use_native is None else use_native:
        return native.decode(leaf, data, MOST_TOKENS, MOST_TEXT_BYTES)
    (total,) = _TOTAL.unpack(ByteReader(data).take(_TOTAL.size))
    reader = ByteReader(memoryview(data)[:total])
    if reader.left != total:
        raise CorruptError(f"a column's chunk declares {total} bytes, but has only {reader.left}")
    reader.take(_TOTAL.size)
    max_level, level_bytes, count = reader.zigzag(), reader.zigzag(), reader.zigzag()
    if max_level != leaf.max_level or not 0 <= count <= MOST_TOKENS:
        raise CorruptError(
            f"a column's chunk has {count} levels, the highest is {max_level}; expected for {leaf.path}: "
            f"at most {MOST_TOKENS} levels, the highest is {leaf.max_level}"
        )
    levels = hybrid.decode(reader.take(level_bytes), leaf.level_bits, count)
    column = Column(leaf, levels, values_of(leaf.kind, []))
    wanted = int(np.count_nonzero(column.present))
    values = ByteReader(reader.take(reader.varint()))
    if reader.left:
        raise CorruptError(f"a column's chunk has {reader.left} bytes after its values")
    if bool(wanted) != bool(values.left):
        raise CorruptError(f"a column's chunk has {values.left} bytes for {wanted} values")
    if not wanted:
        return column
    decoded = _decoded(column, values, wanted)
    if values.left or len(decoded) != wanted:
        raise CorruptError(
            f"a column's chunk has {len(decoded)} values, followed by {values.left} bytes; "
            f"expected {wanted} values (one for each level that requires a value), followed by 0 bytes"
        )
    return Column(leaf, levels, decoded)


def decode_coded(leaf: Leaf, data: bytes | memoryview) -> Column | CodedColumn:
    """Decode like `decode_column`, but return texts with few distinct values as codes if the C kernels are built."""
    if kernels.NATIVE:
        return native.decode_coded(leaf, data, MOST_TOKENS, MOST_TEXT_BYTES)
    return decode_column(leaf, data)


def _is_first(column: Column) -> np.ndarray:
    """Return for each value of a column within arrays whether the value is the first of its innermost array (bool)."""
    arrays = np.cumsum(column.masked < column.leaf.array_levels[-1])[column.present]
    return np.concatenate([np.ones(1, np.bool_), arrays[1:] != arrays[:-1]])


def _encoded(column: Column) -> bytes:
    leaf, values = column.leaf, column.values
    if isinstance(values, Texts):
        return strings.encode_plain(values) if leaf.number == KEY else strings.encode_delta(values)
    if leaf.number == KEY:
        return values.astype(_INTEGER).tobytes()
    if leaf.kind is ValueKind.BOOLEAN:
        return hybrid.encode(values.view(np.uint8), 1)
    if leaf.kind is ValueKind.INTEGER and leaf.array_levels:
        return delta.encode_in_arrays(values, _is_first(column))
    return delta.encode(values) if leaf.kind is ValueKind.INTEGER else decimals.encode(values)


def _decoded(column: Column, reader: ByteReader, count: int) -> Values:
    """Decode the values of a column whose levels are known."""
    leaf = column.leaf
    if is_text(leaf.kind):
        if leaf.number == KEY:
            return strings.decode_plain(reader, count)
        return strings.decode_delta(reader, count, MOST_TEXT_BYTES)
    if leaf.kind is ValueKind.BOOLEAN:
        return hybrid.decode(reader.take(reader.left), 1, count).view(np.bool_)
    if leaf.kind is ValueKind.INTEGER and leaf.number != KEY:
        return delta.decode_in_arrays(reader, _is_first(column)) if leaf.array_levels else delta.decode(reader, count)
    if leaf.kind is ValueKind.DOUBLE:
        return decimals.decode(reader, count)
    return np.frombuffer(reader.take(count * _INTEGER.itemsize), _INTEGER).astype(dtype_of(leaf.kind))
