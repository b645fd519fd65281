"""Digests of column chunks: made once when a file is stored, checked before anything decodes a chunk.

They tell bytes that changed on a disk or on the way. They do not tell who sent them: that is for the digest of the
partition, which the catalog keeps.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import xxhash

from libraries.near_storage.parquet.compact import CompactMetadata
from libraries.near_storage.reading import by_ranges

Digests = npt.NDArray[np.uint64]
"""xxh3 (64 bits, seed 0) of each chunk: [row groups, leaf columns], in the order of the compact metadata."""

chunk_digest = xxhash.xxh3_64_intdigest
"""xxh3 (64 bits, seed 0) of bytes: the client checks all that it is sent, so its speed is the stream's."""

ChunkHash = xxhash.xxh3_64
"""The same of a chunk that comes in pieces."""


def of_file(fd: int, compact: CompactMetadata, batch_bytes: int = by_ranges.BATCH_BYTES) -> Digests:
    """The digests of all chunks of one file, in one pass that holds about `batch_bytes`.

    DamagedError if the file ends before a chunk does.
    """
    found = np.zeros(compact.chunks.shape, np.uint64)
    groups, leaves = (range(count) for count in compact.chunks.shape)
    hashing = ChunkHash()
    hashed: tuple[int, int] | None = None
    for batch in by_ranges.parts(fd, compact, found, groups, leaves, batch_bytes):
        for part in by_ranges.each(batch):
            if hashed != (part.row_group, part.column):
                hashing.reset()
                hashed = part.row_group, part.column
            hashing.update(part.data)
            found[hashed] = hashing.intdigest()
    return found
