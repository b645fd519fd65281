"""Read all streams of a query in parallel and return rows in stored order. A broken stream resumes at a replica.

Each row is checked and then returned exactly once. The answer is complete when every stream has reported its totals;
otherwise an error is raised.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.flight as flight

from libraries.near_storage.client.assembly import Assembling
from libraries.near_storage.client.backoff import ComingAgain, Patience
from libraries.near_storage.client.stream_attempt import Received, checked, remaining_groups
from libraries.near_storage.client.stream_queue import Pump, StoppedError
from libraries.near_storage.errors import (
    BusyError,
    DamagedError,
    NearStorageError,
    SilentError,
    StaleError,
    UnauthenticatedError,
    UnavailableError,
)
from libraries.near_storage.serving.protocol import Position, Share
from libraries.near_storage.serving.rpc import Caller
from libraries.near_storage.serving.tickets import Wish, with_wish

STREAM_S = 600.0
"""Seconds after which a stream is ended and resumed, so that an idle client does not occupy a node's slot forever."""


@dataclass(frozen=True)
class Endpoint:
    """One stream to read: its ticket, the locations of nodes that accept the ticket, and the data to check the
    stream."""

    ticket: bytes
    locations: tuple[str, ...]
    share: Share


Renew = Callable[[Sequence[int], Sequence[str]], list[Endpoint]]
"""A function that takes partitions and the names of nodes to use last. It returns endpoints to read these partitions of
the same version."""


class Streams:
    """The streams of one query; closing the iterator of `rows` ends all of them.

    Streams are read in parallel until a node has no free slot for a stream. From then on they are read one at a time.
    Otherwise, clients could deadlock if each holds a slot at one node while it waits for a slot at another.
    """

    def __init__(self, caller: Caller, assembling: Assembling, renew: Renew, patience: Patience) -> None:
        self.caller = caller
        self.assembling = assembling
        self.renew = renew
        self.patience = patience
        self.received = Received()
        self.closed = threading.Event()
        self._all: list[_Stream] = []
        self._one_at_a_time = False

    def rows(self, sources: Sequence[Endpoint]) -> Generator[tuple[int, pa.RecordBatch], None, None]:
        """Yield (partition, batch) from all sources, by ascending partition. The rows of a partition are in stored
        order."""
        self._all = [_Stream(self, source) for source in sources]
        pairs = zip(sources, self._all, strict=True)
        try:
            for stream in self._all:
                stream.start()
            yield from _in_order([(source.share.pieces[0].position, stream.rows()) for source, stream in pairs])
        finally:
            self.closed.set()
            for stream in self._all:
                stream.stop()

    def take_turns(self) -> None:
        """Read only one stream at a time from now on, because a node has no free slot for another stream."""
        self._one_at_a_time = True
        self.give_way(None)

    def give_way(self, to: _Stream | None) -> None:
        """Stop all streams except `to` if only one stream is read at a time, so that the slots of the stopped streams
        become free."""
        if self._one_at_a_time:
            for stream in self._all:
                if stream is not to:
                    stream.stop()


def _in_order(
    streams: Sequence[tuple[int, Iterator[tuple[int, pa.RecordBatch]]]],
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the items of all streams in order of partitions. Each partition is in only one stream, and the partitions
    of a stream ascend.

    Each pair in `streams` has the number of a stream's first partition, and the items of the stream. With this number,
    a stream is not awaited before its first item is needed.
    """
    earliest = {index: first for index, (first, _) in enumerate(streams)}
    heads: dict[int, tuple[int, pa.RecordBatch]] = {}
    while earliest:
        index = min(earliest, key=lambda each: earliest[each])
        item = heads.pop(index, None) or next(streams[index][1], None)
        if item is None:
            del earliest[index]
            continue
        earliest[index] = item[0]
        if item[0] > min(earliest.values()):
            heads[index] = item
        else:
            yield item


class _Stream:
    """The rows of one endpoint, resumed when a node fails."""

    def __init__(self, streams: Streams, source: Endpoint) -> None:
        self._streams = streams
        self._sources = [source]
        self._after: Position | None = None
        self._tried: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._renewed = False
        self._again = ComingAgain(streams.patience, streams.closed)
        self._pump: Pump | None = None

    def start(self) -> None:
        """Start reading, before any rows are requested."""
        self._pump = self._pumped(self._sources[0])

    def stop(self) -> None:
        """End the stream. A later request for rows resumes after the rows that were already returned."""
        pump, self._pump = self._pump, None
        if pump is not None:
            pump.stop()

    def rows(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield (partition, batch). No row is repeated after a failure."""
        while self._sources:
            before = self._after
            try:
                yield from self._attempt(self._sources[0])
                self._sources.pop(0)
                self._moved()
            except NearStorageError as error:
                self.stop()
                if self._after != before:
                    self._moved()
                if not isinstance(error, StoppedError):
                    self._recover(error)

    def _attempt(self, source: Endpoint) -> Iterator[tuple[int, pa.RecordBatch]]:
        streams, assembling = self._streams, self._streams.assembling
        streams.give_way(self)
        pump = self._pump = self._pump or self._pumped(source)
        try:
            groups = remaining_groups(source.share.pieces, self._after)
            batches = checked(
                pump, assembling.schema, groups, assembling.limit, streams.patience.idle_s, streams.received
            )
            for after, partition, batch in assembling.assembled(source.share, self._after, batches):
                # The batch counts as returned from here on. After a later error, the stream resumes after this batch.
                self._after = after
                if batch is not None and batch.num_rows:
                    yield partition, batch
        finally:
            pump.stop()
            self._pump = None

    def _pumped(self, source: Endpoint) -> Pump:
        streams = self._streams
        location = self._location(source)
        known = streams.assembling.known_footers(source.share)
        ticket = flight.Ticket(with_wish(source.ticket, Wish(self._after, known)))
        caller = streams.caller

        def open_stream() -> flight.FlightStreamReader:
            return caller.client(location).do_get(ticket, caller.options(STREAM_S, with_token=False))

        return Pump(open_stream, streams.assembling.schema, location)

    def _location(self, source: Endpoint) -> str:
        return next((each for each in source.locations if each not in self._tried), source.locations[0])

    # --- after an error ----------------------------------------------------------------------------------

    def _moved(self) -> None:
        """Forget earlier failures, because data arrived."""
        self._tried.clear()
        self._renewed = False
        self._again = ComingAgain(self._streams.patience, self._streams.closed)

    def _recover(self, error: NearStorageError) -> None:
        """Choose the next attempt, or raise the error if none can succeed."""
        source, received = self._sources[0], self._streams.received
        received.resumed += 1
        received.failures.append(str(error))
        if isinstance(error, BusyError):
            self._streams.take_turns()
            self._again.wait(error)
        elif isinstance(error, UnauthenticatedError):
            self._renew(error)
        elif isinstance(error, UnavailableError | DamagedError | StaleError) or type(error) is NearStorageError:
            self._tried[self._location(source)] = str(error)
            self._names.update(zip(source.locations, source.share.nodes, strict=True))
            if all(location in self._tried for location in source.locations):
                self._renew(error)
        else:
            raise error

    def _renew(self, error: NearStorageError) -> None:
        """Ask the catalog where the remaining partitions are now. If this was already done and no data arrived since,
        raise the error."""
        if self._renewed:
            raise self._told(error)
        done = -1 if self._after is None else self._after.partition
        positions = [piece.position for source in self._sources for piece in source.share.pieces]
        source = self._sources[0]
        nodes = dict(zip(source.locations, source.share.nodes, strict=True))
        avoid = [nodes[location] for location in self._tried if location in nodes]
        try:
            self._sources = self._streams.renew([each for each in positions if each >= done], avoid)
        except UnavailableError as catalog:
            raise self._told(error) from catalog
        self._tried.clear()
        self._renewed = True

    def _told(self, error: NearStorageError) -> NearStorageError:
        if not self._tried:
            return error
        tried = "; ".join(f"{self._names.get(location, location)}: {text}" for location, text in self._tried.items())
        kind = UnavailableError if isinstance(error, SilentError) else type(error)
        return kind(
            f"no node returned the rest of the answer ({tried})\n"
            "  start the nodes that do not answer; 'store check --verify' finds damaged data"
        )
