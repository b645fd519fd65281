"""Digests of column chunks. They are computed once when a file is stored, and checked before a chunk is decoded.

The digests detect bytes that changed on disk or in transit. They do not prove the origin of the bytes; only the digest
of the whole partition, which the catalog keeps, proves the origin.
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
"""Return the digest of a whole chunk: xxh3 (64 bits, seed 0). A fast hash is needed, because the client hashes all
bytes that it receives."""

ChunkHash = xxhash.xxh3_64
"""xxh3 of a chunk that arrives in pieces."""


def of_file(fd: int, compact: CompactMetadata, batch_bytes: int = by_ranges.BATCH_BYTES) -> Digests:
    """Compute the digests of all chunks of one file, in one pass that holds about `batch_bytes`.

    Raises DamagedError if the file ends before a chunk does.
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
