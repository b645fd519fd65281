"""One attempt to read one stream. Checks what arrives against the metadata of each batch and the totals at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from libraries.near_storage.client.stream_queue import Pump
from libraries.near_storage.errors import DamagedError, RequestError
from libraries.near_storage.reading import by_ranges
from libraries.near_storage.serving import batches
from libraries.near_storage.serving.protocol import Note, Piece, Position, Totals, decode_note, from_runs


@dataclass
class Received:
    """What arrived for one query so far, over all streams."""

    batches: int = 0
    batch_bytes: int = 0
    resumed: int = 0
    failures: list[str] = field(default_factory=list)


def remaining_groups(pieces: Sequence[Piece], after: Position | None) -> int:
    """Return the number of row groups that a node has to read for a stream that resumes at the position `after`, or
    starts if `after` is None. The totals at the end of the stream must report this number."""
    if after is None:
        return sum(sum(piece.groups[1::2]) for piece in pieces)
    count = 0
    for piece in pieces:
        if piece.position > after.partition:
            count += sum(piece.groups[1::2])
        elif piece.position == after.partition:
            count += sum(group >= after.group for group in from_runs(piece.groups))
    return count


def checked(
    pump: Pump, schema: pa.Schema, groups: int, limit: int | None, idle_s: float, received: Received
) -> Iterator[tuple[Note, pa.RecordBatch]]:
    """Yield the batches of a stream that have rows, unchanged and in order.

    `groups` is the number of row groups that the totals must report. After `limit` rows, the totals may report fewer
    row groups. Raises DamagedError if a batch is missing, repeated or changed, or if the stream ends without its
    totals. Errors of the node are raised as well.
    """
    number = rows = 0
    while True:
        arrived = pump.take(idle_s)
        if arrived is None:
            raise DamagedError("the stream ended early: the totals, which come last, are missing")
        try:
            note = decode_note(arrived.note)
        except RequestError as error:
            raise DamagedError(f"the metadata of a batch changed in transit: {error}") from None
        if isinstance(note, Totals):
            _check_totals(note, number, rows, groups, limit)
            return
        if note.number != number:
            raise DamagedError(f"batch {note.number} arrived, expected batch {number}")
        if schema is not by_ranges.PARTS:
            place = (note.number, note.partition, note.group, note.rows)
            batches.check(arrived.batch, note.digest, place)
        number += 1
        rows += arrived.batch.num_rows
        received.batches += 1
        received.batch_bytes += arrived.batch.nbytes
        if arrived.batch.num_rows:
            yield note, arrived.batch


def _check_totals(totals: Totals, number: int, rows: int, groups: int, limit: int | None) -> None:
    if (totals.batches, totals.rows) != (number, rows):
        raise DamagedError(
            f"received {number} batches with {rows} rows in total, but the node sent {totals.batches} batches with "
            f"{totals.rows} rows"
        )
    enough = totals.limited and limit is not None and rows >= limit
    if totals.groups != groups and not enough:
        raise DamagedError(f"the node read {totals.groups} row groups, but {groups} were requested")
