"""Which way a catalog chooses, and how it splits large streams."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from libraries.near_storage.serving import planning
from libraries.near_storage.serving.limits import Limits
from libraries.near_storage.tests.serving.cluster import cluster

ROWS = 4_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table({"key": np.arange(ROWS), "value": rng.integers(2**62, size=ROWS)})


def test_what_no_node_holds_for_a_request_comes_as_chunks(tmp_path: Path, table: pa.Table):
    with cluster(tmp_path, limits=Limits(memory_bytes=200_000, batch_bytes=10_000)) as served:
        client = served.client()
        client.put("t", table)
        answer = client.answer("SELECT * FROM t WHERE key = 7")
        assert answer.plan.way == "v2"
        assert "200,000 bytes of memory" in answer.plan.reason
        assert answer.table.equals(table.slice(7, 1))
        total = client.query("SELECT sum(key) AS total FROM t")
        assert total["total"].to_pylist() == [ROWS * (ROWS - 1) // 2]
        client.put("small", table.slice(0, 500))
        assert client.answer("SELECT * FROM small WHERE key = 7").plan.way == "v1"


@pytest.mark.parametrize("way", ["v1", "v2"])
def test_a_limit_reads_as_many_row_groups_as_surely_match(tmp_path: Path, table: pa.Table, way: str):
    """For row groups that match partly, the number of matching rows is not known beforehand."""
    middle = 2**61
    with cluster(tmp_path) as served:
        client = served.client()
        client.put("t", table, rows_per_partition=200)
        some = client.answer(f"SELECT * FROM t WHERE value < {middle} LIMIT 500", way)
        assert some.table.equals(table.filter(pc.field("value") < middle).slice(0, 500))
        assert some.plan.partitions_read == ROWS / 200
        sure = client.answer("SELECT * FROM t WHERE key >= 600 LIMIT 500", way)
        assert sure.table.equals(table.slice(600, 500))
        assert sure.plan.partitions_read == 3


@pytest.mark.parametrize("way", ["v1", "v2", "all"])
def test_many_partitions_are_several_streams(
    tmp_path: Path, table: pa.Table, monkeypatch: pytest.MonkeyPatch, way: str
):
    monkeypatch.setattr(planning, "MOST_PIECES", 3)
    with cluster(tmp_path) as served:
        client = served.client()
        client.put("t", table, rows_per_partition=200)
        answer = client.answer("SELECT * FROM t", way)
        assert answer.table.equals(table)
        assert sum(node.streams for node in served.nodes) == 8
