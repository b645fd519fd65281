"""Unauthorized callers are refused, with texts that reveal nothing about the machine."""

import os
import random
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.flight as flight
import pytest

from libraries.near_storage.errors import BusyError, NearStorageError, RequestError, UnauthenticatedError
from libraries.near_storage.predicates import wire
from libraries.near_storage.query import Query
from libraries.near_storage.serving import security
from libraries.near_storage.serving.guard import from_flight
from libraries.near_storage.serving.limits import Limits
from libraries.near_storage.serving.node import UPLOAD
from libraries.near_storage.serving.protocol import Ask, Health, Piece, Place, Statistics, decode, encode
from libraries.near_storage.serving.rpc import Caller
from libraries.near_storage.serving.tickets import Grant, Wish, issue, with_wish
from libraries.near_storage.tests.serving import mutated
from libraries.near_storage.tests.serving.cluster import Cluster, cluster, slow
from libraries.near_storage.tests.storing.files import digest_of

TELLING = re.compile(r"Traceback|File \"|\.py\b|/dev/|/tmp|/home|/root|/usr|line \d+, in ")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory):
    with cluster(tmp_path_factory.mktemp("hostile"), limits=Limits(requests=8, waiting=16, wait_s=0.5)) as made:
        made.client().put("t", mutated.TABLE, 250)
        yield made


def refusal(call: Callable[[], object]) -> str:
    """Return the raw text that a caller sees, with everything that Flight adds to it."""
    with pytest.raises((pa.ArrowException, OSError, NearStorageError)) as told:
        call()
    text = str(told.value) + repr(getattr(told.value, "extra_info", b""))
    assert not TELLING.search(text), text
    return text


def endpoints(served: Cluster) -> list[flight.FlightEndpoint]:
    with flight.connect(served.uri) as client:
        options = Caller(served.token).options()
        return client.get_flight_info(flight.FlightDescriptor.for_path("t"), options).endpoints


def test_any_flight_client_reads_rows(served: Cluster):
    found = []
    for endpoint in endpoints(served):
        with flight.connect(endpoint.locations[0]) as client:
            found += client.do_get(endpoint.ticket).read_all()["a"].to_pylist()
    assert sorted(found) == list(range(1_000))


def test_tables_are_listed(served: Cluster):
    with flight.connect(served.uri) as client:
        (info,) = client.list_flights(options=Caller(served.token).options())
        assert (info.descriptor.path, info.total_records) == ([b"t"], 1_000)
        assert info.schema.names == ["a"]
        refusal(lambda: client.get_schema(info.descriptor, Caller(served.token).options()))


@pytest.mark.parametrize("token", [None, "x" * 40, ""])
def test_a_wrong_token(served: Cluster, token: str | None):
    caller = Caller(token)
    text = refusal(lambda: caller.act(served.uri, "tables", b""))
    assert "token" in text
    descriptor, options = flight.FlightDescriptor.for_path("t"), caller.options()
    for location in (served.uri, served.nodes[0].location):
        with flight.connect(location) as client:
            refusal(lambda client=client: list(client.list_flights(options=options)))
            refusal(lambda client=client: client.get_flight_info(descriptor, options))
            refusal(lambda client=client: client.get_schema(descriptor, options))
            refusal(lambda client=client: list(client.do_action(flight.Action("report", b""), options)))


def test_a_token_that_cannot_be_one():
    for token in ("ä" * 40, "x" * 40 + "\n"):
        with pytest.raises(UnauthenticatedError, match="characters"):
            Caller(token)


def test_a_client_is_not_a_server(served: Cluster):
    """A client's token gives no access to nodes, nor to the catalog's actions for servers."""
    caller = Caller(served.token)
    for location, name in ((served.uri, "register"), (served.nodes[0].location, "report")):
        with pytest.raises(UnauthenticatedError):
            caller.act(location, name, b"{}")


@pytest.mark.parametrize(("name", "body"), [("statistics", b""), ("report", b"{}"), ("remove", b"{}"), ("x", b"")])
def test_nobody_is_no_server(served: Cluster, name: str, body: bytes):
    for location in (served.uri, served.nodes[0].location):
        with pytest.raises(UnauthenticatedError, match="the token of"):
            Caller().act(location, name, body)


def test_everybody_may_ask_whether_a_server_lives(served: Cluster):
    for location, kind in ((served.uri, "catalog"), (served.nodes[0].location, "node")):
        assert decode(Health, Caller().act(location, "health", b"")).kind == kind


def test_a_server_tells_what_it_used(served: Cluster):
    caller = Caller(security.cluster_token(served.secret))
    before = caller.ask(served.nodes[0].location, "statistics", b"", Statistics)
    served.client().query("SELECT * FROM t", "v1")
    after = caller.ask(served.nodes[0].location, "statistics", b"", Statistics)
    assert after.cpu_s > before.cpu_s > 0
    assert after.peak_bytes > 10**7
    assert after.sent_bytes - before.sent_bytes == 8 * 500
    assert after.requests > before.requests


def test_forged_and_foreign_tickets(served: Cluster):
    ticket = endpoints(served)[0].ticket.ticket
    grant = Grant("v1", "t", 1, (Piece(0, "ab" * 32, (0, 1)),), 0.0)
    with flight.connect(served.nodes[0].location) as client:
        for broken, word in (
            (ticket[:-1], "not signed"),
            (ticket[:50] + b"x" + ticket[51:], "not signed"),
            (issue(b"x" * 32, grant), "not signed"),
            (issue(served.secret, grant), "expired"),
            (issue(served.secret, msgspec.structs.replace(grant, kind="put", expires_s=1e12)), "valid for put"),
            (b"", "not signed"),
        ):
            text = refusal(lambda broken=broken: client.do_get(flight.Ticket(broken)).read_all())
            assert word in text
        permit = flight.FlightDescriptor.for_command(ticket)
        assert "valid for v1" in refusal(lambda: put(client, permit))


def test_a_permit_is_for_one_partition(served: Cluster):
    """Bytes, sizes and shapes that differ from the announced ones are refused, and nothing of them is kept."""
    digest = "cd" * 32
    grant = Grant("put", "", 0, (Piece(0, digest, ()),), 1e12, upload="u", stored_bytes=1_000)
    permit = flight.FlightDescriptor.for_command(issue(served.secret, grant))
    before = served.stored_files(0)
    with flight.connect(served.nodes[0].location) as client:
        refusal(lambda: put(client, permit, [b"x" * 999]))
        refusal(lambda: put(client, permit, [b"x" * 1_000, b"x"]))
        refusal(lambda: put(client, permit, []))
        refusal(lambda: put(client, permit, [b"x" * (5 << 20)]))
        refusal(lambda: put(client, permit, [None]))
        assert "must have exactly one column" in refusal(
            lambda: put(client, permit, [b"x"], pa.schema([("other", pa.large_binary())]))
        )
        refusal(lambda: put(client, flight.FlightDescriptor.for_path("/etc/passwd"), [b"x"]))
    assert served.stored_files(0) == before
    assert list((served.folder / "node0").glob("*.part")) == []


def put(
    client: flight.FlightClient,
    descriptor: flight.FlightDescriptor,
    pieces: list[bytes | None] | None = None,
    schema: pa.Schema = UPLOAD,
) -> None:
    writer, replies = client.do_put(descriptor, schema)
    with writer:
        for piece in pieces or []:
            batch = pa.RecordBatch.from_arrays([pa.array([piece], pa.large_binary())], names=schema.names)
            writer.write_batch(batch.cast(schema) if piece is not None else batch)
        writer.done_writing()
        replies.read()


@pytest.mark.parametrize("name", ["/etc/passwd", "../../x", "a\0b", "", "t; DROP TABLE versions", "x" * 2_000])
def test_a_path_in_a_tables_name(served: Cluster, name: str):
    caller = Caller(served.token)
    for action, message in (("delete", {"table": name}), ("begin", {"table": name})):
        refusal(lambda action=action, message=message: caller.act(served.uri, action, msgspec.json.encode(message)))
    with flight.connect(served.uri) as client:
        refusal(lambda: client.get_flight_info(flight.FlightDescriptor.for_path(name), caller.options()))
        if name and len(name) < 1_000:
            ask = Ask(msgspec.Raw(wire.encode_query(Query(name))))
            descriptor = flight.FlightDescriptor.for_command(encode(ask))
            refusal(lambda: client.get_flight_info(descriptor, caller.options()))


def test_a_path_in_place_of_a_digest(served: Cluster):
    caller = Caller(served.token)
    upload = served.catalog._catalog.uploads.begin("u")
    for digest in ("../../etc/passwd", "AB" * 32, "", "/" * 64):
        refusal(lambda digest=digest: caller.act(served.uri, "place", Place(upload, 0, digest, 10)))
        grant = Grant("all", "", 0, (Piece(0, digest, ()),), 1e12)
        with flight.connect(served.nodes[0].location) as client:
            refusal(
                lambda client=client, grant=grant: client.do_get(flight.Ticket(issue(served.secret, grant))).read_all()
            )
    served.catalog._catalog.uploads.abort(upload)


def test_messages_of_20_megabytes(served: Cluster):
    """They are refused as too long, with their kind, and the server continues."""
    body = b" " * 20_000_000
    caller = Caller(served.token)
    assert "at most" in refusal(lambda: caller.act(served.uri, "delete", body))
    with flight.connect(served.nodes[0].location) as client:
        assert "at most" in refusal(lambda: client.do_get(flight.Ticket(body)).read_all())
    assert served.client().query("SELECT * FROM t").num_rows == 1_000


def test_calls_that_nothing_answers(served: Cluster):
    options = Caller(served.token).options()
    for location in (served.uri, served.nodes[0].location):
        with flight.connect(location) as client:
            refusal(lambda client=client: list(client.do_action(flight.Action("no such", b""), options)))

            def exchange(client: flight.FlightClient = client) -> None:
                writer, reader = client.do_exchange(flight.FlightDescriptor.for_path("t"), options)
                writer.done_writing()
                reader.read_all()

            refusal(exchange)
            assert list(client.list_actions()) == []
    with flight.connect(served.uri) as client:
        refusal(lambda: client.do_get(flight.Ticket(b"x"), options).read_all())
        refusal(lambda: put(client, flight.FlightDescriptor.for_path("t"), [b"x"]))


def test_an_unsigned_wish_gets_less_or_nothing(served: Cluster):
    """What a client appends to its ticket never gives it more."""
    endpoint = endpoints(served)[0]
    rng = random.Random(2)
    told = []
    with flight.connect(endpoint.locations[0]) as client:
        whole = client.do_get(endpoint.ticket).read_all().num_rows
        for _ in range(30):
            numbers = [rng.choice((-(2**70), -1, 0, 1, 2, 5, 2**62, 2**70)) for _ in range(3)]
            wish = msgspec.json.encode({"after": numbers, "known": numbers})
            ticket = with_wish(endpoint.ticket.ticket, Wish()).removesuffix(encode(Wish())) + wish
            try:
                assert client.do_get(flight.Ticket(ticket)).read_all().num_rows <= whole
            except pa.ArrowException as error:
                told.append(str(error))
    assert not [text for text in told if TELLING.search(text)]


def test_mutated_requests(served: Cluster):
    """The test sends 300 of seed 1; `python -m libraries.near_storage.tests.serving.mutated` sends 10,000."""
    assert mutated.send(served, 300, seed=1) == []


def test_sixty_at_once_against_eight_places(served: Cluster):
    """All are answered or refused as busy, eight at a time, and no client gets another error."""
    for node in served.nodes:
        node.fault = slow(0.05)
    ticket = next(each.ticket for each in endpoints(served) if str(served.nodes[0].port) in str(each.locations[0].uri))
    start = threading.Barrier(60)

    def ask(_: int) -> str:
        with flight.connect(served.nodes[0].location) as client:
            start.wait(30)
            try:
                return f"{client.do_get(ticket).read_all().num_rows} rows"
            except flight.FlightUnavailableError as error:
                return type(from_flight(error)).__name__

    try:
        with ThreadPoolExecutor(60) as asking:
            told = list(asking.map(ask, range(60)))
    finally:
        for node in served.nodes:
            node.fault = None
    assert set(told) == {"500 rows", "BusyError"}
    assert served.nodes[0].gate.most_inside == 8


def test_patient_clients_are_all_answered(served: Cluster):
    client = served.client(busy_s=60)
    with ThreadPoolExecutor(40) as asking:
        answers = list(asking.map(lambda number: client.query(f"SELECT a FROM t WHERE a = {number}"), range(40)))
    assert [answer["a"].to_pylist() for answer in answers] == [[number] for number in range(40)]
    assert max(node.gate.most_inside for node in served.nodes) <= 8


def test_nothing_but_loopback_without_tls(tmp_path: Path):
    from libraries.near_storage.serving.server_process import serve_catalog

    with pytest.raises(RequestError, match="without TLS"):
        serve_catalog(tmp_path / "c", security.new_secret(), [], host="0.0.0.0")


def test_one_folder_one_server(served: Cluster):
    from libraries.near_storage.storing.catalog import Catalog

    with pytest.raises(BusyError, match="in use"):
        Catalog(served.folder / "catalog")
    assert os.path.exists(served.folder / "catalog")


def test_row_groups_that_are_too_large_for_a_request(tmp_path: Path):
    """A node reports this before it reads them; chunks sent as stored need no further memory."""
    table = pa.table({"a": range(10_000), "b": range(10_000)})
    with cluster(tmp_path, nodes=1, replicas=1, limits=Limits(memory_bytes=1_300_000, batch_bytes=10_000)) as small:
        client = small.client()
        client.put("t", table)
        for sql in ("SELECT * FROM t", "SELECT sum(a), sum(b) FROM t", "SELECT a FROM t WHERE b > 5"):
            with pytest.raises(RequestError, match=r"needs .* of memory, .* get 650 kB"):
                client.query(sql, "v1")
        assert client.query("SELECT a FROM t", "v1").equals(table.select(["a"]))
        assert client.query("SELECT * FROM t", "v2").equals(table)


def test_a_footer_that_is_too_large_to_describe(tmp_path: Path):
    """The node refuses the partition before it parses the footer, and keeps nothing."""
    many = pa.table({f"column {number}": [1] for number in range(100)})
    with cluster(tmp_path, nodes=1, replicas=1, limits=Limits(memory_bytes=1_200_000)) as small:
        client = small.client()
        with pytest.raises(RequestError, match=r"an upload with a footer of .* needs .* get 600 kB; write larger row"):
            client.put("t", many)
        client.put("t", many.select([0, 1]))
        (node,) = small.nodes
        assert 0 < node.gate.most_held_bytes <= 600_000
        text = b"some text\n" * 10_000
        grant = Grant("put", "", 0, (Piece(0, digest_of(text), ()),), 1e12, upload="u", stored_bytes=len(text))
        permit = flight.FlightDescriptor.for_command(issue(small.secret, grant))
        with flight.connect(node.location) as direct:
            assert "truncated or not Parquet" in refusal(lambda: put(direct, permit, [text]))
        assert len(small.stored_files(0)) == 1
        assert list((small.folder / "node0").glob("*.part")) == []
