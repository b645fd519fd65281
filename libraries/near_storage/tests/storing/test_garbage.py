"""Collection and repair on catalog and nodes together, and the races between them."""

import random

import pytest

from libraries.near_storage.errors import BusyError, NotFoundError
from libraries.near_storage.storing.integrity import Discard
from libraries.near_storage.tests.storing.cluster import GRACE_S, IDLE_S, NODES, Clock, Cluster, new_disks
from libraries.near_storage.tests.storing.files import LIMIT_BYTES, digest_of, in_pieces, parquet

DATA, OTHER, THIRD = parquet(1), parquet(2), parquet(3)


@pytest.fixture
def cluster():
    made = Cluster(new_disks(), Clock())
    yield made
    made.end()


def held(cluster: Cluster) -> set[tuple[str, str]]:
    return {(digest, name) for name in NODES for digest in cluster.stores[name].digests()}


def needed(cluster: Cluster) -> set[tuple[str, str]]:
    return {
        (partition.digest, node.name)
        for table in cluster.catalog.tables()
        for partition in cluster.catalog.current(table.table).partitions
        for node in partition.nodes
    }


def remove_behind(cluster: Cluster, digest: str, node: str) -> None:
    cluster.disks[node].unlink(cluster.disks[node].root / "node" / f"{digest}.parquet")


# --- collection ----------------------------------------------------------------------------------------------


def test_what_was_replaced_is_removed_after_its_grace_and_shared_partitions_stay(cluster):
    cluster.put("sales", [DATA, OTHER])
    before = held(cluster)
    cluster.put("sales", [OTHER, THIRD])
    cluster.clock.now_s += GRACE_S - 1
    cluster.collect()
    assert before <= held(cluster)
    cluster.clock.now_s += 1
    cluster.collect()
    assert digest_of(DATA) not in {digest for digest, _ in held(cluster)}
    assert needed(cluster) <= held(cluster)
    assert cluster.check().findings == ()
    with pytest.raises(NotFoundError):
        cluster.catalog.info(digest_of(DATA))


def test_a_deleted_table_leaves_the_nodes_empty(cluster):
    cluster.put("sales", [DATA, OTHER])
    cluster.catalog.delete("sales")
    cluster.clock.now_s += GRACE_S
    cluster.collect()
    assert held(cluster) == set()
    assert cluster.catalog.upkeep.removals() == ()


def test_an_upload_of_which_nothing_is_heard_is_given_up(cluster):
    upload = cluster.catalog.uploads.begin("sales")
    cluster.put_partition(upload, 0, DATA)
    cluster.clock.now_s += IDLE_S - 1
    cluster.collect()
    cluster.put_partition(upload, 1, OTHER)
    cluster.clock.now_s += IDLE_S - 1
    cluster.collect()
    assert len(held(cluster)) == 4
    cluster.clock.now_s += 1
    cluster.collect()
    assert held(cluster) == set()


def test_a_removal_that_was_not_done_is_asked_for_again(cluster):
    cluster.put("sales", [DATA])
    cluster.catalog.delete("sales")
    cluster.clock.now_s += GRACE_S
    first = cluster.catalog.upkeep.collect()
    assert len(first) == 2
    assert cluster.catalog.upkeep.collect() == first
    cluster.remove(first[:1])
    assert cluster.catalog.upkeep.removals() == first[1:]


def test_the_number_of_a_removal_is_never_given_twice(cluster):
    """A node ignores a number that it has already processed."""
    numbers = []
    for _ in range(3):
        upload = cluster.catalog.uploads.begin("sales")
        cluster.put_partition(upload, 0, DATA)
        cluster.catalog.uploads.abort(upload)
        numbers += [removal.number for removal in cluster.catalog.upkeep.removals()]
        cluster.remove(cluster.catalog.upkeep.removals())
        assert held(cluster) == set()
    assert numbers == sorted(set(numbers))


def test_collection_takes_nothing_that_an_upload_has_placed(cluster):
    """The partition leaves its last version while a new upload that already has it is in progress."""
    cluster.put("sales", [DATA])
    upload = cluster.catalog.uploads.begin("other")
    cluster.put_partition(upload, 0, DATA)
    cluster.catalog.delete("sales")
    cluster.clock.now_s += GRACE_S
    cluster.collect()
    cluster.catalog.uploads.commit(upload)
    assert needed(cluster) <= held(cluster)
    assert len(needed(cluster)) == 2
    assert cluster.check().findings == ()


def test_an_upload_cannot_count_on_what_is_being_removed(cluster):
    cluster.put("sales", [DATA])
    nodes = {node for _, node in needed(cluster)}
    cluster.catalog.delete("sales")
    cluster.clock.now_s += GRACE_S
    removals = cluster.catalog.upkeep.collect()
    upload = cluster.catalog.uploads.begin("sales")
    with pytest.raises(BusyError):
        cluster.put_partition(upload, 0, DATA)
    cluster.remove(removals[:1])
    cluster.put_partition(upload, 0, DATA)
    cluster.catalog.uploads.commit(upload)
    cluster.remove(removals)
    assert needed(cluster) == held(cluster)
    assert {node for _, node in needed(cluster)} != nodes


# --- repair --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("harm", ["lost", "damaged"])
def test_repair_brings_a_replica_back(cluster, harm):
    cluster.put("sales", [DATA, OTHER])
    node = cluster.catalog.current("sales").partitions[0].nodes[0].name
    if harm == "lost":
        remove_behind(cluster, digest_of(DATA), node)
    else:
        cluster.disks[node].rot(cluster.disks[node].root / "node" / f"{digest_of(DATA)}.parquet", random.Random(1))
    assert {finding.kind for finding in cluster.check().findings} == {harm, "few"}
    cluster.repair()
    assert cluster.check().findings == ()
    cluster.stores[node].verify(digest_of(DATA))


def test_repair_after_a_node_is_gone_for_good(cluster):
    cluster.put("sales", [DATA, OTHER, THIRD])
    cluster.catalog.forget_node("north")
    del cluster.stores["north"]
    assert {finding.kind for finding in cluster.check().findings} == {"few"}
    cluster.repair()
    assert cluster.check().findings == ()
    for partition in cluster.catalog.current("sales").partitions:
        assert [node.name for node in partition.nodes] == ["south", "west"]


def test_repair_removes_orphans(cluster):
    cluster.stores["north"].put(in_pieces(DATA), None, LIMIT_BYTES)
    assert [finding.kind for finding in cluster.check(orphan_age_s=1e12).findings] == ["young"]
    cluster.repair()
    assert held(cluster) == set()


def test_an_orphan_that_an_upload_places_after_the_check_is_not_removed(cluster):
    cluster.stores["north"].put(in_pieces(DATA), None, LIMIT_BYTES)
    steps = cluster.check().steps
    assert steps == (Discard(digest_of(DATA), "north"),)
    upload = cluster.catalog.uploads.begin("sales")
    cluster.put_partition(upload, 0, DATA)
    cluster.remove(cluster.catalog.upkeep.permit(steps))
    cluster.catalog.uploads.commit(upload)
    cluster.remove(cluster.catalog.upkeep.permit(steps))
    assert needed(cluster) <= held(cluster)
    assert "north" in {node for _, node in needed(cluster)}


def test_orphans_of_a_node_that_was_forgotten_meanwhile_are_left(cluster):
    cluster.stores["north"].put(in_pieces(DATA), None, LIMIT_BYTES)
    steps = cluster.check().steps
    cluster.catalog.forget_node("north")
    assert cluster.catalog.upkeep.permit(steps) == ()


def test_an_unrecorded_replica_is_recorded(cluster):
    cluster.put("sales", [DATA])
    (other,) = set(NODES) - {node for _, node in needed(cluster)}
    cluster.stores[other].put(in_pieces(DATA), None, LIMIT_BYTES)
    cluster.repair()
    assert len(cluster.catalog.current("sales").partitions[0].nodes) == 3
    assert cluster.check().findings == ()


def test_what_no_table_needs_is_not_recorded(cluster):
    with pytest.raises(NotFoundError, match="needs partition"):
        cluster.catalog.upkeep.record(digest_of(DATA), "north")


def test_what_is_being_removed_is_not_recorded(cluster):
    cluster.put("sales", [DATA])
    upload = cluster.catalog.uploads.begin("other", without=[next(iter(sorted(node for _, node in needed(cluster))))])
    placed = {node.name for node in cluster.catalog.uploads.place(upload, 0, digest_of(DATA), len(DATA))}
    (extra,) = placed - {node for _, node in needed(cluster)}
    cluster.catalog.uploads.abort(upload)
    with pytest.raises(BusyError, match="being removed"):
        cluster.catalog.upkeep.record(digest_of(DATA), extra)
