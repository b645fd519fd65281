"""Encode levels and booleans with Parquet's RLE/bit-packed hybrid: equal values as runs, other values bit-packed in
groups of eight.

The C kernel writes the same bytes.
"""

from __future__ import annotations

import numpy as np

from libraries.document_store.encodings.bits import ByteReader, packed, unpacked, varint
from libraries.document_store.errors import CorruptError

_GROUP = 8
_SHORTEST_RUN = 8
_MOST_GROUPS = 63


def encode(values: np.ndarray, width: int) -> bytes:
    """Encode uint8 values of at most `width` bits, 1 to 8."""
    count = len(values)
    changes = np.flatnonzero(values[1:] != values[:-1]) + 1
    run_of = np.zeros(count, np.int64)
    run_of[changes] = 1
    ends = np.append(changes, count)[np.cumsum(run_of)].tolist() if count else []
    pieces, place = [], 0
    while place < count:
        if ends[place] - place >= _SHORTEST_RUN:
            pieces.append(varint((ends[place] - place) << 1) + values[place : place + 1].tobytes())
            place = ends[place]
            continue
        first, groups = place, 0
        while place < count and groups < _MOST_GROUPS and ends[place] - place < _SHORTEST_RUN:
            place, groups = place + _GROUP, groups + 1
        literal = np.zeros(groups * _GROUP, np.uint64)
        literal[: min(place, count) - first] = values[first:place]
        pieces.append(varint(groups << 1 | 1) + packed(literal, width))
    return b"".join(pieces)


def decode(data: memoryview, width: int, count: int) -> np.ndarray:
    """Decode all bytes to `count` values as uint8. Raises CorruptError if the bytes hold more or fewer values."""
    reader = ByteReader(data)
    values = np.zeros(count, np.uint8)
    place = 0
    while place < count:
        header = reader.varint()
        length = header >> 1
        if header & 1:
            length *= _GROUP
            literal = reader.take(min(length, 1 << 40) * width // 8)
            taken = min(length, count - place)
            values[place : place + taken] = unpacked(literal, width, taken)
            if length - taken >= _GROUP:
                raise CorruptError("a column's chunk has more levels than declared")
            length = taken
        elif length > count - place:
            raise CorruptError("a column's chunk has more levels than declared")
        else:
            (value,) = reader.take(1)
            if value >> width:
                raise CorruptError(f"a column's chunk has the level {value}, which does not fit in {width} bits")
            values[place : place + length] = value
        if length == 0:
            raise CorruptError("a column's chunk has an empty run of levels")
        place += length
    if reader.left:
        raise CorruptError("a column's chunk has bytes after its levels")
    return values
