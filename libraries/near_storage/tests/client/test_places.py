"""Clients that need places at several nodes: a client that waits for one holds none, so that all get answers."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from libraries.near_storage.client import stream_queue, streams
from libraries.near_storage.serving.limits import Limits
from libraries.near_storage.tests.serving.cluster import Cluster, cluster

ROWS, PARTITIONS = 800_000, 8


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """A table too large for the buffers between a node and a client that waits."""
    noise = np.random.default_rng(1).integers(2**62, size=(3, ROWS))
    return pa.table({"key": np.arange(ROWS), "a": noise[0], "b": noise[1], "c": noise[2]})


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, table: pa.Table) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("places"), limits=Limits(requests=1, waiting=0, batch_bytes=1 << 16)) as made:
        made.client().put("t", table, rows_per_partition=ROWS // PARTITIONS)
        yield made


@pytest.mark.parametrize("way", ["v1", "v2", "all"])
def test_clients_that_hold_what_the_other_needs(
    served: Cluster, table: pa.Table, way: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stream_queue, "QUEUE_BYTES", 50_000)
    start, begun, held = streams._Stream.start, threading.Barrier(2), threading.local()

    def start_at_one_node(stream: streams._Stream) -> None:
        """Give each client the place at one node before it requests the other's."""
        if stream._sources[0].locations[0] == held.node:
            start(stream)
            while not next(node for node in served.nodes if node.location == held.node).gate._under_way:
                threading.Event().wait(0.001)
            begun.wait(10)

    monkeypatch.setattr(streams._Stream, "start", start_at_one_node)

    def read(node: str) -> pa.Table:
        held.node = node
        return served.client(busy_s=5).query("SELECT * FROM t", way)

    with ThreadPoolExecutor(2) as reading:
        for found in reading.map(read, [node.location for node in served.nodes]):
            assert found.equals(table)
