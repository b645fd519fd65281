"""Store several payloads in one EncUnit, as columns of lists need (specification 3.3 and 5.3).

An EncUnit is the smallest part of a column that can be decoded. For lists it holds two payloads: which lists are
present, and their offsets. Both have to be in one EncUnit, because the EncUnits of lists and of their items are matched
by their ordinals. The specification defines where a payload ends only for its built-in encoding, whose payloads (blobs)
contain their lengths. For other encodings, this module writes a frame that begins with all lengths:

    4 bytes  b"F3P" and the number of payloads
    4 bytes  the length of each payload, unsigned, little endian
    the payloads, one after the other

The first byte distinguishes frames from blobs of the built-in encoding: a frame begins with `F` (70), a blob with a
multiple of 64.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from libraries.f3.container.flat import Table, root
from libraries.f3.errors import F3Error

_MARK = b"F3P"
_BLOB_ALIGNMENT = 64
_U32 = struct.Struct("<I")
_ARRAY_DATA = 1


def join(payloads: Sequence[bytes]) -> bytes:
    """Join payloads into one EncUnit."""
    lengths = b"".join(_U32.pack(len(payload)) for payload in payloads)
    return b"".join((_MARK, bytes((len(payloads),)), lengths, *payloads))


def split(unit: memoryview, count: int) -> list[memoryview]:
    """Split an EncUnit into `count` payloads. Files of this package have a frame; in files of the F3 authors' program,
    blobs contain their lengths. Raises F3Error."""
    if bytes(unit[:3]) == _MARK:
        return _framed(unit, count)
    return _blobs(unit, count)


def is_blob(data: memoryview, rows: int) -> bool:
    """Return whether `data` is exactly one blob (a payload of the F3 authors' built-in encoding) with this number of
    rows."""
    try:
        described, end = _blob(data)
        return end == len(data) and _length_at(data, 0) % _BLOB_ALIGNMENT == 0 and described.u64(1) == rows
    except F3Error:
        return False


def _framed(unit: memoryview, count: int) -> list[memoryview]:
    start = 4 + 4 * count
    if len(unit) < start:
        raise F3Error(f"the frame of {count} payloads needs at least {start} bytes, but the EncUnit has {len(unit)}")
    if unit[3] != count:
        raise F3Error(f"the EncUnit ({len(unit)} bytes) must have {count} payloads, but its frame declares {unit[3]}")
    lengths = struct.unpack_from(f"<{count}I", unit, 4)
    if start + sum(lengths) != len(unit):
        declared, left = " + ".join(map(str, lengths)), len(unit) - start
        raise F3Error(f"the frame declares payloads of {declared} bytes, but {left} bytes follow its header")
    payloads = []
    for length in lengths:
        payloads.append(unit[start : start + length])
        start += length
    return payloads


def _blobs(unit: memoryview, count: int) -> list[memoryview]:
    blobs = []
    rest = unit
    for _ in range(count - 1):
        _, size = _blob(rest)
        blobs.append(rest[:size])
        rest = rest[size:]
    return [*blobs, rest]


def _blob(data: memoryview) -> tuple[Table, int]:
    """Return the FlatBuffers table that describes the array of the blob at the start of `data`, and the end of the
    blob.

    A blob consists of two messages, each after its length, and then the buffers that the second message describes
    (specification 5.1 to 5.3). Raises F3Error.
    """
    message = _BLOB_ALIGNMENT + _length_at(data, 0)
    length = _length_at(data, message)
    start = message + 4
    if start + length > len(data):
        raise F3Error(f"a blob declares a message of {length} bytes at {start}, but only {len(data) - start} are left")
    described = root(data[start : start + length], "blob")
    if described.u8(1) != _ARRAY_DATA:
        raise F3Error("the message of a blob does not describe an array")
    array = described.needed(2, "array")
    end = start + length + sum(buffer.u64(0) + buffer.u16(1) for buffer in array.elements(2))
    if end > len(data):
        raise F3Error(f"a blob declares {end} bytes, but only {len(data)} are left")
    return array, end


def _length_at(data: memoryview, place: int) -> int:
    if place + 4 > len(data):
        raise F3Error(
            f"byte {place} of a blob must begin the length of a message, but the blob has only {len(data)} bytes"
        )
    length: int = _U32.unpack_from(data, place)[0]
    return length
