"""Build the bytes of a payload, which is the encoded content of a unit: a header, and nested nodes with one encoding
each. docs/f3-encodings.md describes both."""

from __future__ import annotations

import struct
from enum import IntEnum

VERSION = 1
_HAS_NULLS = 1
_HEADER = struct.Struct("<BBBBIQ")
_NODE = struct.Struct("<BBHI")
HEADER_BYTES, NODE_BYTES = _HEADER.size, _NODE.size


class Tag(IntEnum):
    """Types of nodes. The type of a node is the encoding of its values. The numbers are the same as in kernels.h."""

    PLAIN = 0
    CONSTANT = 1
    PACKED = 2
    RUNS = 3
    DELTA = 4
    DICTIONARY = 5
    PATCHED = 6
    DECIMAL = 7
    SPLIT = 8
    WIDENED = 9
    SYMBOLS = 10


def header(kind: int, width_bytes: int, rows: int, *, nullable: bool, data_bytes: int = 0) -> bytes:
    """Return the 16 bytes that begin a payload."""
    return _HEADER.pack(VERSION, kind, width_bytes, _HAS_NULLS if nullable else 0, rows, data_bytes)


def node(tag: Tag, body: bytes | memoryview, parameter: int = 0) -> bytes:
    """Return the bytes of a node: its type, its parameter, the size of its body, and the body."""
    return b"".join((_NODE.pack(tag, parameter, 0, len(body)), body))


def u32(number: int) -> bytes:
    """Return the bytes of an unsigned 32-bit number, little endian."""
    return number.to_bytes(4, "little")


def u64(number: int) -> bytes:
    """Return the bytes of a 64-bit number, little endian. Negative numbers are stored as their two's complement."""
    return (number % (1 << 64)).to_bytes(8, "little")


def outermost(payload: bytes | memoryview) -> Tag:
    """Return the type of the outermost node of a payload's values.

    Raises struct.error or ValueError if there is none.
    """
    flags = _HEADER.unpack_from(payload)[3]
    place = HEADER_BYTES
    if flags & _HAS_NULLS:
        place += NODE_BYTES + _NODE.unpack_from(payload, place)[3]
    return Tag(_NODE.unpack_from(payload, place)[0])
