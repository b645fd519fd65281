"""Original footers of Parquet files, parsed by pyarrow, to decode chunks and ranges.

pyarrow must not parse hostile footers. A footer is parsed here only if a digest proves that `parquet.footer` accepted
the same footer when the file was stored.
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
from libraries.near_storage.reading import pages
from libraries.near_storage.reading.columns import Leaves
from libraries.near_storage.reading.leaf_sizes import Shape, shapes

UNCOMPRESSED, COMPRESSED, VALUES = range(3)

_MOST_INT64 = (1 << 63) - 1

PARSED_PER_RAW = 9
"""Assumed bytes in memory of a parsed footer, per byte of the stored footer. pyarrow 26 took 8.1 bytes for 93 columns
and 223 row groups; this module's objects add to this. Weigand 2025 (8.4) reports 10.3 bytes for parquet2."""


@dataclass(frozen=True)
class ParsedFooter:
    """Everything that pyarrow needs to decode chunks of one file."""

    metadata: pq.FileMetaData
    schema: pa.Schema
    """The table's columns as pyarrow reads them."""

    @cached_property
    def leaves(self) -> Leaves:
        """The leaf columns that belong to each top-level column."""
        return Leaves(self.schema)

    @cached_property
    def shapes(self) -> list[Shape]:
        """The memory that values of each leaf column take."""
        return shapes(self.metadata, self.schema)

    @cached_property
    def longest(self) -> dict[tuple[int, int], int]:
        """Bytes of the longest dictionary value by (row group, leaf), for the chunks that were inspected so far."""
        return {}

    @cached_property
    def _page_sizes(self) -> npt.NDArray[np.int64]:
        return np.full((self.metadata.num_row_groups, self.metadata.num_columns, 2), -1, np.int64)

    @cached_property
    def _sizes(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        shape = self.metadata.num_row_groups, self.metadata.num_columns
        return np.zeros(shape, np.bool_), np.zeros((*shape, 3), np.int64)

    def chunk_sizes(self, group: int, leaves: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return the sizes of a row group's chunks, [leaves, 3]: UNCOMPRESSED bytes, COMPRESSED bytes and number of
        VALUES.

        UNCOMPRESSED and VALUES may be wrong, because a hostile footer can declare any number. See `page_sizes`.
        """
        known, sizes = self._sizes
        numbers = np.asarray(leaves, np.intp)
        missing = numbers[~known[group, numbers]].tolist()
        if missing:
            info = self.metadata.row_group(group)
            for leaf in missing:
                chunk = info.column(leaf)
                sizes[group, leaf] = (
                    max(0, chunk.total_uncompressed_size),
                    chunk.total_compressed_size,
                    chunk.num_values,
                )
            known[group, missing] = True
        return sizes[group, numbers]

    def page_sizes(
        self, group: int, leaves: Sequence[int], look: Callable[[int, int], memoryview]
    ) -> npt.NDArray[np.int64]:
        """Return the `PageSizes` of a row group's chunks, [leaves, 2].

        `look` returns a chunk by its position in the file. It is called only once per chunk, because digests prove that
        chunks do not change.
        """
        known = self._page_sizes[group]
        numbers = np.asarray(leaves, np.intp)
        missing = numbers[known[numbers, 1] < 0].tolist()
        if missing:
            info = self.metadata.row_group(group)
            for leaf in missing:
                chunk = look(*place_of(info.column(leaf)))
                try:
                    decoded_bytes, values = pages.sizes(chunk)
                except DamagedError as error:
                    raise DamagedError(f"row group {group}, column {leaf}: {error}") from error
                known[leaf] = min(decoded_bytes, _MOST_INT64), values
        return known[numbers]

    @property
    def nbytes(self) -> int:
        """Estimated memory use, which pyarrow does not report."""
        return PARSED_PER_RAW * self.metadata.serialized_size


def parse(footer_bytes: bytes) -> ParsedFooter:
    """Parse the end of a file, which holds the footer, the footer's length (4 bytes) and `PAR1`. Raises DamagedError if
    pyarrow fails."""
    try:
        metadata = pq.read_metadata(pa.BufferReader(footer_bytes))
        return ParsedFooter(metadata, metadata.schema.to_arrow_schema())
    except (pa.ArrowException, OSError) as error:
        raise DamagedError(f"cannot parse a footer of {len(footer_bytes)} bytes: {str(error)[:200]}") from error


def checked(footer_bytes: bytes, digest: str) -> ParsedFooter:
    """Parse a footer after checking its blake2b-256 digest. Raises DamagedError if the digest is not `digest` (hex)."""
    found = hashlib.blake2b(footer_bytes, digest_size=32).hexdigest()
    if found != digest:
        raise DamagedError(
            f"the received footer has digest {found[:16]}..., but the stored one has {digest[:16]}...: "
            "use another replica, and check the node"
        )
    return parse(footer_bytes)


def place_of(chunk: pq.ColumnChunkMetaData) -> tuple[int, int]:
    """Return the start and the length of a chunk in the file. The chunk starts with its dictionary page if the footer
    gives a valid position of that page before the first data page."""
    start, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset
    if dictionary is not None and 0 < dictionary < start:
        start = dictionary
    return start, chunk.total_compressed_size


class FooterCache:
    """The most recently used parsed footers, within a limit of bytes. Thread-safe."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._footers: OrderedDict[Hashable, ParsedFooter] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Estimated bytes held."""
        return self._bytes

    def get(self, key: Hashable, load: Callable[[], ParsedFooter]) -> ParsedFooter:
        """Return the cached footer of `key`, or load it with `load`. If two threads load the same footer, only one
        result is kept."""
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
