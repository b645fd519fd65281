"""Run a query: get the plan from the catalog, read streams from the nodes, and do the remaining work on the client."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import msgspec
import pyarrow as pa
import pyarrow.flight as flight

from libraries.filters import binding
from libraries.near_storage import aggregates
from libraries.near_storage.client.assembly import Assembling
from libraries.near_storage.client.backoff import Patience, coming_again
from libraries.near_storage.client.stream_attempt import Received
from libraries.near_storage.client.streams import Endpoint, Streams
from libraries.near_storage.errors import TooLargeError
from libraries.near_storage.predicates import wire
from libraries.near_storage.query import Query
from libraries.near_storage.reading.footers import FooterCache
from libraries.near_storage.serving.guard import from_call
from libraries.near_storage.serving.protocol import (
    RECEIPT_BYTES,
    Ask,
    Footers,
    QueryPlan,
    Share,
    Way,
    decode,
    encode,
    unpack_schema,
)
from libraries.near_storage.serving.rpc import Caller

FOOTER_CACHE_BYTES = 256 << 20
PARTS_MERGED = 16


@dataclass(frozen=True)
class Options:
    """How to read the rows of a query. Without a `way` (access path), the catalog chooses.

    `version` and `positions` limit the query to partitions of one version. With `split`, each partition has a separate
    stream. `footers` and `refilter` are for measurements, see `Client.answer`.
    """

    way: Way | None = None
    footers: Footers = "cached"
    refilter: bool = True
    version: int | None = None
    positions: tuple[int, ...] | None = None
    split: bool = False


@dataclass(frozen=True)
class Asked:
    """The catalog's reply to a query: the bound query, its plan, the table's schema, the endpoints."""

    query: Query
    options: Options
    plan: QueryPlan
    schema: pa.Schema
    sources: tuple[Endpoint, ...]


@dataclass(frozen=True)
class Answer:
    """The answer to a query and statistics about reading it."""

    table: pa.Table
    plan: QueryPlan
    received: Received


class Executor:
    """Runs the queries of one client. Thread-safe."""

    def __init__(self, caller: Caller, uri: str, patience: Patience, closed: threading.Event) -> None:
        self._caller = caller
        self._uri = uri
        self._patience = patience
        self._closed = closed
        self._footers = FooterCache(FOOTER_CACHE_BYTES)

    def ask(self, query: Query, options: Options, avoid: Sequence[str] = ()) -> Asked:
        """Return the catalog's plan for a query; nodes named in `avoid` are used last."""
        ask = Ask(
            query=msgspec.Raw(wire.encode_query(query)),
            way=options.way,
            footers=options.footers,
            filtered=options.refilter,
            version=options.version,
            positions=options.positions,
            split=options.split,
            avoid=tuple(avoid),
        )
        info = coming_again(lambda: self._info(encode(ask)), self._patience, self._closed)
        plan = decode(QueryPlan, info.app_metadata)
        schema = unpack_schema(plan.schema)
        if query.where is not None:
            query = replace(query, where=binding.bind(query.where, schema))
        sources = sorted(
            (_source(endpoint) for endpoint in info.endpoints), key=lambda source: source.share.pieces[0].position
        )
        return Asked(query, options, plan, schema, tuple(sources))

    def answer(self, query: Query, options: Options) -> Answer:
        """Return the whole answer. If a row group is too large for a node to decode and `options` set no access path,
        repeat the query with V2, so that the client decodes."""
        try:
            return self._answer(query, options)
        except TooLargeError:
            if options.way is not None:
                raise
        return self._answer(query, replace(options, way="v2"))

    def _answer(self, query: Query, options: Options) -> Answer:
        asked = self.ask(query, options)
        aggregation = aggregates.plan(query, asked.schema) if query.aggregated else None
        streams = self.streams(asked)
        with closing(streams.rows(asked.sources)) as rows:
            batches = (batch for _, batch in rows)
            if aggregation is None:
                shown = streams.assembling.shown
                table = pa.Table.from_batches(first(batches, query.limit), shown)
            else:
                table = _aggregated(aggregation, batches, asked.plan)
        return Answer(table, asked.plan, streams.received)

    def rows(self, asked: Asked) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a query without aggregates as they arrive. Closing the iterator makes the nodes stop."""
        begun = False
        try:
            with closing(self.streams(asked).rows(asked.sources)) as rows:
                for batch in first((batch for _, batch in rows), asked.query.limit):
                    begun = True
                    yield batch
            return
        except TooLargeError:
            if begun or asked.options.way is not None:
                raise
        options = replace(asked.options, way="v2", version=asked.plan.version)
        yield from self.rows(self.ask(asked.query, options))

    def streams(self, asked: Asked) -> Streams:
        """Return the streams of a plan, not yet started."""
        assembling = Assembling(
            asked.plan.way, asked.query, asked.schema, _shown(asked), self._footers, asked.options.refilter
        )

        def renew(positions: Sequence[int], avoid: Sequence[str]) -> list[Endpoint]:
            """Return new endpoints for these partitions of the same table version. If one endpoint can send all of
            them, return this one, else one endpoint for each partition. Nodes in `avoid` are used last."""
            options = replace(
                asked.options, way=asked.plan.way, version=asked.plan.version, positions=tuple(positions), split=False
            )
            again = self.ask(asked.query, options, avoid).sources
            return list(again if len(again) < 2 else self.ask(asked.query, replace(options, split=True), avoid).sources)

        return Streams(self._caller, assembling, renew, self._patience)

    # --- inside ------------------------------------------------------------------------------------------

    def _info(self, command: bytes) -> flight.FlightInfo:
        client = self._caller.client(self._uri)
        try:
            return client.get_flight_info(flight.FlightDescriptor.for_command(command), self._caller.options())
        except Exception as error:
            raise from_call(self._uri, error) from None


def first(batches: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the first `limit` rows; request no batch after them."""
    if limit is None:
        yield from batches
        return
    iterator = iter(batches)
    while limit and (batch := next(iterator, None)) is not None:
        taken = batch.slice(0, limit)
        limit -= taken.num_rows
        yield taken


def _source(endpoint: flight.FlightEndpoint) -> Endpoint:
    locations = tuple(location.uri.decode() for location in endpoint.locations)
    return Endpoint(endpoint.ticket.ticket, locations, decode(Share, endpoint.app_metadata, RECEIPT_BYTES))


def _shown(asked: Asked) -> pa.Schema:
    """Return the schema of the batches that the streams yield."""
    query, schema = asked.query, asked.schema
    if not query.aggregated:
        return pa.schema([schema.field(name) for name in (schema.names if query.columns is None else query.columns)])
    aggregation = aggregates.plan(query, schema)
    if asked.plan.way == "v1":
        return aggregation.part_schema
    return pa.schema([schema.field(name) for name in aggregation.columns])


def _aggregated(aggregation: aggregates.AggregatePlan, batches: Iterable[pa.RecordBatch], plan: QueryPlan) -> pa.Table:
    """Compute the answer from partial aggregates (V1) or rows that nodes sent, and from the number of rows that the
    catalog counted."""
    parts = [aggregates.counted(aggregation, plan.rows_counted)] if plan.groups_counted else []
    for batch in batches:
        table = pa.Table.from_batches([batch])
        parts.append(table if plan.way == "v1" else aggregates.part(aggregation, table))
        if len(parts) >= PARTS_MERGED:
            parts = [aggregates.merged(aggregation, parts)]
    return aggregates.finish(aggregation, aggregates.merged(aggregation, parts))
