"""Create the stream that answers a ticket: rows (V1), partial aggregates (V1), chunks (V2), or whole files.

A stream states the position of each batch, ends with totals, and can resume after the rows that a client already has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from libraries.filters import binding
from libraries.filters.tree import columns_of
from libraries.near_storage import aggregates
from libraries.near_storage.errors import RequestError, StaleError
from libraries.near_storage.predicates import wire
from libraries.near_storage.query import Query
from libraries.near_storage.reading import by_parquet, by_ranges, footers, ranges, working_types
from libraries.near_storage.reading.columns import leaves_of
from libraries.near_storage.reading.decoding import Claim, slices, stretches
from libraries.near_storage.reading.footers import FooterCache, ParsedFooter
from libraries.near_storage.serving import batches, clock
from libraries.near_storage.serving.limits import FOOTERS_SHARE, Limits, Request
from libraries.near_storage.serving.protocol import Note, Piece, Position, Totals, encode, from_runs
from libraries.near_storage.serving.tickets import Grant, Wish
from libraries.near_storage.storing.partition_metadata import DESCRIBED_PER_FOOTER, PartitionInfo
from libraries.near_storage.storing.partitions import Describing, PartitionStore
from libraries.near_storage.words import number_of

ALIVE_S = 1.0
"""Seconds without a batch after which a working node sends a sign of life, an empty batch."""
WHOLE = -1
"""Used in place of the numbers of a row group and a column for data that are not a column chunk, i.e. a footer, a piece
of a whole file, or aggregates of a whole partition."""
PARTS_MERGED = 16
"""Number of partial aggregates that are held before they are merged."""
MERGED_BYTES = 4 << 20
"""Partial aggregates are merged once they take more than this many bytes, and more than twice the bytes of the last
merge's result."""
COPIES_MERGED = 4
"""Copies of partial aggregates in memory during a merge, which concatenates, groups and sorts them."""
COPIES_SENT = 3
"""Copies of a batch in memory while its chunks or bytes are read and sent."""

Stream: TypeAlias = tuple[pa.Schema, Iterator[tuple[pa.RecordBatch, bytes]]]


class _Item(NamedTuple):
    """A batch, its position in the answer, and the number of row groups that are complete with it. Without a batch, the
    item reports progress."""

    partition: int
    group: int
    rows: int
    batch: pa.RecordBatch | None
    groups: int = 0


@dataclass
class Sent:
    """Counts of what was sent since the node started."""

    batch_bytes: int = 0


class Answering:
    """Creates the streams of one node. Thread-safe."""

    def __init__(self, store: PartitionStore, limits: Limits) -> None:
        self._store = store
        self._limits = limits
        self._footers = FooterCache(int(FOOTERS_SHARE * limits.memory_bytes))
        self.sent = Sent()

    def stream(self, grant: Grant, wish: Wish, request: Request) -> Stream:
        """Return the schema and the batches that answer a ticket. Each batch comes with its metadata (`protocol.Note`).

        Memory is claimed for `request`, and other requests may compute between two of its batches. Raises
        NotFoundError, at once or during iteration, if a partition is no longer on the node.
        """
        if not grant.pieces:
            raise RequestError("ticket: names no partition")
        if grant.kind == "all":
            return by_ranges.PARTS, self._noted(by_ranges.PARTS, self._whole(grant, wish, request.claim), request)
        query = wire.decode_query(bytes(grant.query))
        if grant.kind == "v2":
            chunks = self._parts(grant, wish, query, request)
            return by_ranges.PARTS, self._noted(by_ranges.PARTS, chunks, request)
        schema = self._info(grant.pieces[0], request).schema
        shown = answer_schema(query, schema)
        if query.aggregated:
            plan = aggregates.plan(query, schema)
            return shown, self._noted(shown, self._aggregated(grant, wish, query, plan, request), request)
        query = replace(query, columns=tuple(shown.names))
        return shown, self._noted(shown, self._rows(grant, wish, query, shown, request), request, query.limit)

    # --- the four kinds ----------------------------------------------------------------------------------

    def _rows(self, grant: Grant, wish: Wish, query: Query, shown: pa.Schema, request: Request) -> Iterator[_Item]:
        """Yield matching rows in stored order."""
        working = working_types.working_schema(shown)
        for piece, groups, skipped in _remaining(grant, wish):
            info = self._info(piece, request)
            columns = query.columns or ()
            stretches = self._stretches(grant, piece, info, groups, query, columns, request.claim, query.limit)
            for group, finished, rows in stretches:
                done = 0
                for large in rows:
                    if not large.num_rows:
                        yield _Item(piece.position, group, done, None)
                        continue
                    plain = batches.to_plain(batches.without_empty_masks(large), working)
                    for batch in slices(plain, self._limits.batch_bytes):
                        done += batch.num_rows
                        if skipped >= batch.num_rows:
                            skipped -= batch.num_rows
                            continue
                        fresh = batch.slice(skipped)
                        skipped = 0
                        yield _Item(piece.position, group, done - fresh.num_rows, fresh)
                yield _Item(piece.position, group, done, None, finished)

    def _aggregated(
        self, grant: Grant, wish: Wish, query: Query, plan: aggregates.AggregatePlan, request: Request
    ) -> Iterator[_Item]:
        """Yield the partial aggregates of each partition. The number of batches depends on the number of groups."""
        claims = _Claims(request.claim)
        for piece, groups, _ in _remaining(grant, wish):
            info = self._info(piece, request)
            parts: list[pa.Table] = []
            merged_bytes = 0
            stretches = self._stretches(grant, piece, info, groups, query, plan.columns, claims.read)
            for group, finished, rows in stretches:
                for batch in rows:
                    yield _Item(piece.position, group, 0, None)
                    if not batch.num_rows:
                        continue
                    parts.append(aggregates.part(plan, pa.Table.from_batches([batch])))
                    held = sum(part.nbytes for part in parts)
                    claims.keep(COPIES_MERGED * held, f"the groups up to row group {group}")
                    if len(parts) >= PARTS_MERGED or held > max(MERGED_BYTES, 2 * merged_bytes):
                        parts = [aggregates.merged(plan, parts)]
                        merged_bytes = parts[0].nbytes
                yield _Item(piece.position, group, 0, None, finished)
            done = 0
            for large in aggregates.merged(plan, parts).combine_chunks().to_batches() if parts else ():
                for batch in slices(large, self._limits.batch_bytes):
                    yield _Item(piece.position, WHOLE, done, batch)
                    done += batch.num_rows

    def _parts(self, grant: Grant, wish: Wish, query: Query, request: Request) -> Iterator[_Item]:
        """Yield the footers that the client lacks, and the chunks that it needs."""
        for piece, groups, _ in _remaining(grant, wish):
            info = self._info(piece, request)
            request.claim(
                COPIES_SENT * max(self._limits.batch_bytes, info.footer_bytes),
                f"chunks of {number_of(len(groups), 'row group')}",
            )
            _check_groups(info, groups)
            with self._store.opened(piece.digest) as descriptor:
                if piece.position not in wish.known:
                    end = self._store.footer_bytes(piece.digest)
                    yield _Item(piece.position, WHOLE, 0, _bytes_of(info.stored_bytes - len(end), end))
                leaves = leaves_of(info.schema, needed_columns(query, info.schema))
                for batch in by_ranges.parts(
                    descriptor, info.compact, info.chunk_digests, groups, leaves, self._limits.batch_bytes
                ):
                    yield _Item(piece.position, batch.column(0)[0].as_py(), 0, batch)
                yield _Item(piece.position, WHOLE, 0, None, len(groups))

    def _whole(self, grant: Grant, wish: Wish, claim: Claim) -> Iterator[_Item]:
        """Yield files, byte for byte."""
        claim(COPIES_SENT * self._limits.batch_bytes, "whole files")
        for piece, groups, _ in _remaining(grant, wish):
            with self._store.opened(piece.digest) as descriptor:
                size = os.fstat(descriptor).st_size
                for start in range(0, size, self._limits.batch_bytes):
                    data = pa.allocate_buffer(min(self._limits.batch_bytes, size - start))
                    ranges.fill(descriptor, start, [memoryview(data).cast("B")])
                    yield _Item(piece.position, WHOLE, 0, _bytes_of(start, data))
                yield _Item(piece.position, WHOLE, 0, None, len(groups))

    # --- inside ------------------------------------------------------------------------------------------

    def _noted(
        self, schema: pa.Schema, items: Iterator[_Item], request: Request, limit: int | None = None
    ) -> Iterator[tuple[pa.RecordBatch, bytes]]:
        """Yield batches with their metadata, then the totals. Stop reading after `limit` rows."""
        empty = empty_batch(schema)
        number = rows = groups = 0
        limited = limit == 0
        told_s = clock.elapsed_s()
        for item in () if limited else items:
            groups += item.groups
            batch = item.batch
            if batch is None:
                if clock.elapsed_s() - told_s < ALIVE_S:
                    request.pause()
                    continue
                batch = empty
            if limit is not None and rows + batch.num_rows >= limit:
                batch, limited = batch.slice(0, limit - rows), True
            if schema is not by_ranges.PARTS:
                batch = batches.sealed(batch, schema)
            place = (number, item.partition, item.group, item.rows)
            digest = 0 if schema is by_ranges.PARTS else batches.digest_of(batch, place)
            yield batch, encode(Note(*place, digest))
            self.sent.batch_bytes += batch.nbytes
            number, rows, told_s = number + 1, rows + batch.num_rows, clock.elapsed_s()
            if limited:
                break
        yield empty, encode(Totals(number, rows, groups, limited))

    def _stretches(
        self,
        grant: Grant,
        piece: Piece,
        info: PartitionInfo,
        groups: list[int],
        query: Query,
        columns: tuple[str, ...],
        claim: Claim,
        limit: int | None = None,
    ) -> Iterator[tuple[int, int, Iterator[pa.RecordBatch]]]:
        """Yield a tuple for row groups that are read together: number of the first row group, count of row groups, and
        an iterator over the matching rows."""
        _check_groups(info, groups)
        claims = _Claims(claim)
        footer = self._footer(info, grant, claims)
        where = None if query.where is None or not grant.filtered else binding.bind(query.where, info.schema)
        tested = columns_of(where) if where is not None else frozenset()
        leaves = leaves_of(info.schema, tested.union(columns))
        plain = frozenset(from_runs(piece.plain))
        with self._store.opened(piece.digest) as descriptor:
            chunks = by_parquet.StoredChunks(descriptor, info.compact, info.chunk_digests)
            for together, _ in stretches(footer.metadata, groups, leaves):
                all_match = [group in plain for group in together]
                rows = by_parquet.batches(
                    chunks, footer, together, columns, where, all_match, limit=limit, claim=claims.read
                )
                yield together[0], len(together), rows

    def _info(self, piece: Piece, request: Request) -> PartitionInfo:
        return self._store.info(piece.digest, describing_within(request))

    def _footer(self, info: PartitionInfo, grant: Grant, claims: _Claims) -> ParsedFooter:
        def load() -> ParsedFooter:
            claims.keep((footers.PARSED_PER_RAW + 1) * info.footer_bytes, f"a footer of {info.footer_bytes:,} bytes")
            return footers.checked(self._store.footer_bytes(info.digest), info.footer_digest)

        return load() if grant.footers == "parsed" else self._footers.get(info.digest, load)


class _Claims:
    """Adds up a request's memory for the row groups that are read now and for data that are kept. The sum is claimed,
    because each claim of a request replaces the previous claim."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._read_bytes = self._kept_bytes = 0

    def read(self, nbytes: int, what: str) -> None:
        """Claim memory for the row groups that are read now. This claim replaces the claim for the previous row
        groups."""
        self._read_bytes = nbytes
        self._claim(self._read_bytes + self._kept_bytes, what)

    def keep(self, nbytes: int, what: str) -> None:
        """Claim memory that stays in use while further row groups are read."""
        self._kept_bytes = nbytes
        self._claim(self._read_bytes + self._kept_bytes, what)


def describing_within(request: Request) -> Describing:
    """Return the context that adds the memory for describing a partition to the claim of a running request."""
    return lambda footer_bytes: request.claiming_more(
        DESCRIBED_PER_FOOTER * footer_bytes, f"the description of a footer of {footer_bytes:,} bytes"
    )


def needed_columns(query: Query, schema: pa.Schema) -> tuple[str, ...]:
    """Return the columns that a query's answer, filter and groups need, in the table's order."""
    if query.aggregated:
        shown: tuple[str, ...] = tuple(aggregates.plan(query, schema).columns)
    else:
        shown = tuple(schema.names) if query.columns is None else query.columns
    wanted = frozenset(shown) | (columns_of(query.where) if query.where is not None else frozenset())
    return tuple(name for name in schema.names if name in wanted)


def answer_schema(query: Query, schema: pa.Schema) -> pa.Schema:
    """Return the schema of the V1 stream for `query` on a table of `schema`: rows, or partial aggregates."""
    if query.aggregated:
        return batches.plain_schema(aggregates.plan(query, schema).part_schema)
    names = schema.names if query.columns is None else query.columns
    return batches.plain_schema(pa.schema([binding.field_of(schema, name) for name in names]))


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows, in the memory layout of received batches."""
    columns = [pa.nulls(0, field.type) for field in schema]
    return batches.settled(pa.RecordBatch.from_arrays(columns, schema=schema))


def _remaining(grant: Grant, wish: Wish) -> Iterator[tuple[Piece, list[int], int]]:
    """Yield the pieces and row groups that a client still needs, and how many rows of the first of these row groups the
    client already has."""
    after = wish.after or Position(-1, -1, 0)
    for piece in grant.pieces:
        if piece.position < after.partition:
            continue
        here = piece.position == after.partition
        groups = [group for group in from_runs(piece.groups) if not here or group >= after.group]
        yield piece, groups, after.rows if here else 0


def _check_groups(info: PartitionInfo, groups: list[int]) -> None:
    """Raise StaleError if the partition does not have these row groups, i.e. if the plan was made for another
    partition."""
    if groups and not 0 <= min(groups) <= max(groups) < len(info.compact.rows):
        raise StaleError(
            f"Partition {info.digest} has {len(info.compact.rows)} row groups, but the request names the row groups "
            f"{min(groups)} to {max(groups)}, counted from 0"
        )


def _bytes_of(offset: int, data: bytes | pa.Buffer) -> pa.RecordBatch:
    """Return bytes of the file from `offset` on, as a batch of `PARTS`."""
    length = len(data) if isinstance(data, bytes) else data.size
    bounds = pa.py_buffer(np.array([0, length], np.int64))
    columns = [
        pa.array([WHOLE], pa.int32()),
        pa.array([WHOLE], pa.int32()),
        pa.array([offset], pa.uint64()),
        pa.array([0], pa.uint64()),
        pa.LargeBinaryArray.from_buffers(pa.large_binary(), 1, [None, bounds, pa.py_buffer(data)]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=by_ranges.PARTS)
