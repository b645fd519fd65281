"""Turn the checked batches of a stream into rows. A stream holds rows or partial aggregates for the access path V1,
column chunks for V2, and whole files for `all`.

Each batch of rows comes with the position after which a broken stream resumes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from libraries.filters import filter_evaluation
from libraries.near_storage.errors import DamagedError, UnavailableError
from libraries.near_storage.query import Query
from libraries.near_storage.reading import by_parquet, by_ranges, byte_range_access, footers
from libraries.near_storage.reading.columns import leaves_of
from libraries.near_storage.reading.decoding import stretches
from libraries.near_storage.reading.fetched import FetchedChunks
from libraries.near_storage.reading.footers import FooterCache, ParsedFooter
from libraries.near_storage.reading.row_mask import matching
from libraries.near_storage.serving.batches import from_plain
from libraries.near_storage.serving.node_streams import WHOLE, answer_schema, needed_columns
from libraries.near_storage.serving.protocol import Note, Piece, Position, Share, Way, from_runs

Checked: TypeAlias = Iterator[tuple[Note, pa.RecordBatch]]
Assembled: TypeAlias = Iterator[tuple[Position, int, pa.RecordBatch | None]]
"""Per batch: the position after which a broken stream resumes, the partition's number, and the batch."""


@dataclass(frozen=True)
class Assembling:
    """Turns the streams of one query into rows. `query` is bound to the table's schema; `shown` is the schema of the
    resulting batches.

    For aggregates, `shown` is the schema of the partial aggregates (V1), or of the rows from which the client computes
    the aggregates. Without `refilter` (for measurements), V2 and `all` return all rows of the received row groups.
    """

    way: Way
    query: Query
    table_schema: pa.Schema
    shown: pa.Schema
    footers: FooterCache
    refilter: bool = True

    @property
    def schema(self) -> pa.Schema:
        """The schema of the streams."""
        return answer_schema(self.query, self.table_schema) if self.way == "v1" else by_ranges.PARTS

    @property
    def limit(self) -> int | None:
        """The number of rows after which a node stops, or None if it sends all rows."""
        return self.query.limit if self.way == "v1" and not self.query.aggregated else None

    def known_footers(self, share: Share) -> tuple[int, ...]:
        """Return the positions of the partitions whose footers a V2 node need not send, because the client has cached
        them."""
        if self.way != "v2":
            return ()
        return tuple(piece.position for piece in share.pieces if self._holds(piece.digest))

    def assembled(self, share: Share, after: Position | None, batches: Checked) -> Assembled:
        """Yield the rows of a stream that resumes after `after`. Raises DamagedError if the stream does not follow the
        plan."""
        if self.way == "v2":
            return self._of_chunks(share, after, _Parts(batches))
        if self.way == "all":
            return self._of_files(share, after, batches)
        if self.query.aggregated:
            return self._of_aggregates(batches)
        return self._of_rows(share, after, batches)

    # --- the ways ----------------------------------------------------------------------------------------

    def _of_rows(self, share: Share, after: Position | None, batches: Checked) -> Assembled:
        groups = {piece.position: frozenset(from_runs(piece.groups)) for piece in share.pieces}
        last = after or Position(-1, -1, 0)
        for note, batch in batches:
            same = (note.partition, note.group) == (last.partition, last.group)
            if note.group not in groups.get(note.partition, ()):
                raise DamagedError(f"{_where(note)} arrived, which was not requested")
            if note.rows != (expected := last.rows if same else 0):
                raise DamagedError(
                    f"{_where(note)}: the rows that arrived begin at row {note.rows}, expected row {expected}"
                )
            if (note.partition, note.group) < (last.partition, last.group):
                raise DamagedError(
                    f"{_where(note)} arrived after partition {last.partition}, row group {last.group}, out of order"
                )
            last = Position(note.partition, note.group, note.rows + batch.num_rows)
            yield last, note.partition, from_plain(batch, self.shown)

    def _of_aggregates(self, batches: Checked) -> Assembled:
        """Yield the partial aggregates of a partition once all its batches have arrived."""
        held: list[pa.RecordBatch] = []
        current = -1
        for note, batch in batches:
            if note.partition < current:
                raise DamagedError(
                    f"the aggregate of partition {note.partition} arrived after that of partition {current}, out of "
                    "order"
                )
            if note.partition > current:
                for part in held:
                    yield Position(current + 1, WHOLE, 0), current, part
                held, current = [], note.partition
            held.append(from_plain(batch, self.shown))
        for part in held:
            yield Position(current + 1, WHOLE, 0), current, part

    def _of_chunks(self, share: Share, after: Position | None, parts: _Parts) -> Assembled:
        columns = needed_columns(self.query, self.table_schema)
        leaves = leaves_of(self.table_schema, columns)
        for index, piece in enumerate(share.pieces):
            here = after is not None and piece.position == after.partition
            if after is not None and piece.position < after.partition:
                continue
            groups = [group for group in from_runs(piece.groups) if not here or group >= after.group]  # type: ignore[union-attr]
            footer = self._footer(piece, share.footers[index], parts)
            digests = _digests(footer, piece, from_runs(piece.groups), leaves, share.chunks[index])
            plain = frozenset(from_runs(piece.plain))
            skipped = after.rows if here and after is not None else 0
            for together, _ in stretches(footer.metadata, groups, leaves):
                sent = parts.of(piece.position, together)
                rows = byte_range_access.batches(footer, sent, together, columns, digests)
                all_match = all(group in plain for group in together)
                for done, batch in _fresh(rows, skipped):
                    yield Position(piece.position, together[0], done), piece.position, self._filtered(batch, all_match)
                skipped = 0
                yield Position(piece.position, together[-1] + 1, 0), piece.position, None
        parts.finish()

    def _of_files(self, share: Share, after: Position | None, batches: Checked) -> Assembled:
        places = {piece.position: index for index, piece in enumerate(share.pieces)}
        held: list[memoryview] = []
        current = -1
        for note, batch in batches:
            if note.partition not in places:
                raise DamagedError(f"partition {note.partition} arrived, which was not requested")
            if note.partition != current:
                if held:
                    yield from self._of_file(share, places[current], after, held)
                held, current = [], note.partition
            held += [part.data for part in by_ranges.each(byte_range_access.valid(batch))]
        if held:
            yield from self._of_file(share, places[current], after, held)

    def _of_file(self, share: Share, index: int, after: Position | None, held: list[memoryview]) -> Assembled:
        """Yield the rows of a whole file. The reader is the same as on nodes, so `all` differs from V1 only in where
        rows are read."""
        piece = share.pieces[index]
        fetched = FetchedChunks(held)
        footer = self.footers.get(piece.digest, lambda: footers.checked(fetched.footer_bytes(), share.footers[index]))
        groups = range(footer.metadata.num_row_groups)
        leaves = leaves_of(self.table_schema, needed_columns(self.query, self.table_schema))
        fetched.expect(footer, leaves, _digests(footer, piece, groups, leaves, share.chunks[index]))
        skipped = after.rows if after is not None and after.partition == piece.position else 0
        where = self.query.where if self.refilter else None
        rows = by_parquet.batches(fetched, footer, groups, self.shown.names, where)
        for done, batch in _fresh(rows, skipped):
            yield Position(piece.position, 0, done), piece.position, from_plain(batch, self.shown)

    # --- inside ------------------------------------------------------------------------------------------

    def _filtered(self, batch: pa.RecordBatch, all_match: bool) -> pa.RecordBatch:
        if self.query.where is not None and self.refilter and not all_match:
            batch = matching(batch, filter_evaluation.mask(self.query.where, batch))
        return from_plain(batch.select(self.shown.names), self.shown)

    def _holds(self, digest: str) -> bool:
        try:
            self.footers.get(digest, _missing)
        except UnavailableError:
            return False
        return True

    def _footer(self, piece: Piece, digest: str, parts: _Parts) -> ParsedFooter:
        sent = parts.footer(piece.position)
        load = _missing if sent is None else (lambda: footers.checked(sent, digest))
        return self.footers.get(piece.digest, load)


def _where(note: Note) -> str:
    return f"partition {note.partition}, row group {note.group}"


def _missing() -> ParsedFooter:
    raise UnavailableError("the node did not send a footer, and the client's cache no longer holds it: asking again")


def _fresh(batches: Iterator[pa.RecordBatch], skipped: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Skip the first `skipped` rows, which were returned before. Yield each remaining batch with the number of rows
    from the start up to the end of the batch."""
    done = 0
    for batch in batches:
        done += batch.num_rows
        left = batch.slice(min(skipped, batch.num_rows))
        skipped -= batch.num_rows - left.num_rows
        if left.num_rows:
            yield done, left


def _digests(
    footer: ParsedFooter, piece: Piece, groups: Sequence[int], leaves: Sequence[int], chunks: bytes
) -> npt.NDArray[np.uint64]:
    """Return the catalog's digests of the chunks to read, [row groups, leaf columns]. The digests of other chunks are
    0."""
    shape = footer.metadata.num_row_groups, footer.metadata.num_columns
    if len(chunks) != 8 * len(groups) * len(leaves) or (groups and groups[-1] >= shape[0]):
        raise DamagedError(
            f"partition {piece.position}: the catalog's plan does not match the footer of the partition's file"
        )
    found = np.zeros(shape, np.uint64)
    found[np.ix_(groups, leaves)] = np.frombuffer(chunks, "<u8").reshape(len(groups), len(leaves))
    return found


class _Parts:
    """The chunks of a V2 stream, returned on demand by partition and row group."""

    def __init__(self, batches: Checked) -> None:
        self._batches = batches
        self._next: tuple[int, pa.RecordBatch] | None = None

    def footer(self, partition: int) -> bytes | None:
        """Return the end of a partition's file, with its footer, if the stream sends it next. Otherwise return None."""
        coming = self._peek()
        if coming is None or coming[0] != partition or coming[1].column(0)[0].as_py() != WHOLE:
            return None
        self._next = None
        return b"".join(part.data for part in by_ranges.each(coming[1]))

    def of(self, partition: int, groups: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """Yield the chunks of these row groups in batches, until the stream continues with other row groups."""
        while (coming := self._peek()) is not None and coming[0] == partition:
            numbers = coming[1].column(0).to_numpy(zero_copy_only=False)
            count = int(np.searchsorted(numbers, groups[-1], side="right"))
            if count == 0:
                return
            yield coming[1].slice(0, count)
            self._next = (partition, coming[1].slice(count)) if count < len(numbers) else None

    def finish(self) -> None:
        """Raise DamagedError if chunks are left or the stream does not end correctly."""
        if (coming := self._peek()) is not None:
            raise DamagedError(f"chunks of partition {coming[0]} arrived after all requested chunks had arrived")

    def _peek(self) -> tuple[int, pa.RecordBatch] | None:
        if self._next is None and (arrived := next(self._batches, None)) is not None:
            note, batch = arrived
            self._next = note.partition, byte_range_access.valid(batch)
        return self._next
