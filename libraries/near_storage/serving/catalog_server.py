"""The Flight server of the catalog, which plans queries, takes part in uploads and keeps track of nodes. It sends no
rows.

Clients present a client token, servers of the cluster present the cluster's token. `planning` makes plans,
`storing.catalog` decides what is stored, `maintenance` acts on nodes.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.flight as flight

from libraries.near_storage.errors import DamagedError, NotFoundError, RequestError
from libraries.near_storage.predicates import wire
from libraries.near_storage.query import Query
from libraries.near_storage.reading import by_ranges
from libraries.near_storage.serving import clock, security
from libraries.near_storage.serving.guard import GuardedServer
from libraries.near_storage.serving.limits import Gate, Limits
from libraries.near_storage.serving.maintenance import Maintaining
from libraries.near_storage.serving.node import ENDING_S
from libraries.near_storage.serving.node_streams import answer_schema
from libraries.near_storage.serving.planning import Endpoint, Planned, Table, check_positions, plan
from libraries.near_storage.serving.protocol import (
    RECEIPT_BYTES,
    Ask,
    Begin,
    Begun,
    Check,
    Committed,
    Health,
    Message,
    NodeAddress,
    OfNode,
    OfTable,
    OfUpload,
    Piece,
    Place,
    Placement,
    Placements,
    Registered,
    Tables,
    TableSummary,
    decode,
    encode,
    pack_schema,
)
from libraries.near_storage.serving.rpc import Caller, check_location
from libraries.near_storage.serving.security import Role, Tls
from libraries.near_storage.serving.tickets import LIFETIME_S, Grant, issue, open_receipt
from libraries.near_storage.storing import catalog
from libraries.near_storage.storing.catalog import Catalog
from libraries.near_storage.storing.partition_metadata import PartitionInfo
from libraries.near_storage.storing.partitions import OTHER_CATALOG

PERMIT_S = 600.0
"""Validity of a permit to upload a partition. A client requests it just before it sends the file."""


class _Action(NamedTuple):
    answer: Callable[[memoryview], Message | bytes]
    roles: tuple[Role, ...]
    heavy: bool


class CatalogServer(GuardedServer):
    """The Flight server of the catalog. It serves from construction on; `close` ends it and releases the folder.

    `tokens` are hashes (`security.hash_token`) of the clients' tokens.
    """

    def __init__(
        self,
        catalog: Catalog,
        secret: bytes,
        tokens: Collection[str],
        host: str = "127.0.0.1",
        port: int = 0,
        tls: Tls | None = None,
        tls_roots: bytes | None = None,
        limits: Limits | None = None,
        orphan_age_s: float = 3600.0,
    ) -> None:
        security.check_secret(secret)
        self._catalog = catalog
        self._secret = secret
        self._limits = limits or Limits()
        self.gate = Gate(self._limits)
        token = security.cluster_token(secret)
        self.peers = Caller(token, tls_roots)
        self.maintaining = Maintaining(catalog, self.peers, self._ticket_to_copy, orphan_age_s)
        self._actions = self._all_actions()
        roles: dict[str, Role] = dict.fromkeys(tokens, "client")
        self.maintaining.start()
        super().__init__(host, port, tls, {**roles, security.hash_token(token): "cluster"})

    def close(self, within_s: float = ENDING_S) -> bool:
        """Stop serving and release the folder. Return False if a call still hangs after `within_s` seconds."""
        ended = self.end(within_s)
        self.maintaining.stop()
        self.peers.close()
        self._catalog.close()
        return ended

    # --- methods of GuardedServer ------------------------------------------------------------------------

    def answer_info(self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor) -> flight.FlightInfo:
        """Return endpoints for a query. The descriptor has a command, which is a `protocol.Ask`, or a path, which is
        the name of a table and requests all rows."""
        security.require(context, "client", "cluster")
        with self.gate.admitting():
            ask = _asked(descriptor)
            check_positions(ask)
            query = wire.decode_query(bytes(ask.query))
            planned = plan(self._table(query.table, ask.version), query, ask, self._limits.memory_bytes)
            return self._told(descriptor, ask, planned)

    def answer_list(self, context: flight.ServerCallContext) -> list[flight.FlightInfo]:
        """Return all tables, without endpoints."""
        security.require(context, "client", "cluster")
        found = []
        for table, schema in self._described():
            descriptor = flight.FlightDescriptor.for_path(table.table)
            found.append(flight.FlightInfo(schema, descriptor, [], table.rows, table.stored_bytes))
        return found

    def answer_action(self, context: flight.ServerCallContext, name: str, body: memoryview) -> bytes:
        """Run an action. Everyone may request `health`; other actions need the role of client or cluster."""
        if name == "health":
            return encode(Health("catalog", self._catalog.identity))
        # Check the role first, so that callers without a role do not learn which actions exist.
        security.require(context, "client", "cluster")
        action = self._actions.get(name)
        if action is None:
            raise RequestError(f"{name!r}: not an action of the catalog; the actions are {', '.join(self._actions)}")
        security.require(context, *action.roles)
        if not action.heavy:
            return _bytes(action.answer(body))
        with self.gate.admitting():
            return _bytes(action.answer(body))

    # --- queries -----------------------------------------------------------------------------------------

    def _table(self, name: str, number: int | None) -> Table:
        version = self._catalog.current(name) if number is None else self._catalog.version(name, number)
        try:
            metadata = self._catalog.metadata(version)
        except DamagedError:
            self.maintaining.restore(version)
            metadata = self._catalog.metadata(version)
        return Table(version, metadata, self._catalog.info)

    def _told(self, descriptor: flight.FlightDescriptor, ask: Ask, planned: Planned) -> flight.FlightInfo:
        told = planned.plan
        schema = answer_schema(planned.query, planned.table_schema) if told.way == "v1" else by_ranges.PARTS
        query = msgspec.Raw(wire.encode_query(planned.query))
        expires_s = clock.now_s() + LIFETIME_S
        endpoints = [self._endpoint(endpoint, ask, planned, query, expires_s) for endpoint in planned.endpoints]
        size = {"v1": told.v1_bytes, "v2": told.v2_bytes, "all": told.table_bytes}[told.way]
        return flight.FlightInfo(schema, descriptor, endpoints, -1, size, False, encode(told))

    def _endpoint(
        self, endpoint: Endpoint, ask: Ask, planned: Planned, query: msgspec.Raw, expires_s: float
    ) -> flight.FlightEndpoint:
        told = planned.plan
        grant = Grant(
            kind=told.way,
            table=told.table,
            version=told.version,
            pieces=endpoint.share.pieces,
            expires_s=expires_s,
            query=query,
            footers=ask.footers,
            filtered=ask.filtered,
        )
        expires = pa.scalar(datetime.datetime.fromtimestamp(expires_s, datetime.UTC), pa.timestamp("us", "UTC"))
        locations = [node.uri for node in endpoint.nodes]
        return flight.FlightEndpoint(issue(self._secret, grant), locations, expires, encode(endpoint.share))

    def _ticket_to_copy(self, piece: Piece, stored_bytes: int) -> bytes:
        grant = Grant("all", "", 0, (piece,), clock.now_s() + LIFETIME_S, stored_bytes=stored_bytes)
        return issue(self._secret, grant)

    # --- actions -----------------------------------------------------------------------------------------

    def _all_actions(self) -> dict[str, _Action]:
        client: tuple[Role, ...] = ("client", "cluster")
        return {
            "tables": _Action(self._tables, client, True),
            "delete": _Action(self._delete, client, True),
            "begin": _Action(self._begin, client, True),
            "place": _Action(self._place, client, True),
            "acknowledge": _Action(self._acknowledge, client, True),
            "commit": _Action(self._commit, client, True),
            "abort": _Action(self._abort, client, True),
            "nodes": _Action(self._nodes, client, True),
            "forget": _Action(self._forget, client, True),
            "check": _Action(self._check, client, False),
            "repair": _Action(self._repair, client, False),
            "register": _Action(self._register, ("cluster",), True),
        }

    def _tables(self, body: memoryview) -> Tables:
        found = []
        for table, schema in self._described():
            packed = pack_schema(schema)
            found.append(
                TableSummary(table.table, table.number, packed, table.rows, table.partitions, table.stored_bytes)
            )
        return Tables(tuple(found))

    def _described(self) -> Iterator[tuple[catalog.TableSummary, pa.Schema]]:
        """Yield all tables with their columns. Skip tables that are deleted meanwhile."""
        for table in self._catalog.tables():
            try:
                schema = self._catalog.current(table.table).schema
            except NotFoundError:
                continue
            yield table, schema

    def _delete(self, body: memoryview) -> bytes:
        self._catalog.delete(decode(OfTable, body).table)
        return b""

    def _begin(self, body: memoryview) -> Begun:
        asked = decode(Begin, body)
        return Begun(self._catalog.uploads.begin(asked.table, asked.avoid))

    def _place(self, body: memoryview) -> Placements:
        asked = decode(Place, body)
        nodes = self._catalog.uploads.place(asked.upload, asked.position, asked.digest, asked.stored_bytes)
        piece = Piece(asked.position, asked.digest, ())
        grant = Grant(
            *("put", "", 0, (piece,), clock.now_s() + PERMIT_S), upload=asked.upload, stored_bytes=asked.stored_bytes
        )
        permit = issue(self._secret, grant)
        return Placements(tuple(Placement(node.name, node.uri) for node in nodes), permit)

    def _acknowledge(self, body: memoryview) -> bytes:
        """Record a receipt that a node gave to the client."""
        upload, node, described = open_receipt(self._secret, body, RECEIPT_BYTES)
        info = PartitionInfo.decode(described)
        self._catalog.uploads.acknowledge(upload, info.digest, node, info)
        return b""

    def _commit(self, body: memoryview) -> Committed:
        return Committed(self._catalog.uploads.commit(decode(OfUpload, body).upload))

    def _abort(self, body: memoryview) -> bytes:
        self._catalog.uploads.abort(decode(OfUpload, body).upload)
        self.maintaining.hurry()
        return b""

    def _nodes(self, body: memoryview) -> Placements:
        return Placements(tuple(Placement(node.name, node.uri) for node in self._catalog.nodes()), b"")

    def _forget(self, body: memoryview) -> bytes:
        self._catalog.forget_node(decode(OfNode, body).node)
        return b""

    def _check(self, body: memoryview) -> Message:
        return self.maintaining.check(decode(Check, body).verify)

    def _repair(self, body: memoryview) -> Message:
        return self.maintaining.repair(decode(Check, body).verify)

    def _register(self, body: memoryview) -> Registered:
        asked = decode(NodeAddress, body)
        check_location(asked.location)
        # Check this before the address is stored, because a refused node must not replace another node's address.
        if asked.catalog not in (None, self._catalog.identity):
            raise RequestError(OTHER_CATALOG)
        self._catalog.register_node(asked.node, asked.location, asked.folder)
        return Registered(self._catalog.identity)


def _asked(descriptor: flight.FlightDescriptor) -> Ask:
    """Return the request of a descriptor. A path, which any Flight client can send, requests all rows of the table as
    decoded batches (V1)."""
    if descriptor.descriptor_type == flight.DescriptorType.PATH:
        try:
            (name,) = (part.decode() for part in descriptor.path)
        except ValueError:
            raise RequestError("descriptor: the path must have one part, the table's name in UTF-8") from None
        return Ask(msgspec.Raw(wire.encode_query(Query(name))), "v1")
    return decode(Ask, descriptor.command or b"")


def _bytes(reply: Message | bytes) -> bytes:
    return reply if isinstance(reply, bytes) else encode(reply)
