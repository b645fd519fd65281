"""The Parquet reader (V1) at the node: rows that match, decoded where they lie (thesis, chapter 6).

pyarrow decodes, and nothing more: which row groups are read is decided by our rules before (pyarrow's own pruning loses
rows with NaN), rows are filtered by our exact evaluation, and each chunk is checked by its digest when it is read. It
knows no network and no limit of rows: whoever has enough stops asking.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from libraries.near_storage.errors import DamagedError
from libraries.near_storage.parquet.compact import CompactMetadata
from libraries.near_storage.predicates import evaluating
from libraries.near_storage.predicates.tree import Predicate, columns_of
from libraries.near_storage.reading import ranges
from libraries.near_storage.reading.decoding import BATCH_BYTES, BATCH_ROWS, Chunk, Decoder, slices, stretches
from libraries.near_storage.reading.digests import chunk_digest
from libraries.near_storage.reading.filtering import matching
from libraries.near_storage.reading.footers import ParsedFooter


class StoredChunks:
    """Chunks of one file as pyarrow asks for them, checked by their digests when they are read.

    `file` is the descriptor of the open file, or all of its bytes where these were fetched. `compact` and `digests`
    ([row groups, leaf columns]) are of this file alone.
    """

    def __init__(self, file: int | pa.Buffer, compact: CompactMetadata, digests: npt.NDArray[np.uint64]) -> None:
        self._file, self._compact, self._digests = file, compact, digests
        self._places: dict[tuple[int, int], int] = {}
        self.read_bytes = 0

    def hold(self, groups: Sequence[int]) -> None:
        """Answer for the chunks of these row groups, and no others."""
        rows = np.asarray(groups)
        chunks = self._compact.chunks[rows]
        starts = (self._compact.base[rows, None] + chunks["offset"]).ravel().tolist()
        places = zip(starts, chunks["length"].ravel().tolist(), strict=True)
        self._places = dict(zip(places, self._digests[rows].ravel().tolist(), strict=True))

    def read(self, offset: int, nbytes: int) -> Chunk:
        """The chunk that lies at `offset`. DamagedError if none of that length does, or if its bytes changed."""
        digest = self._places.get((offset, nbytes))
        if digest is None:
            raise DamagedError(f"the footer leads to {nbytes} bytes at {offset}, which are no chunk of the row group")
        data = self._bytes(offset, nbytes)
        self.read_bytes += nbytes
        if chunk_digest(data) != digest:
            raise DamagedError(f"{nbytes} bytes at {offset} changed since they were stored; check the node")
        return data

    def _bytes(self, offset: int, nbytes: int) -> pa.Buffer:
        if isinstance(self._file, pa.Buffer):
            return self._file.slice(offset, nbytes)
        data = pa.allocate_buffer(nbytes)
        ranges.fill(self._file, offset, [memoryview(data).cast("B")])
        return data


class Chunks(Protocol):
    """Chunks of one file, whole and checked: of the row groups that are held at a time, and no others."""

    def hold(self, groups: Sequence[int]) -> None:
        """Answer for the chunks of these row groups."""

    def read(self, offset: int, nbytes: int) -> Chunk:
        """The chunk that lies at `offset`. DamagedError if none of that length does, or if its bytes changed."""


def batches(
    chunks: Chunks,
    footer: ParsedFooter,
    groups: Sequence[int],
    columns: Sequence[str],
    where: Predicate | None = None,
    all_match: Sequence[bool] | None = None,
    batch_rows: int = BATCH_ROWS,
    batch_bytes: int = BATCH_BYTES,
) -> Iterator[pa.RecordBatch]:
    """The rows of `groups` of one file where `where` (bound) is true, in stored order, with `columns` in their order.

    `all_match` says of each group whether pruning found that all its rows match: they are not filtered. Of the other
    groups the filter's columns are decoded first, and the rest from the first match on. Batches hold at most about
    twice `batch_bytes`, and are never empty. DamagedError for changed bytes, RequestError for an unknown column.
    """
    decoder = Decoder(footer, chunks.read)
    tested = columns_of(where) if where is not None else frozenset()
    needed = footer.leaves.of(tested.union(columns))
    first = footer.leaves.of(tested)
    rest = [leaf for leaf in needed if leaf not in set(first)]
    known = dict(zip(groups, all_match, strict=True)) if all_match is not None else {}
    asked = footer.leaves.of(columns)
    for together, fitting in stretches(footer.metadata, groups, needed, batch_rows, batch_bytes):
        chunks.hold(together)
        if where is None or all(known.get(group, False) for group in together):
            found = decoder.batches(together, asked, fitting)
        else:
            found = _matching(decoder, together, first, rest, fitting, where)
        for batch in found:
            yield from slices(batch.select(columns), 2 * batch_bytes)


def _matching(
    decoder: Decoder, groups: Sequence[int], first: Sequence[int], rest: Sequence[int], rows: int, where: Predicate
) -> Iterator[pa.RecordBatch]:
    """Rows that match, by decoding the columns `first` that decide, and beside them `rest` from the first match on."""
    skipped: list[int] = []
    others = _Rows(decoder.batches(groups, rest, rows)) if rest else None
    for batch in decoder.batches(groups, first, rows):
        matches = evaluating.mask(where, batch)
        if not matches.true_count:
            skipped.append(batch.num_rows)
            continue
        if others is not None:
            for count in skipped:
                others.next(count)
            skipped.clear()
            batch = _side_by_side(batch, others.next(batch.num_rows))
        yield matching(batch, matches)


def _side_by_side(one: pa.RecordBatch, other: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*one.columns, *other.columns], schema=pa.schema([*one.schema, *other.schema]))


class _Rows:
    """Rows of a stream of batches, taken in numbers of our own: two streams of one row group may be cut differently."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._left: list[pa.RecordBatch] = []

    def next(self, count: int) -> pa.RecordBatch:
        """The next `count` rows. DamagedError if there are fewer."""
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
