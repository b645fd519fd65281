"""Encode rows without field names, in the vector-based format, which is compacted by the inferred schema.

The format follows 'An LSM-based Tuple Compaction Framework' (reference [22] of the paper, described in section 2.2). It
separates the structure of a record from its values, and replaces field names by their numbers in the schema. One row is

    4 varints    the sizes in bytes of the four vectors that follow
    tags         one byte per value, depth first; after OBJECT and ARRAY a varint with the number of their values
    names        a varint per field, depth first: 1 + the name's number, or 0 for a name without one
    fixed        integers in 1, 2, 4 or 8 bytes as their tag says, doubles in 8; little endian
    lengths      a varint per text, binary and name without a number
    variable     the bytes of these texts, binaries and names, to the row's end

This Python module is the specification, and is used if the C kernels are not built (`vector_rows.py`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from libraries.document_queries.values import MAX_DEPTH
from libraries.document_store.errors import CorruptError
from libraries.document_store.schema import Schema

OBJECT, ARRAY, NULL, FALSE, TRUE, INT8, INT16, INT32, INT64, DOUBLE, TEXT, BINARY = range(12)
MOST_NAMES = (1 << 21) - 2
"""Maximum number of names. A name's number takes at most 3 bytes, which limits a row to three times its size as
MessagePack plus 32 bytes."""

_INTEGERS = {
    INT8: struct.Struct("<b"),
    INT16: struct.Struct("<h"),
    INT32: struct.Struct("<i"),
    INT64: struct.Struct("<q"),
}
_DOUBLE = struct.Struct("<d")


def names_of(schema: Schema) -> tuple[str, ...]:
    """Return all distinct field names of a schema; the number of a name is its position. A later schema of the store
    begins with the same names, so that rows can be copied between components."""
    return tuple(dict.fromkeys(node.name for node in schema.nodes if node.name is not None))[:MOST_NAMES]


def encode(row: bytes, numbers: Mapping[str, int]) -> bytes:
    """Compact a MessagePack row. `numbers` maps field names to their numbers; other names are stored as text."""
    vectors = [bytearray() for _ in range(5)]
    _encode_value(msgspec.msgpack.decode(row), numbers, vectors)
    head = b"".join(map(_varint, map(len, vectors[:4])))
    return head + b"".join(vectors)


def decode(data: memoryview, names: Sequence[str]) -> bytes:
    """Decode compacted bytes to a MessagePack row. The number of a name is its position in `names`. Raises
    CorruptError."""
    row = _Row(data, names)
    try:
        if not row.is_object():
            raise CorruptError(f"a row of {len(data)} bytes is not a document")
        value = row.value(0)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise CorruptError(f"a row of {len(data)} bytes ends too early or is not valid UTF-8: {error}") from None
    if not row.is_used_up():
        raise CorruptError(f"a row of {len(data)} bytes has more bytes than its document needs")
    return msgspec.msgpack.encode(value)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _encode_value(value: Any, numbers: Mapping[str, int], vectors: list[bytearray]) -> None:
    tags, names, fixed, lengths, variable = vectors
    if isinstance(value, dict):
        tags += bytes((OBJECT,)) + _varint(len(value))
        for name, member in value.items():
            number = numbers.get(name)
            names += _varint(0 if number is None else number + 1)
            if number is None:
                text = name.encode()
                lengths += _varint(len(text))
                variable += text
            _encode_value(member, numbers, vectors)
    elif isinstance(value, list):
        tags += bytes((ARRAY,)) + _varint(len(value))
        for item in value:
            _encode_value(item, numbers, vectors)
    elif value is None or isinstance(value, bool):
        tags.append({None: NULL, False: FALSE, True: TRUE}[value])
    elif isinstance(value, int):
        tag = next(
            tag for tag, width in zip(_INTEGERS, (7, 15, 31, 63), strict=True) if -(1 << width) <= value < 1 << width
        )
        tags.append(tag)
        fixed += _INTEGERS[tag].pack(value)
    elif isinstance(value, float):
        tags.append(DOUBLE)
        fixed += _DOUBLE.pack(value)
    else:
        data = value.encode() if isinstance(value, str) else value
        tags.append(TEXT if isinstance(value, str) else BINARY)
        lengths += _varint(len(data))
        variable += data


class _Row:
    """A compacted row being read: a position in each of its vectors."""

    def __init__(self, data: memoryview, names: Sequence[str]) -> None:
        self._names = names
        whole = _Vector(data)
        try:
            sizes = [whole.varint() for _ in range(4)]
            self._tags, self._numbers, self._fixed, self._lengths = (_Vector(whole.take(size)) for size in sizes)
        except IndexError as error:
            raise CorruptError(f"a row of {len(data)} bytes is shorter than its vectors: {error}") from None
        self._variable = _Vector(whole.rest())

    def is_used_up(self) -> bool:
        return not any(len(v.rest()) for v in (self._tags, self._numbers, self._fixed, self._lengths, self._variable))

    def is_object(self) -> bool:
        return bytes(self._tags.rest()[:1]) == bytes((OBJECT,))

    def value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise CorruptError(f"a row is nested more than {MAX_DEPTH} steps deep")
        tag = self._tags.take(1)[0]
        if tag == OBJECT:
            return dict(self._fields(depth))
        if tag == ARRAY:
            return [self.value(depth + 1) for _ in range(self._tags.varint())]
        if tag in (NULL, FALSE, TRUE):
            return {NULL: None, FALSE: False, TRUE: True}[tag]
        if tag in _INTEGERS:
            return _INTEGERS[tag].unpack(self._fixed.take(_INTEGERS[tag].size))[0]
        if tag == DOUBLE:
            return _DOUBLE.unpack(self._fixed.take(8))[0]
        if tag in (TEXT, BINARY):
            data = bytes(self._variable.take(self._lengths.varint()))
            return data.decode() if tag == TEXT else data
        raise CorruptError(f"a row has a value of the unknown type {tag}")

    def _fields(self, depth: int) -> Iterator[tuple[str, Any]]:
        for _ in range(self._tags.varint()):
            number = self._numbers.varint()
            if number > len(self._names):
                raise CorruptError(
                    f"a row uses field name number {number}, but the schema has only {len(self._names)} field names"
                )
            if number == 0:
                yield bytes(self._variable.take(self._lengths.varint())).decode(), self.value(depth + 1)
            else:
                yield self._names[number - 1], self.value(depth + 1)


class _Vector:
    def __init__(self, data: memoryview) -> None:
        self._data, self._place = data, 0

    def take(self, count: int) -> memoryview:
        if self._place + count > len(self._data):
            raise IndexError(f"cannot read {count} bytes at {self._place}: there are only {len(self._data)} bytes")
        self._place += count
        return self._data[self._place - count : self._place]

    def rest(self) -> memoryview:
        return self._data[self._place :]

    def varint(self) -> int:
        number = shift = 0
        while True:
            byte = self.take(1)[0]
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7
            if shift > 35:
                raise CorruptError("a number of a row has more than 5 bytes")
