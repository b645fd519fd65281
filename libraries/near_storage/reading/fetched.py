"""Read column chunks from a whole file that a client fetched in pieces (access path `all`).

Pieces are not joined. Only a chunk that spans two pieces is copied. As on nodes, the digest of a chunk is checked when
the chunk is read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from libraries.near_storage.errors import DamagedError
from libraries.near_storage.reading.decoding import Chunk
from libraries.near_storage.reading.digests import chunk_digest
from libraries.near_storage.reading.footers import ParsedFooter, place_of

FOOTER_END_BYTES = 8
"""Bytes at the end of a file: the length of the footer, and `PAR1`."""


class FetchedChunks:
    """The bytes of one file: consecutive `pieces` from its first byte to its last."""

    def __init__(self, pieces: Sequence[memoryview]) -> None:
        self._pieces = pieces
        self._starts = [0, *accumulate(map(len, pieces))]
        self._of_group: dict[int, dict[tuple[int, int], int]] = {}
        self._places: dict[tuple[int, int], int] = {}

    def footer_bytes(self) -> bytes:
        """Return the footer with its length and `PAR1`, as `footers.checked` needs them. Raises DamagedError if the
        file is too short."""
        size = self._starts[-1]
        length = int.from_bytes(self._slice(size - FOOTER_END_BYTES, 4), "little")
        return bytes(self._slice(size - FOOTER_END_BYTES - length, length + FOOTER_END_BYTES))

    def expect(self, footer: ParsedFooter, leaves: Sequence[int], digests: npt.NDArray[np.uint64]) -> None:
        """Allow reading the chunks of `leaves`, by their positions in the footer.

        `digests` are the catalog's digests, [row groups, leaf columns] of the file.
        """
        for group in range(footer.metadata.num_row_groups):
            info = footer.metadata.row_group(group)
            self._of_group[group] = {place_of(info.column(leaf)): int(digests[group, leaf]) for leaf in leaves}

    def hold(self, groups: Sequence[int]) -> None:
        """Allow reading only the chunks of these row groups, until the next call of `hold`."""
        self._places = {place: digest for group in groups for place, digest in self._of_group[group].items()}

    def read(self, offset: int, nbytes: int) -> Chunk:
        """Return the chunk of `nbytes` bytes at `offset`. Raises DamagedError if there is no such chunk, or if its
        bytes changed."""
        digest = self._places.get((offset, nbytes))
        if digest is None:
            raise DamagedError(f"the footer refers to {nbytes} bytes at byte {offset}, which are not a requested chunk")
        data = self._slice(offset, nbytes)
        if chunk_digest(data) != digest:
            raise DamagedError(
                f"the received file has changed since it was stored, in the {nbytes} bytes from byte {offset} on; "
                "use another replica"
            )
        return data

    def _slice(self, offset: int, nbytes: int) -> memoryview:
        end = offset + nbytes
        if not 0 <= offset <= end <= self._starts[-1]:
            raise DamagedError(
                f"bytes {offset} to {end} are needed, but the received file has {self._starts[-1]} bytes"
            )
        number = bisect_right(self._starts, offset) - 1
        parts = []
        while nbytes:
            start = offset - self._starts[number]
            parts.append(self._pieces[number][start : start + nbytes])
            offset, nbytes, number = offset + len(parts[-1]), nbytes - len(parts[-1]), number + 1
        return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))
