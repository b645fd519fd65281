"""Rows that the catalog counts, because it knows their number, without a request to a node."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from libraries.near_storage.tests.serving.cluster import Cluster, cluster


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Ten partitions of 100 rows, one row group each."""
    with cluster(tmp_path_factory.mktemp("counted")) as made:
        made.client().put("t", pa.table({"a": range(1_000), "b": [None, 1] * 500}), 100)
        yield made


def asked(served: Cluster) -> int:
    return sum(node.streams for node in served.nodes)


@pytest.mark.parametrize("way", [None, "v1", "v2"])
@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("", 1_000),
        ("WHERE a >= 0", 1_000),
        ("WHERE a < 300", 300),
        ("WHERE a > 5000", 0),
        ("WHERE a IS NOT NULL", 1_000),
    ],
)
def test_no_node_is_asked_how_many_rows_there_are(counted: Cluster, way: str | None, condition: str, rows: int):
    before = asked(counted)
    found = counted.client().query(f"SELECT count(*) AS n, count(*) AS m FROM t {condition}", way)
    assert found.to_pylist() == [{"n": rows, "m": rows}]
    assert asked(counted) == before


@pytest.mark.parametrize("way", [None, "v1", "v2", "all"])
def test_nodes_count_where_the_catalog_does_not_know(counted: Cluster, way: str | None):
    client = counted.client()
    for condition, rows in (("a < 250", 250), ("a < 250 OR a >= 990", 260), ("b = 1", 500), ("a <> 5", 999)):
        answer = client.answer(f"SELECT count(*) AS n FROM t WHERE {condition}", way)
        assert answer.table.to_pylist() == [{"n": rows}], condition
        assert answer.received.batches
    assert client.query("SELECT count(b) AS n, count(*) AS m FROM t", way).to_pylist() == [{"n": 500, "m": 1_000}]
    grouped = client.query("SELECT b, count(*) AS n FROM t GROUP BY b", way)
    assert grouped.to_pylist() == [{"b": None, "n": 500}, {"b": 1, "n": 500}]


def test_only_row_groups_in_doubt_are_read(counted: Cluster):
    client = counted.client()
    told = client.explain("SELECT count(*) AS n FROM t WHERE a < 250")
    assert (told.groups_read, told.groups_counted, told.groups_all) == (1, 2, 10)
    assert "1 of 10 are read, 7 pruned, 2 counted by the catalog" in str(told)
    nothing = client.explain("SELECT count(*) AS n FROM t")
    assert (nothing.groups_read, nothing.groups_counted, nothing.partitions) == (0, 10, ())
    assert "the catalog knows" in str(nothing)
    assert "counted" not in str(client.explain("SELECT a FROM t WHERE a < 250"))


def test_all_footers_are_parsed_where_that_is_measured(counted: Cluster):
    """Counting in the catalog would falsify what the thesis measures."""
    before = asked(counted)
    assert counted.client().query("SELECT count(*) AS n FROM t", "v1", "parsed")["n"].to_pylist() == [1_000]
    assert asked(counted) > before


def test_a_dataset_and_its_fragments_are_counted(counted: Cluster):
    data = counted.client().dataset("t")
    before = asked(counted)
    assert data.count_rows() == 1_000
    assert data.count_rows(filter=pc.field("a") < 300) == 300
    assert sum(fragment.count_rows() for fragment in data.get_fragments(filter=pc.field("a") < 300)) == 300
    assert asked(counted) == before
