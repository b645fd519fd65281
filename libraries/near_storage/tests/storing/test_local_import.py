"""Folders filled without services can be opened by the services."""

import pytest

from libraries.near_storage.errors import FooterError, NotFoundError, RequestError
from libraries.near_storage.storing.catalog import Catalog
from libraries.near_storage.storing.local_import import fill
from libraries.near_storage.storing.partitions import PartitionStore
from libraries.near_storage.tests.storing.files import describe_here, digest_of, parquet


@pytest.fixture
def paths(tmp_path):
    made = []
    for number in range(3):
        made.append(tmp_path / f"{number}.parquet")
        made[-1].write_bytes(parquet(number))
    return made


def test_a_table_lies_on_its_nodes(tmp_path, paths):
    fill(tmp_path / "served", "sales", paths, nodes=3, replicas=2)
    catalog = Catalog(tmp_path / "served" / "catalog")
    version = catalog.current("sales")
    assert [partition.digest for partition in version.partitions] == [digest_of(parquet(n)) for n in range(3)]
    for partition in version.partitions:
        assert len(partition.nodes) == 2
        for node in partition.nodes:
            store = PartitionStore(tmp_path / "served" / node.name, describe=describe_here)
            store.verify(partition.digest)
            store.claim(catalog.identity)
            store.close()
    catalog.close()


def test_the_same_file_under_many_names_is_stored_once(tmp_path, paths):
    fill(tmp_path / "served", "sales", paths[:1] * 5)
    store = PartitionStore(tmp_path / "served" / "node-1", describe=describe_here)
    assert store.total_bytes() == len(parquet(0))
    catalog = Catalog(tmp_path / "served" / "catalog", 1)
    assert catalog.metadata(catalog.current("sales")).files == 5


def test_a_second_table_and_nodes_that_registered_meanwhile(tmp_path, paths):
    fill(tmp_path / "served", "sales", paths[:1])
    catalog = Catalog(tmp_path / "served" / "catalog", 1)
    store = PartitionStore(tmp_path / "served" / "node-1")
    catalog.register_node("node-1", "grpc://127.0.0.1:7", store.identity())
    store.close()
    catalog.close()
    fill(tmp_path / "served", "other", paths[1:2])
    catalog = Catalog(tmp_path / "served" / "catalog", 1)
    assert [table.table for table in catalog.tables()] == ["other", "sales"]
    assert catalog.nodes()[0].uri == "grpc://127.0.0.1:7"


def test_what_fails_leaves_the_table_as_it_was_and_the_nodes_empty(tmp_path, paths):
    paths[1].write_bytes(b"no parquet")
    with pytest.raises(FooterError):
        fill(tmp_path / "served", "sales", paths)
    with pytest.raises(RequestError, match=r"2 replicas .*1 storage node"):
        fill(tmp_path / "served", "sales", paths, nodes=1, replicas=2)
    catalog = Catalog(tmp_path / "served" / "catalog", 1)
    with pytest.raises(NotFoundError):
        catalog.current("sales")
    assert catalog.upkeep.removals() == ()
    assert PartitionStore(tmp_path / "served" / "node-1").digests() == frozenset()
