"""Tables are created, changed and deleted; lost data of nodes is found and repaired."""

import dataclasses
import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as pq
import pytest

from libraries.durable.calls import OSCalls
from libraries.near_storage.client.sources import partitions
from libraries.near_storage.errors import (
    BusyError,
    FooterError,
    FullError,
    NotFoundError,
    RequestError,
    UnavailableError,
)
from libraries.near_storage.serving import maintenance, server_process
from libraries.near_storage.serving.limits import Limits
from libraries.near_storage.serving.node import StorageNode
from libraries.near_storage.serving.protocol import OfDigest
from libraries.near_storage.storing.catalog import Catalog
from libraries.near_storage.storing.partition_metadata import DESCRIBED_PER_FOOTER, PartitionInfo
from libraries.near_storage.storing.partitions import NodeReport, PartitionStore
from libraries.near_storage.storing.recent import Recent
from libraries.near_storage.tests.serving.cluster import BrokenNode, Cluster, cluster, hanging, has_ipv6
from libraries.near_storage.tests.storing.files import describe_here


def rows(first: int, count: int = 300) -> pa.Table:
    return pa.table({"a": list(range(first, first + count)), "b": [str(row) for row in range(count)]})


@pytest.fixture
def served(tmp_path: Path):
    with cluster(tmp_path) as made:
        yield made


def test_a_table_is_put_replaced_and_deleted(served: Cluster):
    client = served.client()
    seen = []
    assert client.put("t", rows(0), 100, progress=lambda done, total: seen.append((done, total))) == 1
    assert [table.table for table in client.tables()] == ["t"]
    assert client.query("SELECT * FROM t").equals(rows(0))
    assert len(seen) == 3
    assert seen[-1][0] == client.tables()[0].stored_bytes
    batches = client.batches("SELECT * FROM t")
    client.put("t", rows(1_000))
    assert pa.Table.from_batches(batches).equals(rows(0))
    assert client.query("SELECT * FROM t").equals(rows(1_000))
    client.delete("t")
    with pytest.raises(NotFoundError, match=r"\bt\b"):
        client.query("SELECT * FROM t")
    with pytest.raises(NotFoundError):
        client.delete("t")
    assert client.tables() == ()


def test_files_are_stored_byte_for_byte(served: Cluster, tmp_path: Path):
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(3):
        pq.write_table(rows(number * 300), folder / f"{number}.parquet", row_group_size=50)
    client = served.client()
    client.put("t", folder)
    originals = sorted(path.read_bytes() for path in folder.iterdir())
    for node in range(2):
        assert sorted(path.read_bytes() for path in served.stored_files(node)) == originals
    assert client.query("SELECT * FROM t")["a"].to_pylist() == list(range(900))
    assert client.put("t", [folder / "2.parquet", folder / "0.parquet"], rows_per_partition=250) == 2
    assert client.query("SELECT a FROM t")["a"].to_pylist() == [*range(600, 900), *range(300)]
    assert client.tables()[0].partitions == 3


@pytest.mark.parametrize(
    ("count", "size", "parts"), [(300, 100, 3), (301, 100, 4), (99, 100, 1), (0, 100, 1), (30, 1, 30)]
)
def test_rows_are_cut_into_partitions(tmp_path: Path, count: int, size: int, parts: int):
    path = tmp_path / "x.parquet"
    pq.write_table(rows(0, count), path, row_group_size=70)
    for source in (rows(0, count), path):
        cut = [pq.read_table(part) for part in partitions(source, size)]
        assert len(cut) == parts
        assert pa.concat_tables(cut).equals(rows(0, count))
        assert all(part.num_rows == size for part in cut[:-1])


def test_what_cannot_be_put(served: Cluster, tmp_path: Path):
    client = served.client()
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1" + os.urandom(500) + b"PAR1")
    with pytest.raises(FooterError):
        client.put("t", broken)
    with pytest.raises(FooterError):
        client.put("t", broken, rows_per_partition=10)
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"c": [1]}), other)
    good = tmp_path / "good.parquet"
    pq.write_table(rows(0), good)
    with pytest.raises(RequestError, match="other columns"):
        client.put("t", [good, other])
    for source, rows_per_partition in ((tmp_path / "none", None), ([], None), (good, 0)):
        with pytest.raises(RequestError):
            client.put("t", source, rows_per_partition)
    for name in ("../etc/passwd", "/etc/passwd", "", "a b", "x" * 300, "a\0b"):
        with pytest.raises(RequestError, match="name of a table"):
            client.put(name, good)
    assert client.tables() == ()
    served.catalog.maintaining.repair(False)
    assert served.stored_files(0) == served.stored_files(1) == []


class FullDisk(OSCalls):
    def write(self, descriptor: int, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/srv/disk")


def test_a_full_disk(served: Cluster, tmp_path: Path):
    served.nodes[1].close()
    store = PartitionStore(tmp_path / "node1", calls=FullDisk(), describe=describe_here)
    full = StorageNode(store, "node1", served.secret)
    # The folder already knows its catalog, so that registering needs no write.
    full.register(served.uri)
    client = served.client()
    with pytest.raises(FullError, match=r"node1: .* disk is full") as told:
        client.put("t", rows(0))
    assert "srv" not in str(told.value)
    assert client.tables() == ()
    assert list((tmp_path / "node1").glob("*.part*")) == []
    third = StorageNode(PartitionStore(tmp_path / "node2", describe=describe_here), "node2", served.secret)
    third.register(served.uri)
    assert client.put("t", rows(0), 10) == 1, "others have room"
    assert client.query("SELECT * FROM t").equals(rows(0))
    for node in (full, third):
        node.close()


def test_a_node_that_is_gone_while_a_table_is_put(tmp_path: Path):
    with cluster(tmp_path, nodes=3) as served:
        client = served.client()
        served.nodes[0].close()
        assert client.put("t", rows(0), 50) == 1
        assert client.query("SELECT * FROM t").equals(rows(0))
        served.nodes[1].close()
        with pytest.raises(UnavailableError, match="nodes were lost"):
            client.put("u", rows(5), 50)
        assert [table.table for table in client.tables()] == ["t"]
        assert client.query("SELECT * FROM t").equals(rows(0))


def test_fewer_nodes_than_replicas(tmp_path: Path):
    with cluster(tmp_path, nodes=1, replicas=2) as served, pytest.raises(RequestError, match="2 replicas"):
        served.client().put("t", rows(0))


def test_servers_at_an_address_of_ipv6_are_called_by_it(tmp_path: Path):
    if not has_ipv6():
        pytest.skip("this machine has no IPv6")
    with cluster(tmp_path, host="::1") as served:
        assert served.uri.startswith("grpc://[::1]:")
        client = served.client()
        client.put("t", rows(0), 100)
        assert all(location.startswith("grpc://[::1]:") for location in client.nodes().values())
        assert client.query("SELECT * FROM t").equals(rows(0))
        assert client.check(verify=True).findings == ()


@pytest.mark.parametrize("way", ["client", "flight"])
def test_a_table_that_is_deleted_while_tables_are_listed_is_not_among_them(
    served: Cluster, way: str, monkeypatch: pytest.MonkeyPatch
):
    client = served.client()
    for name in ("a", "b", "c"):
        client.put(name, rows(0))
    known = Catalog.current

    def current(catalog: Catalog, table: str):
        if table == "b":
            catalog.delete("b")
        return known(catalog, table)

    monkeypatch.setattr(Catalog, "current", current)
    if way == "client":
        assert [each.table for each in client.tables()] == ["a", "c"]
        return
    with flight.FlightClient(served.uri) as plain:
        options = flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {served.token}".encode())])
        assert [info.descriptor.path for info in plain.list_flights(options=options)] == [[b"a"], [b"c"]]


def test_what_is_lost_or_damaged_is_mended(served: Cluster):
    client = served.client()
    client.put("t", rows(0), 60)
    lost, damaged, *_ = served.stored_files(0)
    lost.unlink()
    content = bytearray(damaged.read_bytes())
    content[100] ^= 1
    damaged.write_bytes(content)
    (served.folder / "node1" / f"{'ab' * 32}.parquet").write_bytes(b"orphan")
    kinds = [finding.kind for finding in client.check(verify=True).findings]
    assert sorted(kinds) == ["damaged", "few", "few", "lost", "orphan"]
    assert all("/" not in finding.text for finding in client.check(verify=True).findings)
    # Meanwhile, queries continue at the other node.
    for way in ("v1", "v2", "all"):
        assert client.query("SELECT * FROM t", way).equals(rows(0))
    repaired = client.repair(verify=True)
    assert (repaired.copied, repaired.removed, repaired.failed) == (2, 1, ())
    assert client.check(verify=True).findings == ()
    assert [path.name for path in served.stored_files(0)] == [path.name for path in served.stored_files(1)]


def test_a_node_that_is_gone_for_good(tmp_path: Path):
    with cluster(tmp_path, nodes=3) as served:
        client = served.client()
        client.put("t", rows(0), 50)
        served.nodes[2].close()
        assert client.query("SELECT * FROM t").equals(rows(0))
        assert "silent" in {finding.kind for finding in client.check().findings}
        client.repair()
        client.forget("node2")
        client.repair()
        assert client.check().findings == ()
        assert set(client.nodes()) == {"node0", "node1"}
        assert client.query("SELECT * FROM t").equals(rows(0))


def test_a_node_that_answers_is_not_forgotten(tmp_path: Path):
    """Even a node with findings."""
    with cluster(tmp_path, nodes=2) as served:
        client = served.client()
        client.put("t", rows(0), 50)
        served.stored_files(1)[0].unlink()
        assert {(finding.kind, finding.node) for finding in client.check().findings} >= {("lost", "node1")}
        with pytest.raises(RequestError, match="Node node1 answers"):
            client.forget("node1")
        client.repair()
        assert client.check().findings == ()


@contextmanager
def all_places_taken(served: Cluster) -> Iterator[None]:
    """Take them with streams that have begun and are not read."""
    until = threading.Event()
    for node in served.nodes:
        node.fault = hanging(1, until)
    batches = served.client().batches("SELECT * FROM t", "v1")
    try:
        next(batches)
        while not all(node.gate._under_way for node in served.nodes):
            until.wait(0.001)
        yield
    finally:
        until.set()
        batches.close()


def test_nodes_that_are_busy_are_not_gone(tmp_path: Path):
    with cluster(tmp_path, nodes=3, limits=Limits(requests=1, waiting=0)) as served:
        client = served.client()
        client.put("t", rows(0), 50)
        with all_places_taken(served):
            assert client.check().findings == ()
            assert client.repair().copied == 0
            for upkeep in (client.check, client.repair):
                with pytest.raises(BusyError, match=r"node node\d .*retry later"):
                    upkeep(verify=True)


def test_a_node_that_reads_for_longer_than_is_waited_is_not_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with cluster(tmp_path, nodes=3) as served:
        client = served.client()
        client.put("t", rows(0), 50)
        monkeypatch.setattr(maintenance, "VERIFY_S", 0.2)
        report, until = PartitionStore.report, threading.Event()

        def slow(store: PartitionStore, now_s: float, verify: bool = False) -> NodeReport:
            if verify:
                until.wait(10)
            return report(store, now_s, verify)

        monkeypatch.setattr(PartitionStore, "report", slow)
        with pytest.raises(UnavailableError, match=r"node node\d "):
            client.repair(verify=True)
        until.set()


def test_a_copy_that_is_described_as_another_one_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with cluster(tmp_path) as served:
        client = served.client()
        client.put("t", rows(0))
        served.stored_files(0)[0].unlink()
        monkeypatch.setattr(served.nodes[0]._store, "_describe", describe_footer_off)
        repaired = client.repair()
        assert (repaired.copied, len(repaired.failed)) == (0, 1)
        assert "the copy is not recorded" in repaired.failed[0]


def held_while_describing(node: BrokenNode, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Return a list to which the node adds its claimed bytes and the footer's bytes when it describes a partition."""
    held: list[tuple[int, int]] = []

    def describe(path: Path, digest: str) -> PartitionInfo:
        info = describe_here(path, digest)
        held.append((node.gate._held_bytes, info.footer_bytes - 8))
        return info

    monkeypatch.setattr(node._store, "_describe", describe)
    return held


def test_a_copy_may_have_a_footer_that_no_upload_may_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A release without this limit may have stored it."""
    with cluster(tmp_path) as served:
        client = served.client()
        client.put("t", rows(0))
        served.stored_files(0)[0].unlink()
        node = served.nodes[0]
        held = held_while_describing(node, monkeypatch)
        monkeypatch.setattr(node.gate, "memory_bytes", 1_000)
        with pytest.raises(RequestError, match="larger row groups"):
            client.put("u", rows(1))
        repaired = client.repair()
        assert (repaired.copied, repaired.failed) == (1, ())
        assert [claimed for claimed, _ in held] == [1_000]


@pytest.mark.parametrize(
    ("sql", "way"), [("SELECT * FROM t", "v1"), ("SELECT * FROM t", "v2"), ("SELECT sum(a) FROM t", "v1"), ("", "")]
)
def test_memory_is_claimed_for_a_description_that_is_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str, way: str
):
    with cluster(tmp_path, nodes=1, replicas=1) as served:
        client = served.client()
        client.put("t", rows(0))
        (node,), (stored,) = served.nodes, served.stored_files(0)
        expected = client.query(sql, way) if sql else None
        stored.with_suffix(".info").unlink()
        node._store._infos.forget(stored.stem)
        held = held_while_describing(node, monkeypatch)
        if sql:
            assert client.query(sql, way).equals(expected)
        else:
            node.peers.act(node.location, "describe", OfDigest(stored.stem))
        ((claimed, footer_bytes),) = held
        assert claimed == DESCRIBED_PER_FOOTER * footer_bytes


def describe_footer_off(path: Path, digest: str) -> PartitionInfo:
    return dataclasses.replace(describe_here(path, digest), footer_digest="ab" * 32)


def test_what_was_replaced_is_removed_after_the_grace(tmp_path: Path):
    with cluster(tmp_path, grace_s=0.0) as served:
        client = served.client()
        client.put("t", rows(0))
        (old,) = served.stored_files(0)
        client.put("t", rows(7))
        client.repair()
        assert old not in served.stored_files(0)
        assert client.query("SELECT * FROM t").equals(rows(7))


def test_a_description_that_was_damaged_in_the_catalog_comes_from_a_node(tmp_path: Path):
    with cluster(tmp_path) as served:
        client = served.client()
        client.put("t", rows(0))
        stored = served.catalog._catalog
        with stored._database.transaction() as connection:
            connection.execute("UPDATE partitions SET info = zeroblob(100)")
        stored._infos = Recent(1 << 20)
        assert client.query("SELECT * FROM t").equals(rows(0))
        assert client.query("SELECT * FROM t").equals(rows(0))


def test_a_folder_belongs_to_one_catalog(served: Cluster, tmp_path: Path):
    with cluster(tmp_path / "second", nodes=0) as other:
        served.nodes[0].peers = other.catalog.peers
        with pytest.raises(RequestError, match="another catalog"):
            served.nodes[0].register(other.uri)
        assert other.catalog._catalog.nodes() == ()


def test_two_nodes_of_one_name(served: Cluster, tmp_path: Path):
    """The second one is refused, and the first one continues: its folder has the acknowledged data."""
    client = served.client()
    client.put("t", rows(0), 50)
    nodes = client.nodes()
    other = StorageNode(PartitionStore(tmp_path / "disk2" / "node0"), "node0", served.secret)
    try:
        with pytest.raises(RequestError, match="Node node0 is registered with a folder"):
            other.register(served.uri)
        assert client.nodes() == nodes
        assert client.query("SELECT * FROM t").equals(rows(0))
        assert client.check().findings == ()
    finally:
        other.close()


def test_a_node_that_is_started_again_elsewhere(served: Cluster, tmp_path: Path):
    client = served.client()
    client.put("t", rows(0), 50)
    served.nodes[0].close()
    again = StorageNode(PartitionStore(tmp_path / "node0"), "node0", served.secret)
    try:
        again.register(served.uri)
        assert client.nodes()["node0"] == again.location
        assert client.check().findings == ()
    finally:
        again.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "[::]"])
def test_an_address_that_nobody_can_call_is_not_told(tmp_path: Path, host: str):
    with pytest.raises(RequestError, match="--advertise"):
        server_process.serve_node(tmp_path / "node", b"x" * 32, "node", "grpc://127.0.0.1:1", host)
    assert not (tmp_path / "node").exists()


@pytest.mark.parametrize("location", ["grpc+tls://<host>:8816", "grpc://127.0.0.1:8816/x"])
def test_a_node_at_an_address_that_nobody_can_call_is_not_registered(tmp_path: Path, location: str):
    """If it were registered, it would be in every plan, and every query would fail although there are replicas."""
    with cluster(tmp_path, nodes=2) as served:
        served.client().put("t", rows(0))
        with pytest.raises(RequestError, match="grpc://HOST:PORT"):
            served.nodes[0].register(served.uri, location)
        assert served.client().query("SELECT a FROM t WHERE a = 3").to_pydict() == {"a": [3]}


def test_removing_goes_on_whatever_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with cluster(tmp_path, nodes=1, replicas=1) as served:
        catalog = served.catalog
        begun = [threading.Event(), threading.Event()]
        times = iter(begun)

        def fail():
            next(times, begun[-1]).set()
            raise pa.ArrowInvalid("unexpected")

        monkeypatch.setattr(catalog._catalog.upkeep, "collect", fail)
        for each in begun:
            catalog.maintaining._hurry.set()
            assert each.wait(10)


def test_a_table_with_one_name_twice_has_a_schema(tmp_path: Path):
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "a", "b"])
    with cluster(tmp_path, nodes=1, replicas=1) as served:
        client = served.client()
        client.put("t", twice)
        assert client.schema("t").equals(twice.schema)
        assert client.dataset("t").to_table(["b"]).to_pydict() == {"b": [3]}
        assert client.query("SELECT b FROM t").to_pydict() == {"b": [3]}
