"""Fixtures of two nodes and a catalog with one table, shared by all tests of a module that do not change them."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from libraries.near_storage.serving.limits import Limits
from libraries.near_storage.tests.serving.cluster import Cluster, cluster

ROWS = 4_000
SMALL = Limits(batch_bytes=4_096)
"""Size of batches, small enough to divide the test tables into many."""


def small_table(rows: int = ROWS) -> pa.Table:
    return pa.table(
        {
            "key": np.arange(rows),
            "share": pa.array([None if row % 11 == 0 else row % 1_000 / 8 for row in range(rows)]),
            "name": [f"name {row % 97}" for row in range(rows)],
        }
    )


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return small_table()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, table: pa.Table) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster"), limits=SMALL) as made:
        made.client().put("t", table, rows_per_partition=500)
        yield made


@pytest.fixture(autouse=True)
def sound(request: pytest.FixtureRequest) -> Iterator[None]:
    """Remove faults after each test."""
    yield
    if "served" in request.fixturenames:
        for node in request.getfixturevalue("served").nodes:
            node.fault = None
