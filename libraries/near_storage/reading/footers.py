"""Original footers of Parquet files, parsed by pyarrow: to decode what ranges or parts hold.

Only footers come here that passed our own reader when their file was stored, told by their digest: pyarrow is not the
judge of hostile ones.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from libraries.near_storage.errors import DamagedError
from libraries.near_storage.reading.columns import Leaves
from libraries.near_storage.reading.leaf_sizes import Shape, shapes

UNCOMPRESSED, COMPRESSED, VALUES = range(3)

PARSED_PER_RAW = 9
"""Bytes in memory for a byte of footer: 8.1 were measured for pyarrow 26 with 93 columns x 223 groups, and what holds a
footer here comes on top. The thesis has 10.3 for parquet2 (8.4)."""


@dataclass(frozen=True)
class ParsedFooter:
    """What pyarrow needs to decode chunks of one file."""

    metadata: pq.FileMetaData
    schema: pa.Schema
    """The table's columns as pyarrow reads them."""

    @cached_property
    def leaves(self) -> Leaves:
        """Which leaf columns hold which columns."""
        return Leaves(self.schema)

    @cached_property
    def shapes(self) -> list[Shape]:
        """What values of each leaf column take."""
        return shapes(self.metadata, self.schema)

    @cached_property
    def longest(self) -> dict[tuple[int, int], int]:
        """(row group, leaf) -> bytes of the longest value of its dictionary, as far as that was looked up."""
        return {}

    @cached_property
    def _sizes(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        shape = self.metadata.num_row_groups, self.metadata.num_columns
        return np.zeros(shape, np.bool_), np.zeros((*shape, 3), np.int64)

    def chunk_sizes(self, group: int, leaves: Sequence[int]) -> npt.NDArray[np.int64]:
        """[leaves, 3] of a row group: UNCOMPRESSED and COMPRESSED bytes and VALUES of each chunk."""
        known, sizes = self._sizes
        numbers = np.asarray(leaves, np.intp)
        missing = numbers[~known[group, numbers]].tolist()
        if missing:
            info = self.metadata.row_group(group)
            for leaf in missing:
                chunk = info.column(leaf)
                sizes[group, leaf] = chunk.total_uncompressed_size, chunk.total_compressed_size, chunk.num_values
            known[group, missing] = True
        return sizes[group, numbers]

    @property
    def nbytes(self) -> int:
        """An estimate of the memory that it takes: pyarrow does not tell."""
        return PARSED_PER_RAW * self.metadata.serialized_size


def parse(footer_bytes: bytes) -> ParsedFooter:
    """Parse the end of a file: the footer, its length (4 bytes) and `PAR1`. DamagedError if pyarrow cannot."""
    try:
        metadata = pq.read_metadata(pa.BufferReader(footer_bytes))
        return ParsedFooter(metadata, metadata.schema.to_arrow_schema())
    except (pa.ArrowException, OSError) as error:
        raise DamagedError(f"a footer of {len(footer_bytes)} bytes cannot be parsed: {str(error)[:200]}") from error


def checked(footer_bytes: bytes, digest: str) -> ParsedFooter:
    """Parse a footer whose blake2b-256 is `digest` (hex). DamagedError if it is not, before anything parses it."""
    found = hashlib.blake2b(footer_bytes, digest_size=32).hexdigest()
    if found != digest:
        raise DamagedError(
            f"the footer that came has digest {found[:16]}..., the one that was stored {digest[:16]}...: "
            "ask another replica, and check the node"
        )
    return parse(footer_bytes)


def place_of(chunk: pq.ColumnChunkMetaData) -> tuple[int, int]:
    """Where a chunk begins in its file, and its bytes: at its dictionary page if that is set, above 0 and smaller."""
    start, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset
    if dictionary is not None and 0 < dictionary < start:
        start = dictionary
    return start, chunk.total_compressed_size


class FooterCache:
    """The parsed footers that were used last, within a bound of bytes. Safe for threads."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._footers: OrderedDict[Hashable, ParsedFooter] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Bytes held, as estimated."""
        return self._bytes

    def get(self, key: Hashable, load: Callable[[], ParsedFooter]) -> ParsedFooter:
        """The footer of `key`, by `load` if it is not held. Two threads may load the same one; one of them is kept."""
        with self._lock:
            if (held := self._footers.get(key)) is not None:
                self._footers.move_to_end(key)
                return held
        footer = load()
        with self._lock:
            if key not in self._footers and footer.nbytes <= self._most_bytes:
                self._footers[key] = footer
                self._bytes += footer.nbytes
                while self._bytes > self._most_bytes:
                    _, dropped = self._footers.popitem(last=False)
                    self._bytes -= dropped.nbytes
        return footer
