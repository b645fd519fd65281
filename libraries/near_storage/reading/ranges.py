"""Read exact byte ranges of one file with `preadv` into the caller's memory.

Adjacent ranges are read by one system call (Weigand 2025, 7.3).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from libraries.near_storage.errors import DamagedError

MOST_VECTORS = 1024
"""IOV_MAX of Linux: the maximum number of buffers of one `preadv`."""

Positions = npt.NDArray[np.int64]
"""Offsets in a file, or lengths, in bytes."""


def merged(offsets: Positions, lengths: Positions, gap_bytes: int = 0) -> tuple[Positions, Positions]:
    """Divide ranges into runs, each of which one call reads. Return the first and the last (exclusive) index of each
    run.

    Two neighbours are in one run if the second range begins at the end of the first or up to `gap_bytes` later. The
    order of the ranges is kept. Without ranges there are no runs.
    """
    gaps = offsets[1:] - (offsets[:-1] + lengths[:-1])
    breaks = np.flatnonzero((gaps < 0) | (gaps > gap_bytes)) + 1
    bounds = np.concatenate(([0], breaks, [len(offsets)])) if len(offsets) else np.zeros(1, np.int64)
    return bounds[:-1], bounds[1:]


def read(fd: int, offsets: Positions, lengths: Positions, into: memoryview, gap_bytes: int = 0) -> int:
    """Fill `into` with the ranges in the given order; return the number of bytes read, including gaps.

    `into` is a writable view of exactly `lengths.sum()` bytes. Gaps of up to `gap_bytes` between ranges are read and
    dropped to save calls. Raises DamagedError if the file ends before a range does. OSError is passed on unchanged.
    """
    total = int(lengths.sum())
    if into.nbytes != total:
        raise ValueError(f"the ranges have {total} bytes, but the buffer has {into.nbytes}")
    if len(offsets) and bool((offsets[1:] - offsets[:-1] == lengths[:-1]).all()):
        fill(fd, int(offsets[0]), [into])
        return total
    # Ranges that are adjacent in the file are adjacent in memory too, so each run needs only one buffer.
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
    """Fill `pieces`, one after the other, with consecutive bytes of the file from `offset` on. Read again after a call
    that returned fewer bytes.

    Raises DamagedError if the file ends early.
    """
    wanted = sum(piece.nbytes for piece in pieces)
    while wanted:
        got = os.preadv(fd, pieces, offset)
        if got == wanted:
            return
        if got == 0:
            raise DamagedError(
                f"the file ends at byte {os.fstat(fd).st_size}, but {wanted} bytes from byte {offset} on were "
                "requested: the file was truncated after it was stored; check or repair the node"
            )
        offset += got
        wanted -= got
        pieces = _without(pieces, got)


def _without(pieces: Sequence[memoryview], done: int) -> Sequence[memoryview]:
    """Return the pieces without the first `done` bytes, which are filled."""
    for index, piece in enumerate(pieces):
        if done < piece.nbytes:
            return [piece[done:], *pieces[index + 1 :]]
        done -= piece.nbytes
    return []


def _at_most(indices: range, count: int) -> Iterator[range]:
    return (indices[start : start + count] for start in range(0, len(indices), count))
