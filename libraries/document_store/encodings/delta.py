"""Integers by their differences: Parquet's DELTA_BINARY_PACKED, in blocks of 128 with 4 miniblocks.

Differences wrap around 64 bits, so every integer can follow every other. Integers in arrays are two such sequences: the
first of each array, and the sums of the steps within arrays; else the jump from one array to the next would widen all
differences of its block. It gives the bytes that the kernel gives.
"""

from __future__ import annotations

import numpy as np

from libraries.document_store.encodings.bits import ByteReader, packed, unpacked, varint, zigzag
from libraries.document_store.errors import CorruptError

BLOCK, MINIBLOCKS = 128, 4
MINIBLOCK = BLOCK // MINIBLOCKS


def encode(values: np.ndarray) -> bytes:
    """Of int64 values."""
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
    """int64: the values that come next. Raises CorruptError, also for more than `most`."""
    block, miniblocks, count, first = reader.varint(), reader.varint(), reader.varint(), reader.zigzag()
    if (block, miniblocks) != (BLOCK, MINIBLOCKS) or count > most:
        raise CorruptError(f"a column's chunk has {count} integers in blocks of {block}, {most} in {BLOCK} are due")
    # Nobody makes room for more integers than so few bytes can be.
    if (count - 1) // BLOCK * (1 + MINIBLOCKS) > reader.left:
        raise CorruptError(f"a column's chunk has {count} integers in {reader.left} bytes")
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
    """Of int64 values, of which those marked (bool) are the first of an array."""
    unsigned = values.astype(np.int64).view(np.uint64)
    steps = unsigned[1:] - unsigned[:-1]
    sums = np.cumsum(steps[~is_first[1:]], dtype=np.uint64)
    return encode(values[is_first]) + encode(sums.view(np.int64))


def decode_in_arrays(reader: ByteReader, is_first: np.ndarray) -> np.ndarray:
    """int64: what `encode_in_arrays` was given. Raises CorruptError."""
    count = int(np.count_nonzero(is_first))
    firsts, sums = decode(reader, count), decode(reader, len(is_first) - count)
    if len(firsts) + len(sums) != len(is_first):
        raise CorruptError(f"a column's chunk has {len(firsts)} arrays and {len(sums)} steps, {count} arrays and "
                           f"{len(is_first) - count} steps are due")  # fmt: skip
    steps = np.zeros(len(is_first), np.uint64)
    steps[~is_first] = np.diff(sums.view(np.uint64), prepend=np.uint64(0))
    walked = np.cumsum(steps, dtype=np.uint64)
    of_array = np.cumsum(is_first) - 1
    return np.asarray((firsts.view(np.uint64) - walked[is_first])[of_array] + walked).view(np.int64)
