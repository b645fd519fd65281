"""Mutated requests of every kind to a running catalog and node: each is answered or refused, and reveals nothing.

`python -m libraries.near_storage.tests.serving.mutated [count] [seed]` sends 10,000 of them.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.flight as flight

from libraries.filters.tree import And, Comparison, In
from libraries.filters.values import literal
from libraries.near_storage.predicates import wire
from libraries.near_storage.query import Aggregate, Query
from libraries.near_storage.serving import security
from libraries.near_storage.serving.guard import from_flight
from libraries.near_storage.serving.protocol import (
    Ask,
    Begin,
    Check,
    Copy,
    NodeAddress,
    OfDigest,
    OfTable,
    OfUpload,
    Piece,
    Place,
    Position,
    Removing,
    Report,
    encode,
)
from libraries.near_storage.serving.rpc import Caller
from libraries.near_storage.serving.tickets import Grant, Wish, issue, sign_receipt, with_wish
from libraries.near_storage.tests.serving.cluster import Cluster, cluster

TABLE = pa.table({"a": range(1_000)})
"""The queried table, in partitions of 250 rows."""

TELLING = re.compile(r"Traceback|File \"|\.py\b|/dev/|/tmp|/home|/root|/usr")
DIGEST = "ab" * 32
WHERE = And((Comparison("<", "a", literal(700)), In("a", (literal(1), literal(2)))))
QUERIES = (
    Query("t", ("a",), WHERE, limit=3),
    Query("t", None, None),
    Query("t", (), WHERE, (Aggregate("count", None, "n"), Aggregate("avg", "a", "m"))),
    Query("t", ("a",), None, (Aggregate("max", "a", "m"),), ("a",)),
)


def changed(rng: random.Random, message: bytes) -> bytes:
    """Insert, remove or change a few bytes, digits or words of the message."""
    data = bytearray(message)
    for _ in range(rng.randrange(1, 5)):
        index = rng.randrange(len(data) + 1)
        words = (b"-1", b"99999999999999999999", b"null", b"[", b'"', b"{}", b"../..", b"\0")
        inserted = rng.choice((rng.randbytes(rng.randrange(4)), *words))
        data[index : index + rng.randrange(4)] = inserted
    return bytes(data)


def send(served: Cluster, count: int, seed: int) -> list[str]:
    """Send `count` requests; return what is wrong with the replies."""
    rng = random.Random(seed)
    wrong: list[str] = []
    kinds: Counter[str] = Counter()
    callers = [Caller(served.token), Caller(security.cluster_token(served.secret))]
    clients = {location: flight.connect(location) for location in (served.uri, served.nodes[0].location)}
    for number in range(count):
        what, location, call = _request(rng, served)
        try:
            call(clients[location], rng.choice(callers).options(20))
            kinds["answered"] += 1
        except (pa.ArrowException, OSError) as error:
            text = str(error) + repr(getattr(error, "extra_info", b""))
            kind = type(from_flight(error)).__name__
            kinds[kind] += 1
            # A copy is requested from an address where nothing listens.
            broken = kind == "NearStorageError" or (kind == "UnavailableError" and what != "node copy")
            if TELLING.search(text) or broken:
                wrong.append(f"{number}: {what}: {kind}: {text[:500]}")
    for client in clients.values():
        client.close()
    if served.client().query("SELECT count(*) AS n FROM t")["n"].to_pylist() != [1_000]:
        wrong.append("the table has changed")
    if count >= 300 and not {"answered", "RequestError", "UnauthenticatedError"} <= set(kinds):
        wrong.append(f"some kinds of replies are missing: {kinds}")
    return wrong


def _request(rng: random.Random, served: Cluster):
    node = served.nodes[0].location
    kind = rng.choice(("ask", "ask", "ticket", "wish", "forged", "catalog", "catalog", "node", "put", "path"))
    if kind == "ask":
        query = rng.choice(QUERIES)
        ask = Ask(
            msgspec.Raw(changed(rng, wire.encode_query(query)) if rng.random() < 0.5 else wire.encode_query(query)),
            rng.choice(("v1", "v2", "all", None)),
            version=rng.choice((None, 1, 2)),
            positions=rng.choice((None, (0, 1), (5,))),
        )
        try:
            command = encode(ask)
        except (TypeError, ValueError):
            command = b"{"
        command = changed(rng, command) if rng.random() < 0.7 else command
        return (
            kind,
            served.uri,
            lambda client, options: client.get_flight_info(flight.FlightDescriptor.for_command(command), options),
        )
    if kind == "path":
        # pyarrow's client does not send invalid UTF-8.
        path = changed(rng, b"t").decode("utf-8", "replace").replace("\0", "")
        return (
            kind,
            served.uri,
            lambda client, options: client.get_flight_info(flight.FlightDescriptor.for_path(path), options),
        )
    if kind in ("ticket", "wish", "forged"):
        ticket = _ticket(rng, served, kind)
        return kind, node, lambda client, options: client.do_get(flight.Ticket(ticket), options).read_all()
    if kind == "put":
        descriptor = flight.FlightDescriptor.for_command(changed(rng, _ticket(rng, served, "ticket")))
        return kind, node, lambda client, options: _put(client, descriptor, options)
    location = served.uri if kind == "catalog" else node
    name, message = rng.choice(_actions(served) if kind == "catalog" else _node_actions())
    body = message if rng.random() < 0.1 else changed(rng, message)
    name = name if rng.random() < 0.95 else changed(rng, name.encode()).decode("utf-8", "replace").replace("\0", "")
    return (
        f"{kind} {name}",
        location,
        lambda client, options: list(client.do_action(flight.Action(name, body), options)),
    )


def _ticket(rng: random.Random, served: Cluster, kind: str) -> bytes:
    digest = rng.choice([path.stem for path in served.stored_files(0)] + [DIGEST, "../x"])
    numbers = tuple(rng.choice((0, 1, 2, 5, -1, 2**40)) for _ in range(rng.choice((2, 2, 2, 1, 4))))
    query = msgspec.Raw(wire.encode_query(rng.choice(QUERIES)))
    grant = Grant(
        rng.choice(("v1", "v2", "all")), "t", 1, (Piece(rng.choice((0, -1)), digest, numbers, numbers),), 1e12, query
    )
    if kind == "forged":
        return changed(rng, issue(served.secret, grant))
    wish = encode(Wish(Position(*(rng.choice((-1, 0, 1, 2**40)) for _ in range(3))), (0,)))
    ticket = issue(served.secret, grant)
    return ticket if kind == "ticket" else with_wish(ticket, Wish()).removesuffix(encode(Wish())) + changed(rng, wish)


def _put(client: flight.FlightClient, descriptor: flight.FlightDescriptor, options: flight.FlightCallOptions) -> None:
    schema = pa.schema([pa.field("data", pa.large_binary(), nullable=False)])
    writer, replies = client.do_put(descriptor, schema, options)
    with writer:
        writer.write_batch(pa.RecordBatch.from_arrays([pa.array([b"x" * 50], pa.large_binary())], schema=schema))
        writer.done_writing()
        replies.read()


def _actions(served: Cluster) -> list[tuple[str, bytes]]:
    return [
        ("begin", encode(Begin("u"))),
        ("place", encode(Place("u" * 32, 0, DIGEST, 10))),
        ("acknowledge", sign_receipt(served.secret, "u", "node0", b"x" * 50)),
        ("commit", encode(OfUpload("u" * 32))),
        ("abort", encode(OfUpload("u" * 32))),
        ("delete", encode(OfTable("u"))),
        ("register", encode(NodeAddress("node0", served.nodes[0].location, "f" * 32, None))),
        ("tables", b""),
        ("nodes", b""),
        ("check", encode(Check(False))),
    ]


def _node_actions() -> list[tuple[str, bytes]]:
    return [
        ("report", encode(Report(False))),
        ("remove", encode(Removing("cd" * 32, 1))),
        ("describe", encode(OfDigest(DIGEST))),
        ("copy", encode(Copy(DIGEST, 10, "grpc://127.0.0.1:1", b"x"))),
        ("statistics", b""),
    ]


def main() -> None:
    count, seed = (int(each) for each in (*sys.argv[1:3], *("10000", "1")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder)) as served:
        served.client().put("t", TABLE, 250)
        wrong = send(served, count, seed)
    print(f"{count} requests of seed {seed}, {len(wrong)} wrong")
    for each in wrong[:20]:
        print(each)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
