"""Decode column chunks with pyarrow, from the original footer and the chunks, without the rest of the file.

pyarrow gets a file object that serves exactly the given chunks. Any other read raises DamagedError. A sparse buffer of
the file's size would be equally fast, but would copy every chunk and return zeros for missing data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from libraries.near_storage.errors import DamagedError, RequestError
from libraries.near_storage.reading import row_memory, working_types
from libraries.near_storage.reading.footers import ParsedFooter
from libraries.near_storage.reading.row_memory import Reading

BATCH_ROWS = 131_072
"""Maximum rows of a batch, for narrow rows. This is twice pyarrow's default, so that a row group of 125,000 rows is
decoded in one call. Two calls take a third more time (136 instead of 101 ms)."""

BATCH_BYTES = 16 << 20
"""Maximum uncompressed bytes of a batch, as counted by Parquet. Decoded data may take more, see `row_memory`."""

LEAST_FILLED = 0.75
"""Minimum ratio of a batch's number of rows to the next power of two. If the ratio is lower, the number of rows is
reduced to half of that power. The reason is that pyarrow decodes into buffers of 2^n values, and its allocator does not
reclaim the unused part of a buffer. For example, 500,000 rows of 93 columns (359 MB) took 810 MB in batches of 70,000
rows, but 530 MB in batches of 65,536 rows and a smaller last batch, in the same time (pyarrow 26, mimalloc)."""

UNCUT_ROWS = 1 << 15
"""Batches with fewer rows are not divided, because a second call costs more than it saves."""

ROUNDING_BYTES = 16
"""Slicing a column rounds the size of its bitmaps up to whole bytes. This is the maximum number of bytes per column
that rounding adds."""

Chunk: TypeAlias = "pa.Buffer | memoryview | bytes"
ReadChunk: TypeAlias = Callable[[int, int], Chunk]
"""Takes an offset in the file and a length. Returns the complete, checked chunk there, or raises DamagedError."""

_END = 1 << 62


Claim: TypeAlias = Callable[[int, str], None]
"""A function that is called with a number of bytes and their purpose before the memory is used. It raises an error if
the memory is not available."""


class ChunkFile:
    """A file for pyarrow in which only complete chunks can be read."""

    closed = False

    def __init__(self, read_chunk: ReadChunk) -> None:
        self._read_chunk = read_chunk
        self._position = 0

    def seek(self, offset: int, whence: int = 0) -> int:
        """Set the position of the next read and return it. The end of the file is assumed far behind every chunk,
        because pyarrow uses the end only to check positions."""
        self._position = offset + (0, self._position, _END)[whence]
        return self._position

    def tell(self) -> int:
        """Return the position of the next read."""
        return self._position

    def read(self, nbytes: int = -1) -> Chunk:
        """Return the chunk at the position. pyarrow uses the chunk's memory without a copy."""
        chunk = self._read_chunk(self._position, nbytes)
        self._position += nbytes
        return chunk

    def close(self) -> None:
        """Mark the file as closed. No memory is freed, because the provider of the chunks owns them."""
        self.closed = True


class Decoder:
    """Decodes row groups of one file. Not thread-safe."""

    def __init__(self, footer: ParsedFooter, read_chunk: ReadChunk) -> None:
        self._footer = footer
        self._read_chunk = read_chunk
        self._looked: dict[tuple[int, int], Chunk] = {}
        self._readers = [self._new_reader()]

    def _new_reader(self) -> pq.core.ParquetReader:
        source = pa.PythonFile(ChunkFile(self._chunk), mode="r")
        # With pre_buffer, pyarrow would read across the gaps between chunks.
        file = pq.ParquetFile(source, metadata=self._footer.metadata, pre_buffer=False)
        # pyarrow's public methods select columns by dotted names, which are not unique (see `columns`).
        return file.reader

    def batches(
        self, groups: Sequence[int], leaves: Sequence[int], batch_rows: int = BATCH_ROWS, beside: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `groups` in order, with only `leaves`, in batches of `batch_rows`; the last batch may be
        smaller.

        Batches have the types of `working_types.working`. Set `beside` for a second stream that is decoded alternately
        with the first, because a pyarrow reader has one batch size for all its streams. Without leaves the batches have
        rows and no columns. Raises DamagedError for pages that do not decode, RequestError for data that pyarrow does
        not support.
        """
        if beside and len(self._readers) == 1:
            self._readers.append(self._new_reader())
        reader = self._readers[beside]
        try:
            for batch in reader.iter_batches(batch_rows, row_groups=groups, column_indices=leaves, use_threads=True):
                yield working_types.working(batch)
        except pa.ArrowNotImplementedError as error:
            raise RequestError(
                f"row group {groups[0]}: pyarrow does not support its data: {str(error)[:200]}"
            ) from error
        except (pa.ArrowException, OSError) as error:
            raise DamagedError(f"row group {groups[0]}: cannot be decoded: {str(error)[:200]}") from error

    def estimate(self, groups: Sequence[int], leaves: Sequence[int], batch_rows: int) -> int:
        """Estimate the memory that `batches` uses, without reading chunks. Assumes values of average length."""
        return row_memory.estimate(self._footer, groups, leaves, batch_rows)

    def reading(
        self,
        groups: Sequence[int],
        leaves: Sequence[int],
        batch_rows: int,
        claim: Callable[[int], None] = lambda nbytes: None,
    ) -> Reading:
        """Return how many rows (at most `batch_rows`) a batch of these columns may have, and the memory that reading
        takes. `claim` is called with a part of this memory before a page is decompressed.

        Chunks that are inspected for this purpose are kept until `batches` uses them. Raises DamagedError for broken
        pages.
        """
        return row_memory.reading(self._footer, self._look, groups, leaves, batch_rows, claim)

    def forget(self) -> None:
        """Drop the chunks that `reading` inspected and `batches` did not use."""
        self._looked.clear()

    def _look(self, offset: int, nbytes: int) -> memoryview:
        place = offset, nbytes
        if place not in self._looked:
            self._looked[place] = self._read_chunk(offset, nbytes)
        return memoryview(self._looked[place]).cast("B")

    def _chunk(self, offset: int, nbytes: int) -> Chunk:
        looked = self._looked.pop((offset, nbytes), None)
        return self._read_chunk(offset, nbytes) if looked is None else looked


def stretches(
    metadata: pq.FileMetaData,
    groups: Sequence[int],
    leaves: Sequence[int],
    batch_rows: int = BATCH_ROWS,
    batch_bytes: int = BATCH_BYTES,
) -> Iterator[tuple[list[int], int]]:
    """Yield lists of row groups to decode together, each with the maximum number of rows per batch.

    Small groups are combined up to `batch_rows` and `batch_bytes`, because each pyarrow call has a fixed cost. A larger
    group is divided into batches with as many rows as fit.
    """
    together: list[int] = []
    rows = held = 0
    for group in groups:
        info = metadata.row_group(group)
        size = sum(info.column(leaf).total_uncompressed_size for leaf in leaves)
        if together and (rows + info.num_rows > batch_rows or held + size > batch_bytes):
            yield together, _fitting(rows, held, batch_rows, batch_bytes)
            together, rows, held = [], 0, 0
        together.append(group)
        rows, held = rows + info.num_rows, held + size
    if together:
        yield together, _fitting(rows, held, batch_rows, batch_bytes)


def _fitting(rows: int, held: int, batch_rows: int, batch_bytes: int) -> int:
    most = max(1, min(batch_rows, rows * batch_bytes // max(1, held)))
    together = min(rows, most)
    power = 1 << max(together - 1, 1).bit_length()
    return power // 2 if UNCUT_ROWS < together < LEAST_FILLED * power else most


def slices(batch: pa.RecordBatch, most_bytes: int = 2 * BATCH_BYTES) -> Iterator[pa.RecordBatch]:
    """Yield slices of at most `most_bytes` each, as far as slicing allows: single rows and dictionaries stay whole.

    A small dictionary may decode to many bytes, so the size is known only after decoding.
    """
    size = batch.nbytes
    if size <= most_bytes or batch.num_rows <= 1:
        yield batch
        return
    # Every slice includes the whole dictionaries. The rows of a slice may take as many bytes as the dictionaries, or
    # what remains of `most_bytes` if that is more.
    fixed = batch.slice(0, 0).nbytes
    allowed = max(most_bytes - fixed, fixed)
    if size - fixed <= allowed:
        yield batch
        return
    # The size of a slice counts bits as whole bytes. This rounding must not cause a further split.
    rounding = min(allowed // 2, ROUNDING_BYTES * batch.num_columns)
    rows = max(1, batch.num_rows * (allowed - rounding) // (size - fixed))
    for start in range(0, batch.num_rows, rows):
        yield from slices(batch.slice(start, rows), most_bytes)
