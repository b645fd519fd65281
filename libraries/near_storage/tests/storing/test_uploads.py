"""Uploads: where partitions go, what must be acknowledged, and what is refused in time."""

import pyarrow as pa
import pytest

from libraries.near_storage.errors import BusyError, DamagedError, RequestError, StaleError
from libraries.near_storage.storing import uploads
from libraries.near_storage.storing.partition_metadata import PartitionInfo
from libraries.near_storage.tests.storing.files import description, digest_of, parquet
from libraries.near_storage.tests.storing.test_catalog import Shelf, digests

DATA, OTHER = parquet(1), parquet(2)


@pytest.fixture
def shelf(tmp_path):
    made = Shelf(tmp_path / "catalog", nodes=("east", "north", "south"))
    yield made
    made.catalog.close()


def place(shelf: Shelf, upload: str, position: int, data: bytes) -> list[str]:
    return [node.name for node in shelf.catalog.uploads.place(upload, position, digest_of(data), len(data))]


# --- where ---------------------------------------------------------------------------------------------------


def test_fewer_nodes_than_replicas_are_refused(tmp_path):
    shelf = Shelf(tmp_path / "catalog", nodes=("north",))
    with pytest.raises(RequestError, match=r"2 replicas .*1 storage node can take one"):
        shelf.catalog.uploads.begin("sales")


def test_nodes_that_do_not_answer_get_nothing(shelf):
    upload = shelf.catalog.uploads.begin("sales", without=["north"])
    assert {name for position in range(6) for name in place(shelf, upload, position, parquet(position))} == {
        "east",
        "south",
    }
    with pytest.raises(RequestError, match="1 storage node can take one"):
        shelf.catalog.uploads.begin("sales", without=["north", "east"])


def test_partitions_are_spread_over_the_nodes(shelf):
    upload = shelf.catalog.uploads.begin("sales")
    placed = [place(shelf, upload, position, parquet(position)) for position in range(6)]
    assert all(len(set(names)) == 2 for names in placed)
    assert all(sum(name in names for names in placed) == 4 for name in ("east", "north", "south"))


def test_the_emptiest_node_comes_first(shelf):
    shelf.put("sales", 1)
    used = {node.name for node in shelf.catalog.current("sales").partitions[0].nodes}
    (empty,) = {"east", "north", "south"} - used
    assert empty in place(shelf, shelf.catalog.uploads.begin("other"), 0, OTHER)


def test_asked_again_it_names_those_that_have_not_acknowledged(shelf):
    upload = shelf.catalog.uploads.begin("sales")
    first, second = place(shelf, upload, 0, DATA)
    assert place(shelf, upload, 0, DATA) == [first, second]
    shelf.catalog.uploads.acknowledge(upload, digest_of(DATA), first, description(DATA))
    assert place(shelf, upload, 0, DATA) == [second]
    shelf.catalog.uploads.acknowledge(upload, digest_of(DATA), second, description(DATA))
    assert place(shelf, upload, 0, DATA) == []


def test_the_same_file_twice_in_a_table_is_sent_once(shelf):
    upload = shelf.catalog.uploads.begin("sales")
    shelf.place(upload, 0, DATA)
    assert place(shelf, upload, 1, DATA) == []
    shelf.catalog.uploads.commit(upload)
    version = shelf.catalog.current("sales")
    assert digests(version) == [digest_of(DATA)] * 2
    assert (version.rows, version.stored_bytes) == (80, 2 * len(DATA))
    assert version.partitions[0].nodes == version.partitions[1].nodes
    assert len(version.partitions[0].nodes) == 2


@pytest.mark.parametrize(("position", "stored_bytes"), [(-1, 1), (uploads.MOST_PARTITIONS, 1), (0, 0), (0, 1 << 41)])
def test_limits_of_a_table(shelf, position, stored_bytes):
    upload = shelf.catalog.uploads.begin("sales")
    with pytest.raises(RequestError, match="a table has at most"):
        shelf.catalog.uploads.place(upload, position, digest_of(DATA), stored_bytes)


def test_a_position_is_one_partition(shelf):
    upload = shelf.catalog.uploads.begin("sales")
    place(shelf, upload, 0, DATA)
    with pytest.raises(RequestError, match="begin a new upload"):
        place(shelf, upload, 0, OTHER)


# --- what was stored -----------------------------------------------------------------------------------------


def test_what_was_not_placed_on_a_node_is_not_acknowledged_by_it(shelf):
    upload = shelf.catalog.uploads.begin("sales")
    (stranger,) = {"east", "north", "south"} - set(place(shelf, upload, 0, DATA))
    for digest, node in ((digest_of(DATA), stranger), (digest_of(OTHER), "north"), (digest_of(DATA), "unknown")):
        with pytest.raises(RequestError, match="place it first"):
            shelf.catalog.uploads.acknowledge(upload, digest, node, description(DATA))


def test_another_partition_than_was_placed_is_refused(shelf):
    upload = shelf.catalog.uploads.begin("sales")
    node = place(shelf, upload, 0, DATA)[0]
    shorter = PartitionInfo(**{**vars(description(DATA)), "stored_bytes": 1})
    for info in (description(OTHER), shorter):
        with pytest.raises(DamagedError, match="send the announced partition"):
            shelf.catalog.uploads.acknowledge(upload, digest_of(DATA), node, info)


def test_nodes_that_disagree_are_found_out(shelf):
    upload = shelf.catalog.uploads.begin("sales")
    first, second = place(shelf, upload, 0, DATA)
    shelf.catalog.uploads.acknowledge(upload, digest_of(DATA), first, description(DATA))
    wrong = PartitionInfo(**{**vars(description(DATA)), "chunk_digests": description(OTHER).chunk_digests})
    with pytest.raises(DamagedError, match=f"check the memory of {second}"):
        shelf.catalog.uploads.acknowledge(upload, digest_of(DATA), second, wrong)


@pytest.mark.parametrize(
    "columns",
    [
        {"key": pa.int64(), "other": pa.string()},
        {"key": pa.int32(), "name": pa.string()},
        {"name": pa.string(), "key": pa.int64()},
        {"key": pa.int64()},
    ],
)
def test_partitions_with_other_columns_are_refused(shelf, columns):
    upload = shelf.catalog.uploads.begin("sales")
    shelf.place(upload, 0, DATA)
    with pytest.raises(RequestError, match="other columns than the table's first"):
        shelf.place(upload, 1, parquet(2, 40, **columns))


def test_partitions_with_other_leaves_are_refused(shelf, monkeypatch):
    """The Arrow types are equal, but the metadata of the partitions could not be concatenated."""
    upload = shelf.catalog.uploads.begin("sales")
    shelf.place(upload, 0, DATA)
    monkeypatch.setattr(PartitionInfo, "leaves_digest", "another")
    with pytest.raises(RequestError, match="other Parquet types"):
        shelf.place(upload, 1, OTHER)


# --- the end -------------------------------------------------------------------------------------------------


def test_nothing_is_seen_before_the_commit_and_all_after_it(shelf):
    upload = shelf.catalog.uploads.begin("sales")
    shelf.place(upload, 0, DATA)
    shelf.place(upload, 1, OTHER)
    assert shelf.catalog.tables() == ()
    shelf.reopen()
    assert shelf.catalog.tables() == ()
    number = shelf.catalog.uploads.commit(upload)
    assert shelf.catalog.current("sales").number == number


def test_a_commit_asked_for_again_gives_the_same_number(shelf):
    upload = shelf.catalog.uploads.begin("sales")
    shelf.place(upload, 0, DATA)
    number = shelf.catalog.uploads.commit(upload)
    shelf.put("sales", 2)
    assert shelf.catalog.uploads.commit(upload) == number
    assert shelf.catalog.current("sales").number != number


def test_a_commit_with_something_missing_is_refused_and_the_upload_goes_on(shelf):
    upload = shelf.catalog.uploads.begin("sales")
    with pytest.raises(RequestError, match="has no partitions"):
        shelf.catalog.uploads.commit(upload)
    shelf.place(upload, 1, OTHER)
    with pytest.raises(RequestError, match=r"1 partition,.* number 1"):
        shelf.catalog.uploads.commit(upload)
    first, second = place(shelf, upload, 0, DATA)
    shelf.catalog.uploads.acknowledge(upload, digest_of(DATA), first, description(DATA))
    with pytest.raises(RequestError, match=f"not yet acknowledged by node {second}"):
        shelf.catalog.uploads.commit(upload)
    shelf.catalog.uploads.acknowledge(upload, digest_of(DATA), second, description(DATA))
    shelf.catalog.uploads.commit(upload)


def test_the_last_of_two_uploads_that_commits_is_current(shelf):
    first, second = shelf.catalog.uploads.begin("sales"), shelf.catalog.uploads.begin("sales")
    shelf.place(first, 0, DATA)
    shelf.place(second, 0, OTHER)
    numbers = [shelf.catalog.uploads.commit(second), shelf.catalog.uploads.commit(first)]
    assert numbers == sorted(numbers)
    assert digests(shelf.catalog.current("sales")) == [digest_of(DATA)]
    assert digests(shelf.catalog.version("sales", numbers[0])) == [digest_of(OTHER)]


def test_an_upload_to_a_table_that_was_deleted_meanwhile_makes_it_anew(shelf):
    shelf.put("sales", 5)
    upload = shelf.catalog.uploads.begin("sales")
    shelf.place(upload, 0, DATA)
    shelf.catalog.delete("sales")
    shelf.catalog.uploads.commit(upload)
    assert digests(shelf.catalog.current("sales")) == [digest_of(DATA)]


def test_after_an_abort_the_upload_is_over(shelf):
    upload = shelf.catalog.uploads.begin("sales")
    node = place(shelf, upload, 0, DATA)[0]
    shelf.catalog.uploads.abort(upload)
    calls = (
        lambda: shelf.catalog.uploads.commit(upload),
        lambda: shelf.catalog.uploads.abort(upload),
        lambda: place(shelf, upload, 1, OTHER),
        lambda: shelf.catalog.uploads.acknowledge(upload, digest_of(DATA), node, description(DATA)),
    )
    for call in calls:
        with pytest.raises(StaleError, match="begin a new one"):
            call()


# --- removal and uploads -------------------------------------------------------------------------------------


def test_a_partition_that_is_being_removed_is_placed_elsewhere_or_later(shelf):
    upload = shelf.catalog.uploads.begin("sales")
    doomed = place(shelf, upload, 0, DATA)
    shelf.catalog.uploads.abort(upload)
    upload = shelf.catalog.uploads.begin("sales")
    with pytest.raises(BusyError, match="is being removed"):
        place(shelf, upload, 0, DATA)
    removal, other = shelf.catalog.upkeep.removals()
    assert [removal.node, other.node] == sorted(doomed)
    shelf.catalog.upkeep.removed(removal)
    assert other.node not in place(shelf, upload, 0, DATA)


def test_an_abort_removes_nothing_of_a_version(tmp_path):
    shelf = Shelf(tmp_path / "catalog")
    shelf.put("sales", 1)
    upload = shelf.catalog.uploads.begin("other")
    shelf.place(upload, 0, DATA)
    shelf.place(upload, 1, OTHER)
    shelf.catalog.uploads.abort(upload)
    assert {removal.digest for removal in shelf.catalog.upkeep.removals()} == {digest_of(OTHER)}


def test_an_abort_removes_nothing_that_another_upload_or_version_needs(shelf):
    shelf.put("sales", 1)
    uploads = [shelf.catalog.uploads.begin("sales") for _ in range(2)]
    for upload in uploads:
        shelf.place(upload, 0, OTHER)
        shelf.place(upload, 1, DATA)
    shelf.catalog.uploads.abort(uploads[0])
    needed = {
        (partition.digest, node.name)
        for partition in shelf.catalog.current("sales").partitions
        for node in partition.nodes
    }
    assert not needed & {(removal.digest, removal.node) for removal in shelf.catalog.upkeep.removals()}
    shelf.catalog.uploads.commit(uploads[1])
    removals = {(removal.digest, removal.node) for removal in shelf.catalog.upkeep.removals()}
    for partition in shelf.catalog.current("sales").partitions:
        assert not removals & {(partition.digest, node.name) for node in partition.nodes}
