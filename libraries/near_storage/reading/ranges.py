"""Exact byte ranges of one file, read by `preadv` into memory that the caller gives.

Ranges that touch are one call to the kernel (thesis, 7.3).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from libraries.near_storage.errors import DamagedError

MOST_VECTORS = 1024
"""IOV_MAX of Linux: the most pieces of memory that one `preadv` takes."""

Positions = npt.NDArray[np.int64]
"""Offsets in a file, or lengths, in bytes."""


def merged(offsets: Positions, lengths: Positions, gap_bytes: int = 0) -> tuple[Positions, Positions]:
    """First and last (exclusive) index of each run of ranges that are read by one call.

    Two neighbours are in one run if the second begins at most `gap_bytes` after the end of the first, and not before.
    The ranges keep their order. Without ranges there are no runs.
    """
    gaps = offsets[1:] - (offsets[:-1] + lengths[:-1])
    breaks = np.flatnonzero((gaps < 0) | (gaps > gap_bytes)) + 1
    bounds = np.concatenate(([0], breaks, [len(offsets)])) if len(offsets) else np.zeros(1, np.int64)
    return bounds[:-1], bounds[1:]


def read(fd: int, offsets: Positions, lengths: Positions, into: memoryview, gap_bytes: int = 0) -> int:
    """Fill `into` with the ranges, one behind the other in the order given; return the bytes read, gaps included.

    `into` is a writable view of exactly `lengths.sum()` bytes. Bytes of gaps are read and dropped, they never reach
    `into`. DamagedError if the file ends before a range does. OSError passes: the disk's errors are not ours to name.
    """
    total = int(lengths.sum())
    if into.nbytes != total:
        raise ValueError(f"ranges of {total} bytes do not fill {into.nbytes} bytes of memory")
    if len(offsets) and bool((offsets[1:] - offsets[:-1] == lengths[:-1]).all()):
        fill(fd, int(offsets[0]), [into])
        return total
    # Ranges that touch in the file touch in memory too, so that a stretch of them is one piece of memory.
    firsts, lasts = merged(offsets, lengths)
    begins = offsets[firsts]
    ends = offsets[lasts - 1] + lengths[lasts - 1]
    places = np.concatenate(([0], np.cumsum(ends - begins)))
    if gap_bytes == 0:
        for begin, start, stop in zip(begins.tolist(), places[:-1].tolist(), places[1:].tolist(), strict=True):
            fill(fd, begin, [into[start:stop]])
        return total
    dropped = memoryview(bytearray(gap_bytes))
    read_bytes = 0
    for first, last in zip(*merged(begins, ends - begins, gap_bytes), strict=True):
        for some in _at_most(range(first, last), MOST_VECTORS // 2):
            pieces = [into[places[some[0]] : places[some[0] + 1]]]
            for index in some[1:]:
                pieces += [dropped[: begins[index] - ends[index - 1]], into[places[index] : places[index + 1]]]
            fill(fd, int(begins[some[0]]), pieces)
            read_bytes += int(ends[some[-1]] - begins[some[0]])
    return read_bytes


def fill(fd: int, offset: int, pieces: Sequence[memoryview]) -> None:
    """Read one stretch of the file into `pieces` of memory, all of it, however few bytes a call gives.

    DamagedError if the file ends before.
    """
    wanted = sum(piece.nbytes for piece in pieces)
    while wanted:
        got = os.preadv(fd, pieces, offset)
        if got == wanted:
            return
        if got == 0:
            raise DamagedError(
                f"the file ends at byte {os.fstat(fd).st_size}, {wanted} bytes from {offset} on were asked for: "
                "it was cut since it was stored; check or repair the node"
            )
        offset += got
        wanted -= got
        pieces = _without(pieces, got)


def _without(pieces: Sequence[memoryview], done: int) -> Sequence[memoryview]:
    """What is left of the pieces when the first `done` bytes are filled."""
    for index, piece in enumerate(pieces):
        if done < piece.nbytes:
            return [piece[done:], *pieces[index + 1 :]]
        done -= piece.nbytes
    return []


def _at_most(indices: range, count: int) -> Iterator[range]:
    return (indices[start : start + count] for start in range(0, len(indices), count))
