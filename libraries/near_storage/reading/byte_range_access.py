"""Access path V2 on the client: decode rows from the original footer of a file and the received column chunks.

The digest of a chunk is checked before the chunk is decoded. Row groups that are decoded together (a stretch) are
decoded once all chunks of the stretch have arrived. The rows are not filtered here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from libraries.near_storage.errors import DamagedError
from libraries.near_storage.reading.by_ranges import PARTS, FilePart, each
from libraries.near_storage.reading.decoding import BATCH_BYTES, BATCH_ROWS, Chunk, Decoder, stretches
from libraries.near_storage.reading.digests import ChunkHash, chunk_digest
from libraries.near_storage.reading.footers import ParsedFooter, place_of


def batches(
    footer: ParsedFooter,
    parts: Iterable[pa.RecordBatch],
    groups: Sequence[int],
    columns: Sequence[str],
    digests: npt.NDArray[np.uint64] | None = None,
    batch_rows: int = BATCH_ROWS,
    batch_bytes: int = BATCH_BYTES,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `groups` of one file, in the given order, with the top-level `columns` in file order.

    `parts` are batches of `by_ranges.PARTS` for exactly `groups` and the leaves of `columns`, group by group. Rows have
    the types of `working_types.working`. `digests` are the catalog's digests, [row groups, leaf columns]; None means
    that the digests in the parts are trusted. Memory holds one batch and the chunks of one large row group, or of
    several small row groups of up to `batch_bytes` in total. Raises DamagedError if a digest differs, or if a part is
    missing, repeated or unexpected.
    """
    received = Received()
    decoder = Decoder(footer, received.chunk)
    leaves = footer.leaves.of(columns)
    rows = (part for batch in parts for part in each(valid(batch)))
    for together, fitting in stretches(footer.metadata, groups, leaves, batch_rows, batch_bytes):
        received.expect(footer, together, leaves, digests)
        while received.missing:
            part = next(rows, None)
            if part is None:
                raise DamagedError(
                    f"the stream ended early: {received.missing} chunks of row groups {together[0]} to "
                    f"{together[-1]} are missing; request the rest again"
                )
            received.add(part)
        decoder.forget()
        fitting = decoder.reading(together, leaves, fitting).rows
        yield from decoder.batches(together, leaves, fitting)
    if (part := next(rows, None)) is not None:
        raise DamagedError(f"{_where(part)}: this part arrived after all requested parts had arrived")


def valid(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a received batch of `by_ranges.PARTS`. Raises DamagedError if it is malformed or contains nulls."""
    if not batch.schema.equals(PARTS):
        raise DamagedError(
            f"parts must have the columns {PARTS.names} with the types of this release (got {batch.schema.names}); use "
            "the same release on both ends"
        )
    try:
        batch.validate()
    except pa.ArrowInvalid as error:
        raise DamagedError(f"a batch of parts is malformed: {str(error)[:200]}") from error
    if any(column.null_count for column in batch.columns):
        raise DamagedError("a batch of parts contains nulls, which nodes never send; use another replica")
    return batch


def _where(part: FilePart) -> str:
    return f"row group {part.row_group}, column {part.column}, byte {part.offset}"


@dataclass
class _Expected:
    start: int
    length: int
    digest: int | None
    pieces: list[memoryview] = field(default_factory=list)
    received: int = 0
    hashing: ChunkHash | None = None


class Received:
    """Checked chunks of the row groups that are decoded next."""

    def __init__(self) -> None:
        self._expected: dict[tuple[int, int], _Expected] = {}
        # pyarrow writes all chunks of an empty group at one offset, so several chunks may share a position.
        self._whole: dict[tuple[int, int], list[_Expected]] = {}

    @property
    def missing(self) -> int:
        """Number of chunks that have not arrived completely."""
        return len(self._expected)

    def expect(
        self,
        footer: ParsedFooter,
        groups: Sequence[int],
        leaves: Sequence[int],
        digests: npt.NDArray[np.uint64] | None = None,
    ) -> None:
        """Expect the chunks of these row groups and leaf columns, and drop earlier chunks. The positions of the chunks
        come from the footer, never from the received parts."""
        self._whole.clear()
        for group in groups:
            info = footer.metadata.row_group(group)
            for leaf in leaves:
                digest = None if digests is None else int(digests[group, leaf])
                self._expected[group, leaf] = _Expected(*place_of(info.column(leaf)), digest)

    def add(self, part: FilePart) -> None:
        """Add a part. Raises DamagedError if the part is unexpected, or if it completes a chunk whose digest is
        wrong."""
        key = part.row_group, part.column
        chunk = self._expected.get(key)
        if chunk is None:
            raise DamagedError(f"{_where(part)}: this part is repeated, out of order, or not requested")
        if part.offset != chunk.start + chunk.received:
            raise DamagedError(f"{_where(part)}: this part must begin at byte {chunk.start + chunk.received}")
        if chunk.digest is None:
            chunk.digest = part.digest
        if part.digest != chunk.digest:
            raise DamagedError(
                f"{_where(part)}: the digest sent with this part differs from the expected one; check the node"
            )
        chunk.received += len(part.data)
        if chunk.received > chunk.length:
            raise DamagedError(f"{_where(part)}: {chunk.received} bytes arrived for a chunk of {chunk.length} bytes")
        chunk.pieces.append(part.data)
        if chunk.received < chunk.length:
            if chunk.hashing is None:
                chunk.hashing = ChunkHash()
            chunk.hashing.update(part.data)
            return
        if _digest(chunk) != chunk.digest:
            raise DamagedError(f"{_where(part)}: bytes changed since they were stored; use another replica")
        self._whole.setdefault((chunk.start, chunk.length), []).append(chunk)
        del self._expected[key]

    def chunk(self, offset: int, nbytes: int) -> Chunk:
        """Return the chunk of `nbytes` bytes at `offset`, and release its memory. Raises DamagedError if no such chunk
        has arrived completely."""
        chunks = self._whole.get((offset, nbytes))
        if not chunks:
            raise DamagedError(f"the footer refers to {nbytes} bytes at byte {offset}, which are not a requested chunk")
        pieces = chunks.pop().pieces
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _digest(chunk: _Expected) -> int:
    if chunk.hashing is None:
        return chunk_digest(chunk.pieces[0])
    chunk.hashing.update(chunk.pieces[-1])
    return chunk.hashing.intdigest()
