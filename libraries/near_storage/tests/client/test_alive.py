"""A node that works without finding rows reports that in empty batches, which are checked like any other."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from libraries.near_storage.serving import node_streams
from libraries.near_storage.serving.limits import Limits
from libraries.near_storage.tests.serving.cluster import Cluster, cluster

ROWS = 2_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.table(
        {
            "key": np.arange(ROWS),
            "odd": np.arange(ROWS) * 7 % ROWS,
            "name": [f"name {row % 9}" for row in range(ROWS)],
            "list": pa.array([[row] * (row % 3) for row in range(ROWS)], pa.list_(pa.int16())),
            "pair": [{"a": row, "b": str(row)} for row in range(ROWS)],
        }
    )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, table: pa.Table) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("alive"), limits=Limits(batch_bytes=4_096)) as made:
        made.client().put("t", table, rows_per_partition=500)
        yield made


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT * FROM t", ROWS),
        ("SELECT name, list, pair FROM t WHERE odd < 3", 3),
        # Statistics prune no row group, and no row matches.
        ("SELECT name, list, pair FROM t WHERE odd > 600 AND odd < 900 AND name = 'name 10'", 0),
        ("SELECT name, count(*) AS n FROM t GROUP BY name", 9),
        ("SELECT min(name) AS n FROM t", 1),
    ],
)
def test_a_node_that_says_after_all_it_reads_that_it_is_alive(
    served: Cluster, monkeypatch: pytest.MonkeyPatch, sql: str, rows: int
):
    client = served.client()
    silent = client.answer(sql, "v1")
    monkeypatch.setattr(node_streams, "ALIVE_S", 0.0)
    alive = client.answer(sql, "v1")
    assert (alive.received.resumed, alive.received.failures) == (0, [])
    assert alive.table.equals(silent.table)
    assert alive.table.num_rows == rows
    assert alive.received.batches > silent.received.batches
