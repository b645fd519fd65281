"""Access path V1 on the node: read row groups with a Parquet reader and return matching rows (Weigand 2025, chapter 6).

pyarrow only decodes. `libraries.filters.pruning` chooses the row groups beforehand, because pyarrow's own pruning loses
rows with NaN. `filter_evaluation` filters the rows. The digest of each chunk is checked when the chunk is read. A
caller that has enough rows stops iterating.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from libraries.filters import filter_evaluation
from libraries.filters.tree import Predicate, columns_of
from libraries.near_storage.errors import DamagedError
from libraries.near_storage.parquet.compact import CompactMetadata
from libraries.near_storage.reading import ranges, working_types
from libraries.near_storage.reading.decoding import BATCH_BYTES, BATCH_ROWS, Chunk, Claim, Decoder, slices, stretches
from libraries.near_storage.reading.digests import chunk_digest
from libraries.near_storage.reading.footers import ParsedFooter
from libraries.near_storage.reading.row_mask import matching
from libraries.near_storage.words import number_of


class StoredChunks:
    """Chunks of one file for pyarrow. Each chunk is checked by its digest when it is read.

    `file` is the descriptor of the open file, or a buffer with the whole file if it was fetched. `compact` and
    `digests` ([row groups, leaf columns]) describe only this file.
    """

    def __init__(self, file: int | pa.Buffer, compact: CompactMetadata, digests: npt.NDArray[np.uint64]) -> None:
        self._file, self._compact, self._digests = file, compact, digests
        self._places: dict[tuple[int, int], int] = {}
        self.read_bytes = 0

    def hold(self, groups: Sequence[int]) -> None:
        """Allow reading only the chunks of these row groups, until the next call of `hold`."""
        rows = np.asarray(groups)
        chunks = self._compact.chunks[rows]
        starts = (self._compact.base[rows, None] + chunks["offset"]).ravel().tolist()
        places = zip(starts, chunks["length"].ravel().tolist(), strict=True)
        self._places = dict(zip(places, self._digests[rows].ravel().tolist(), strict=True))

    def read(self, offset: int, nbytes: int) -> Chunk:
        """Return the chunk of `nbytes` bytes at `offset`. Raises DamagedError if there is no such chunk, or if its
        bytes changed."""
        digest = self._places.get((offset, nbytes))
        if digest is None:
            raise DamagedError(f"the footer refers to {nbytes} bytes at byte {offset}, which are not a requested chunk")
        data = self._bytes(offset, nbytes)
        self.read_bytes += nbytes
        if chunk_digest(data) != digest:
            raise DamagedError(f"{nbytes} bytes at byte {offset} changed since they were stored; check the node")
        return data

    def _bytes(self, offset: int, nbytes: int) -> pa.Buffer:
        if isinstance(self._file, pa.Buffer):
            return self._file.slice(offset, nbytes)
        data = pa.allocate_buffer(nbytes)
        ranges.fill(self._file, offset, [memoryview(data).cast("B")])
        return data


class Chunks(Protocol):
    """Complete, checked chunks of one file. Only chunks of the row groups passed to `hold` can be read."""

    def hold(self, groups: Sequence[int]) -> None:
        """Allow reading only the chunks of these row groups, until the next call of `hold`."""

    def read(self, offset: int, nbytes: int) -> Chunk:
        """Return the chunk of `nbytes` bytes at `offset`. Raises DamagedError if there is no such chunk, or if its
        bytes changed."""


def batches(
    chunks: Chunks,
    footer: ParsedFooter,
    groups: Sequence[int],
    columns: Sequence[str],
    where: Predicate | None = None,
    all_match: Sequence[bool] | None = None,
    batch_rows: int = BATCH_ROWS,
    batch_bytes: int = BATCH_BYTES,
    limit: int | None = None,
    claim: Claim | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the row groups `groups` for which `where` is true, in stored order, with the columns `columns`.

    `where` is bound to the schema of the file. `all_match` states for each row group whether pruning proved that all
    rows match. Row groups that are decoded together are not filtered if all rows of all these groups match. Otherwise
    the filter's columns are decoded first, and the remaining columns from the first match on. Batches have the types of
    `working_types.working` and hold at most about twice `batch_bytes`. Decoded rows without a match are reported by an
    empty batch. `limit` is the number of rows after which the caller stops; with a limit, fewer rows are decoded at a
    time. `claim` is called before memory is used. Raises DamagedError for changed bytes, RequestError for an unknown
    column.
    """
    decoder = Decoder(footer, chunks.read)
    tested = columns_of(where) if where is not None else frozenset()
    needed = footer.leaves.of(tested.union(columns))
    first = footer.leaves.of(tested)
    rest = [leaf for leaf in needed if leaf not in set(first)]
    known = dict(zip(groups, all_match, strict=True)) if all_match is not None else {}
    asked = footer.leaves.of(columns)
    schema = working_types.working_schema(pa.schema([footer.schema.field(name) for name in columns]))
    nothing = pa.RecordBatch.from_arrays([pa.nulls(0, type_) for type_ in schema.types], schema=schema)
    for together, fitting in stretches(footer.metadata, groups, needed, batch_rows, batch_bytes):
        chunks.hold(together)
        decoder.forget()
        stretch = _Stretch(decoder, together, fitting, claim)
        if where is None or all(known.get(group, False) for group in together):
            found = stretch.rows(asked, limit)
        else:
            found = stretch.matching(first, rest, where)
        for batch in found:
            if not batch.num_rows:
                yield nothing
                continue
            yield from slices(batch.select(columns), 2 * batch_bytes)


class _Stretch:
    """Row groups that are decoded together, and the memory claimed for them."""

    def __init__(self, decoder: Decoder, groups: Sequence[int], rows: int, claim: Claim | None) -> None:
        self._decoder = decoder
        self._groups = groups
        self._rows = rows
        self._claim = claim
        self._needs: dict[tuple[int, ...], int] = {}

    def _expect(self, *parts: Sequence[int]) -> None:
        """Claim memory for all data that may be in memory at once, before any of the data is decoded. If claims grew
        later, two requests could wait for each other forever."""
        for leaves in parts:
            self._needs[tuple(leaves)] = self._decoder.estimate(self._groups, leaves, self._rows)
        self._claim_all()

    def _claim_all(self) -> None:
        if self._claim is not None:
            columns = sum(len(leaves) for leaves in self._needs)
            self._claim(sum(self._needs.values()), f"row group {self._groups[0]}, {number_of(columns, 'column')}")

    def _decoded(
        self, leaves: Sequence[int], most_rows: int, beside: bool = False
    ) -> tuple[int, Iterator[pa.RecordBatch]]:
        """Return the maximum number of rows per batch, and an iterator over the batches of these leaf columns."""
        key = tuple(leaves)

        def claim(nbytes: int) -> None:
            if nbytes > self._needs[key]:
                self._needs[key] = nbytes
                self._claim_all()

        reading = self._decoder.reading(self._groups, leaves, most_rows, claim)
        self._needs[key] = reading.nbytes
        self._claim_all()
        return reading.rows, self._decoder.batches(self._groups, leaves, reading.rows, beside)

    def rows(self, leaves: Sequence[int], limit: int | None) -> Iterator[pa.RecordBatch]:
        self._expect(leaves)
        yield from self._decoded(leaves, self._rows if limit is None else max(1, min(self._rows, limit)))[1]

    def matching(self, first: Sequence[int], rest: Sequence[int], where: Predicate) -> Iterator[pa.RecordBatch]:
        """Yield matching rows. Decode `first`, the filter's columns, and from the first match on also the columns
        `rest`.

        Batches of `rest` may have fewer rows than batches of `first`.
        """
        self._expect(first, rest)
        behind = rows = 0
        others: _Rows | None = None
        for batch in self._decoded(first, self._rows)[1]:
            matches = filter_evaluation.mask(where, batch)
            if not matches.true_count:
                behind += batch.num_rows
                yield batch.slice(0, 0)
                continue
            if not rest:
                yield matching(batch, matches)
                continue
            if others is None:
                rows, decoded = self._decoded(rest, self._rows, beside=True)
                others = _Rows(decoded, rows)
            for start in range(0, batch.num_rows, rows):
                chosen = matches.slice(start, rows)
                if not chosen.true_count:
                    behind += len(chosen)
                    yield batch.slice(0, 0)
                    continue
                others.skip(behind)
                behind = 0
                yield matching(_side_by_side(batch.slice(start, rows), others.next(len(chosen))), chosen)


def _side_by_side(one: pa.RecordBatch, other: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*one.columns, *other.columns], schema=pa.schema([*one.schema, *other.schema]))


class _Rows:
    """Takes any number of rows from a stream of batches. Columns of a row group that are read as two streams can so be
    joined, although the streams may have batches of different sizes."""

    def __init__(self, batches: Iterator[pa.RecordBatch], rows: int) -> None:
        self._batches = batches
        self._rows = rows
        self._left: list[pa.RecordBatch] = []

    def skip(self, count: int) -> None:
        """Skip `count` rows, holding at most one batch at a time."""
        while count:
            count -= self.next(min(count, self._rows)).num_rows

    def next(self, count: int) -> pa.RecordBatch:
        """Return the next `count` rows. Raises DamagedError if the stream has fewer rows."""
        taken: list[pa.RecordBatch] = []
        while count or not taken:
            batch = self._left.pop() if self._left else next(self._batches, None)
            if batch is None:
                raise DamagedError("columns of one row group have different numbers of rows")
            taken.append(batch.slice(0, count))
            if batch.num_rows > count:
                self._left.append(batch.slice(count))
            count -= taken[-1].num_rows
        return taken[0] if len(taken) == 1 else pa.concat_batches(taken)
