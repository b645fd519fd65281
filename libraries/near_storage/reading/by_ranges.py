"""Access path V2 on the node: send the column chunks that a query needs, byte for byte as they are in the file.

Chunks are not decoded. They are not hashed either, because their digests were computed when the file was stored. One
call reads all chunks that are adjacent in the file, and one buffer of the answer holds many chunks, because creating a
Python object for a chunk takes longer than reading the chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from libraries.near_storage.parquet.compact import CompactMetadata
from libraries.near_storage.reading import ranges

BATCH_BYTES = 4 << 20
"""Maximum data bytes of a batch. Larger batches do not fit in the CPU caches: 16 MiB took 1.3 times as long in a
test."""

PARTS = pa.schema(
    [
        pa.field("row_group", pa.int32(), nullable=False),
        pa.field("column", pa.int32(), nullable=False),
        pa.field("offset", pa.uint64(), nullable=False),
        pa.field("digest", pa.uint64(), nullable=False),
        pa.field("data", pa.large_binary(), nullable=False),
    ]
)
"""Schema of parts: number of the row group and of the leaf column, position in the file, xxh3 (hash) of the chunk, and
bytes.

A part is a whole column chunk. A chunk that is larger than a batch is split into several parts, which follow each other
at ascending offsets.
"""

_DATA = PARTS.field("data")
_NUMBERS = PARTS.remove(PARTS.get_field_index("data"))
"""`PARTS` without the column `data`."""


class FilePart(NamedTuple):
    """One row of `PARTS`; `data` shares the batch's memory."""

    row_group: int
    column: int
    offset: int
    digest: int
    data: memoryview


def parts(
    fd: int,
    compact: CompactMetadata,
    digests: npt.NDArray[np.uint64],
    groups: Sequence[int],
    leaves: Sequence[int],
    batch_bytes: int = BATCH_BYTES,
    gap_bytes: int = 0,
) -> Iterator[pa.RecordBatch]:
    """Yield the chunks of these row groups and leaf columns of one file, as batches of `PARTS`.

    Groups come in the given order, the chunks of a group in file order. With ascending groups of an ordinary file, the
    whole stream is in file order, so a receiver needs to hold only one group at a time. A batch holds at most
    `batch_bytes` of data. Each batch has separate memory, which this generator does not retain. `digests` has the shape
    [row groups, leaf columns] and, like `compact`, describes this file only. Gaps of up to `gap_bytes` between chunks
    are read and dropped to save calls. Raises DamagedError if the file was truncated.
    """
    plan = _Plan(compact, digests, groups, leaves, batch_bytes)
    for start, stop, length, touching in plan.batches(batch_bytes):
        data = pa.allocate_buffer(length)
        into = memoryview(data).cast("B")
        if touching:
            ranges.fill(fd, int(plan.offsets[start]), [into])
        else:
            ranges.read(fd, plan.offsets[start:stop], plan.lengths[start:stop], into, gap_bytes)
        yield plan.batch(start, stop, data)


def each(batch: pa.RecordBatch) -> Iterator[FilePart]:
    """Yield the rows of a batch of `PARTS`. The batch must not contain nulls."""
    numbers = [batch.column(number).to_numpy().tolist() for number in range(4)]
    data = batch.column(4)
    _, bounds, stored = data.buffers()
    view = memoryview(stored if stored is not None else b"").cast("B")
    ends = np.frombuffer(bounds, np.int64)[data.offset : data.offset + len(data) + 1].tolist() if len(data) else []
    for row, (group, column, offset, digest) in enumerate(zip(*numbers, strict=True)):
        yield FilePart(group, column, offset, digest, view[ends[row] : ends[row + 1]])


class _Plan:
    """The parts to send, in order, as arrays with one row per part."""

    def __init__(
        self,
        compact: CompactMetadata,
        digests: npt.NDArray[np.uint64],
        groups: Sequence[int],
        leaves: Sequence[int],
        piece_bytes: int,
    ) -> None:
        chosen = np.ix_(np.asarray(groups, np.int64), np.asarray(leaves, np.int64))
        chunks = compact.chunks[chosen]
        offsets = chunks["offset"] + compact.base[chosen[0]]
        order = np.argsort(offsets, axis=1, kind="stable")

        def in_file_order(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
            return np.take_along_axis(np.broadcast_to(values, order.shape), order, axis=1).ravel()

        self.offsets = in_file_order(offsets).astype(np.int64)
        self.lengths = in_file_order(chunks["length"]).astype(np.int64)
        numbers = [in_file_order(chosen[0]).astype(np.int32), in_file_order(chosen[1]).astype(np.int32)]
        stored = in_file_order(digests[chosen])
        if len(self.lengths) and self.lengths.max() > piece_bytes:
            rows = self._cut(piece_bytes)
            numbers, stored = [values[rows] for values in numbers], stored[rows]
        self._bounds = np.concatenate(([0], np.cumsum(self.lengths)))
        # Make arrays once and slice them for each batch, because making arrays takes longer than reading a few chunks.
        values = [*numbers, self.offsets.astype(np.uint64), stored]
        self._numbers = pa.RecordBatch.from_arrays([pa.array(each) for each in values], schema=_NUMBERS)

    def _cut(self, piece_bytes: int) -> npt.NDArray[np.int64]:
        """Split chunks that are larger than a batch into pieces. Return for each piece the index of its chunk."""
        counts = np.maximum(1, -(-self.lengths // piece_bytes))
        rows = np.repeat(np.arange(len(counts)), counts)
        skipped = (np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)) * piece_bytes
        self.offsets = self.offsets[rows] + skipped
        self.lengths = np.minimum(self.lengths[rows] - skipped, piece_bytes)
        return rows

    def batches(self, batch_bytes: int) -> list[tuple[int, int, int, bool]]:
        """Return for each batch its first row, its last row (exclusive), its bytes, and whether its parts are adjacent
        in the file.

        A batch has as many rows as fit, and at least one row.
        """
        starts = [0]
        while starts[-1] < len(self.lengths):
            most = self._bounds[starts[-1]] + batch_bytes
            starts.append(max(starts[-1] + 1, int(np.searchsorted(self._bounds, most, side="right")) - 1))
        gaps_before = np.cumsum(np.append(0, self.offsets[1:] != self.offsets[:-1] + self.lengths[:-1]))
        return [
            (start, stop, int(self._bounds[stop] - self._bounds[start]), gaps_before[start] == gaps_before[stop - 1])
            for start, stop in pairwise(starts)
        ]

    def batch(self, start: int, stop: int, data: pa.Buffer) -> pa.RecordBatch:
        bounds = pa.py_buffer(self._bounds[start : stop + 1] - self._bounds[start])
        column = pa.LargeBinaryArray.from_buffers(pa.large_binary(), stop - start, [None, bounds, data])
        return self._numbers.slice(start, stop - start).add_column(len(_NUMBERS), _DATA, column)
