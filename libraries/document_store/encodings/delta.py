"""Encode integers as differences with Parquet's DELTA_BINARY_PACKED, in blocks of 128 with 4 miniblocks.

Differences wrap around at 64 bits, so any integer can follow any other. Integers in arrays are stored as two sequences:
the first integer of each array, and the running sums of the differences within arrays. With a single sequence, the
difference between one array and the next would widen all differences of its block. The C kernel writes the same bytes.
"""

from __future__ import annotations

import numpy as np

from libraries.document_store.encodings.bits import ByteReader, packed, unpacked, varint, zigzag
from libraries.document_store.errors import CorruptError

BLOCK, MINIBLOCKS = 128, 4
MINIBLOCK = BLOCK // MINIBLOCKS


def encode(values: np.ndarray) -> bytes:
    """Encode int64 values."""
    unsigned = values.astype(np.int64).view(np.uint64)
    first = int(values[0]) if len(values) else 0
    pieces = [varint(BLOCK) + varint(MINIBLOCKS) + varint(len(values)) + zigzag(first)]
    deltas = (unsigned[1:] - unsigned[:-1]).view(np.int64)
    for start in range(0, len(deltas), BLOCK):
        block = deltas[start : start + BLOCK]
        lowest = block.min()
        above = np.zeros(BLOCK, np.uint64)
        above[: len(block)] = block.view(np.uint64) - lowest.view(np.uint64)
        used = -(-len(block) // MINIBLOCK)
        parts = above.reshape(MINIBLOCKS, MINIBLOCK)
        widths = [int(part.max()).bit_length() for part in parts]
        pieces.append(zigzag(int(lowest)) + bytes(widths))
        pieces += [packed(part, width) for part, width in zip(parts[:used], widths, strict=False)]
    return b"".join(pieces)


def decode(reader: ByteReader, most: int) -> np.ndarray:
    """Decode the next values as int64. Raises CorruptError for invalid bytes or more than `most` values."""
    block, miniblocks, count, first = reader.varint(), reader.varint(), reader.varint(), reader.zigzag()
    if (block, miniblocks) != (BLOCK, MINIBLOCKS) or count > most:
        raise CorruptError(
            f"a column's chunk has {count} integers in blocks of {block} with {miniblocks} miniblocks; "
            f"expected at most {most} integers in blocks of {BLOCK} with {MINIBLOCKS} miniblocks"
        )
    # Do not allocate memory for more integers than these bytes can hold.
    if (count - 1) // BLOCK * (1 + MINIBLOCKS) > reader.left:
        raise CorruptError(f"a column's chunk declares {count} integers, too many for its {reader.left} bytes")
    deltas = np.zeros(max(count - 1, 0), np.uint64)
    for start in range(0, len(deltas), BLOCK):
        lowest = np.int64(reader.zigzag()).view(np.uint64)
        widths = bytes(reader.take(MINIBLOCKS))
        if max(widths) > 64:
            raise CorruptError("a column's chunk has integers of more than 64 bits")
        used = -(-min(BLOCK, len(deltas) - start) // MINIBLOCK)
        for number, width in enumerate(widths[:used]):
            place = start + number * MINIBLOCK
            taken = min(MINIBLOCK, len(deltas) - place)
            deltas[place : place + taken] = unpacked(reader.take(MINIBLOCK * width // 8), width, taken) + lowest
    values = np.zeros(count, np.uint64)
    values[:1] = np.int64(first).view(np.uint64)
    np.cumsum(deltas, out=values[1:])
    values[1:] += values[:1]
    return values.view(np.int64)


def encode_in_arrays(values: np.ndarray, is_first: np.ndarray) -> bytes:
    """Encode int64 values that are items of arrays. `is_first` (bool) marks the first value of each array."""
    unsigned = values.astype(np.int64).view(np.uint64)
    steps = unsigned[1:] - unsigned[:-1]
    sums = np.cumsum(steps[~is_first[1:]], dtype=np.uint64)
    return encode(values[is_first]) + encode(sums.view(np.int64))


def decode_in_arrays(reader: ByteReader, is_first: np.ndarray) -> np.ndarray:
    """Decode the result of `encode_in_arrays` as int64. Raises CorruptError."""
    count = int(np.count_nonzero(is_first))
    firsts, sums = decode(reader, count), decode(reader, len(is_first) - count)
    if len(firsts) + len(sums) != len(is_first):
        raise CorruptError(f"a column's chunk has {len(firsts)} arrays and {len(sums)} steps, expected {count} arrays "
                           f"and {len(is_first) - count} steps")  # fmt: skip
    steps = np.zeros(len(is_first), np.uint64)
    steps[~is_first] = np.diff(sums.view(np.uint64), prepend=np.uint64(0))
    walked = np.cumsum(steps, dtype=np.uint64)
    of_array = np.cumsum(is_first) - 1
    return np.asarray((firsts.view(np.uint64) - walked[is_first])[of_array] + walked).view(np.int64)
