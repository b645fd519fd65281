"""Servers as separate processes: killed, stopped and restarted during operations."""

import random
import signal
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from libraries.near_storage.client import stream_queue
from libraries.near_storage.client.connection import Client, connect
from libraries.near_storage.client.executor import Asked, Options
from libraries.near_storage.errors import NearStorageError, UnavailableError
from libraries.near_storage.query import Query
from libraries.near_storage.tests.serving.processes import Processes, processes


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """An incompressible table too large for the buffers between a node and a client that waits."""
    count, rng = 800_000, np.random.default_rng(1)
    noise = {name: rng.integers(2**62, size=count) for name in ("c", "d")}
    return pa.table({"a": np.arange(count), "b": np.arange(count) % 1_000, **noise})


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory, table: pa.Table):
    with processes(tmp_path_factory.mktemp("processes")) as made:
        with connect(made.uri, made.token) as client:
            client.put("t", table, 100_000)
        yield made


@pytest.mark.parametrize(
    ("way", "number"), [("v1", signal.SIGKILL), ("v2", signal.SIGKILL), ("all", signal.SIGKILL), ("v1", signal.SIGSTOP)]
)
def test_a_node_is_gone_in_the_middle_of_a_stream(
    started: Processes, table: pa.Table, way: str, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stream_queue, "QUEUE_BYTES", 50_000)
    try:
        with connect(started.uri, started.token, idle_s=1.5) as client:
            asked = _asked_of_node0(client, way)
            streams = client.executor.streams(asked)
            batches = (batch for _, batch in streams.rows(asked.sources))
            rows = [next(batches)]
            started.send("node0", number)
            rows += list(batches)
            assert pa.Table.from_batches(rows).equals(table)
            assert streams.received.resumed
            assert client.query("SELECT count(*) AS n FROM t WHERE b < 10", None)["n"].to_pylist() == [8_000]
    finally:
        if number is signal.SIGKILL:
            started.send("node0", signal.SIGKILL)
            started.running.pop("node0").communicate()
            started.start("node0")
        else:
            started.send("node0", signal.SIGCONT)


def _asked_of_node0(client: Client, way: str) -> Asked:
    """Ask until node0 has to send at least three of the eight partitions: fewer fit into the buffers. After node0 was
    started again, it gets fewer partitions or none until it has reported all of them to the catalog."""
    for _ in range(200):
        asked = client.executor.ask(Query("t"), Options(way=way))
        if any(source.share.nodes[0] == "node0" and len(source.share.pieces) >= 3 for source in asked.sources):
            return asked
        time.sleep(0.05)
    pytest.fail("node0 was not asked for three partitions within 10 s")


def test_both_nodes_are_gone(started: Processes):
    with connect(started.uri, started.token, idle_s=0.3) as client:
        for name in ("node0", "node1"):
            started.send(name, signal.SIGSTOP)
        try:
            with pytest.raises(UnavailableError, match=r"nothing arrived for \d"):
                client.query("SELECT * FROM t")
        finally:
            for name in ("node0", "node1"):
                started.send(name, signal.SIGCONT)


def test_the_catalog_is_started_again(started: Processes, table: pa.Table):
    with connect(started.uri, started.token) as client:
        started.send("catalog", signal.SIGKILL)
        started.running.pop("catalog").communicate()
        with pytest.raises(NearStorageError):
            client.query("SELECT * FROM t")
    started.start("catalog", int(started.uri.rpartition(":")[2]))
    with connect(started.uri, started.token) as client:
        assert client.query("SELECT * FROM t").equals(table)


def test_servers_end_on_a_signal(started: Processes):
    """They end with exit code 0, even during a stream whose client stopped reading."""
    with connect(started.uri, started.token) as client:
        batches = client.batches("SELECT * FROM t", "v1")
        next(batches)
        ended = {}
        ends = [
            threading.Thread(target=lambda name=name: ended.update({name: started.end(name)}))
            for name in ("node0", "node1", "catalog")
        ]
        for end in ends:
            end.start()
        for end in ends:
            end.join(30)
        with pytest.raises(NearStorageError):
            list(batches)
    assert ended == {"node0": 0, "node1": 0, "catalog": 0}


def _unused_port() -> int:
    """Return an unused port outside the range from which the kernel gives ports to servers of other tests."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.sample(range(10_000, lowest), 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    pytest.fail("100 ports are in use")


def test_a_node_waits_for_its_catalog(tmp_path: Path):
    port = _unused_port()
    made = Processes(tmp_path, uri=f"grpc://127.0.0.1:{port}")
    starting = threading.Thread(target=lambda: made.start("node0"))
    starting.start()
    try:
        starting.join(1)
        assert starting.is_alive()
        made.start("catalog", port)
        starting.join(30)
        with connect(made.uri, made.token) as client:
            assert client.nodes() == {"node0": made.addresses["node0"]}
    finally:
        for process in made.running.values():
            process.kill()
            process.communicate()
        starting.join(10)
