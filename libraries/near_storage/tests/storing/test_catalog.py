"""Tables and versions: what is visible, what is refused, and how long old versions stay readable."""

import sqlite3
import threading

import pyarrow as pa
import pytest

from libraries.near_storage.errors import (
    BusyError,
    DamagedError,
    FullError,
    NearStorageError,
    NotFoundError,
    RequestError,
    StaleError,
)
from libraries.near_storage.storing.catalog import Catalog
from libraries.near_storage.storing.uploads import Node
from libraries.near_storage.tests.storing.cluster import GRACE_S, Clock, Cluster, new_disks
from libraries.near_storage.tests.storing.files import description, digest_of, parquet


class Shelf:
    """A catalog on a real disk; its nodes acknowledge all placements."""

    def __init__(self, folder, nodes=("north", "south"), replicas=2) -> None:
        self.folder, self.replicas, self.clock = folder, replicas, Clock()
        self.catalog = self.open()
        for name in nodes:
            self.catalog.register_node(name, f"grpc://{name}:1", f"folder-{name}")

    def open(self) -> Catalog:
        return Catalog(self.folder, self.replicas, GRACE_S, 1000.0, self.clock)

    def reopen(self) -> None:
        self.catalog.close()
        self.catalog = self.open()

    def put(self, table: str, *numbers: int) -> int:
        upload = self.catalog.uploads.begin(table)
        for position, number in enumerate(numbers):
            self.place(upload, position, parquet(number))
        return self.catalog.uploads.commit(upload)

    def place(self, upload: str, position: int, data: bytes) -> None:
        for node in self.catalog.uploads.place(upload, position, digest_of(data), len(data)):
            self.catalog.uploads.acknowledge(upload, digest_of(data), node.name, description(data))


@pytest.fixture
def shelf(tmp_path):
    made = Shelf(tmp_path / "catalog")
    yield made
    made.catalog.close()


def digests(version) -> list[str]:
    return [partition.digest for partition in version.partitions]


# --- versions ------------------------------------------------------------------------------------------------


def test_a_table_says_what_it_consists_of(shelf):
    number = shelf.put("sales", 1, 2, 3)
    version = shelf.catalog.current("sales")
    files = [parquet(number) for number in (1, 2, 3)]
    assert (version.table, version.number, version.rows) == ("sales", number, 120)
    assert version.stored_bytes == sum(len(data) for data in files)
    assert digests(version) == [digest_of(data) for data in files]
    assert [partition.position for partition in version.partitions] == [0, 1, 2]
    assert [partition.stored_bytes for partition in version.partitions] == [len(data) for data in files]
    assert version.schema.equals(pa.schema([("key", pa.int64()), ("name", pa.string())]))
    nodes = (Node("north", "grpc://north:1"), Node("south", "grpc://south:1"))
    assert all(partition.nodes == nodes for partition in version.partitions)
    (summary,) = shelf.catalog.tables()
    assert (summary.table, summary.number, summary.rows, summary.partitions) == ("sales", number, 120, 3)


def test_all_of_it_is_there_after_a_restart(shelf):
    shelf.put("sales", 1, 2)
    before, identity = shelf.catalog.current("sales"), shelf.catalog.identity
    shelf.reopen()
    assert shelf.catalog.current("sales") == before
    assert shelf.catalog.identity == identity


def test_a_new_version_replaces_the_old_one_which_can_be_read_for_a_while(shelf):
    old = shelf.put("sales", 1)
    shelf.clock.now_s += 10
    new = shelf.put("sales", 2, 3)
    assert new > old
    assert shelf.catalog.current("sales").number == new
    assert digests(shelf.catalog.version("sales", old)) == [digest_of(parquet(1))]
    shelf.clock.now_s += GRACE_S - 1
    shelf.catalog.upkeep.collect()
    assert digests(shelf.catalog.version("sales", old)) == [digest_of(parquet(1))]
    shelf.clock.now_s += 1
    for _ in range(2):
        with pytest.raises(StaleError, match=r"Version \d+ of table"):
            shelf.catalog.version("sales", old)
        shelf.catalog.upkeep.collect()
    assert digests(shelf.catalog.version("sales", new)) == [digest_of(parquet(2)), digest_of(parquet(3))]


def test_a_number_never_means_anything_else(shelf):
    numbers = [shelf.put("sales", 1)]
    for _ in range(3):
        shelf.catalog.delete("sales")
        shelf.clock.now_s += 10 * GRACE_S
        for removal in shelf.catalog.upkeep.collect():
            shelf.catalog.upkeep.removed(removal)
        shelf.reopen()
        numbers.append(shelf.put("sales", 1))
    assert len(set(numbers)) == 4
    for number in numbers[:-1]:
        with pytest.raises(StaleError):
            shelf.catalog.version("sales", number)


def test_a_version_of_another_table_is_stale(shelf):
    number = shelf.put("sales", 1)
    shelf.put("other", 1)
    with pytest.raises(StaleError):
        shelf.catalog.version("other", number)


def test_a_deleted_table_is_not_found_and_its_version_readable_for_a_while(shelf):
    number = shelf.put("sales", 1)
    shelf.catalog.delete("sales")
    assert shelf.catalog.tables() == ()
    for call in (shelf.catalog.current, shelf.catalog.delete):
        with pytest.raises(NotFoundError, match="sales"):
            call("sales")
    assert shelf.catalog.version("sales", number).rows == 40
    shelf.clock.now_s += GRACE_S
    with pytest.raises(StaleError):
        shelf.catalog.version("sales", number)


def test_readers_see_the_old_or_the_new_version_while_it_is_switched(shelf):
    """The two partitions of a version always belong to one put."""
    shelf.put("sales", 0, 100)
    pairs = {(digest_of(parquet(number)), digest_of(parquet(number + 100))) for number in range(12)}
    failed, done = [], threading.Event()

    def read() -> None:
        last = 0
        while not done.is_set():
            version = shelf.catalog.current("sales")
            if tuple(digests(version)) not in pairs or version.number < last:
                failed.append(version)
            last = version.number

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(1, 12):
        shelf.put("sales", number, number + 100)
    done.set()
    for reader in readers:
        reader.join()
    assert failed == []


def test_many_uploads_at_once(shelf):
    failed = []

    def work(first: int) -> None:
        try:
            for number in range(first, first + 3):
                shelf.put(f"table{first // 3 % 3}", number, number % 5)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(0, 24, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert [summary.partitions for summary in shelf.catalog.tables()] == [2, 2, 2]


# --- names and hostile text ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../../etc", "a/b", "", "x'; DROP TABLE versions; --", "ä", "a" * 200])
def test_names_are_checked_before_anything_is_asked(shelf, name):
    catalog = shelf.catalog
    for call in (
        catalog.current,
        catalog.delete,
        catalog.uploads.begin,
        catalog.forget_node,
        lambda name: catalog.version(name, 1),
        lambda name: catalog.register_node(name, "grpc://a:1", "folder-a"),
    ):
        with pytest.raises(RequestError, match="not allowed"):
            call(name)


def test_text_from_outside_stays_text(shelf):
    """Uploads and digests are parameters in SQL."""
    shelf.put("sales", 1)
    text = "x' OR '1' = '1"
    for call in (
        lambda: shelf.catalog.uploads.commit(text),
        lambda: shelf.catalog.uploads.abort(text),
        lambda: shelf.catalog.uploads.place(text, 0, digest_of(b""), 1),
    ):
        with pytest.raises(StaleError):
            call()
    with pytest.raises(RequestError):
        shelf.catalog.info(text)
    assert shelf.catalog.current("sales").rows == 40


# --- nodes ---------------------------------------------------------------------------------------------------


def test_a_node_that_moved_is_found_at_its_new_address(shelf):
    shelf.put("sales", 1)
    shelf.catalog.current("sales")
    shelf.catalog.register_node("north", "grpc+tls://elsewhere:2", "folder-north")
    assert shelf.catalog.nodes()[0] == Node("north", "grpc+tls://elsewhere:2")
    assert shelf.catalog.current("sales").partitions[0].nodes[0].uri == "grpc+tls://elsewhere:2"


def test_a_name_is_that_of_one_folder(shelf):
    """Another folder with the same name would replace the first, which holds acknowledged data."""
    shelf.put("sales", 1)
    before = shelf.catalog.nodes()
    for name, folder, word in (("north", "folder-other", "a new name"), ("other", "folder-north", "node north")):
        with pytest.raises(RequestError, match=word):
            shelf.catalog.register_node(name, "grpc://elsewhere:2", folder)
        assert shelf.catalog.nodes() == before
    shelf.reopen()
    with pytest.raises(RequestError, match="store repair --forget north"):
        shelf.catalog.register_node("north", "grpc://elsewhere:2", "folder-other")
    shelf.catalog.forget_node("north")
    shelf.catalog.register_node("north", "grpc://elsewhere:2", "folder-other")
    assert shelf.catalog.nodes()[0].uri == "grpc://elsewhere:2"


@pytest.mark.parametrize("folder", ["", "../x", "a b", "x" * 200])
def test_the_identity_of_a_folder_is_checked(shelf, folder):
    with pytest.raises(RequestError, match="not allowed"):
        shelf.catalog.register_node("east", "grpc://east:1", folder)


def test_a_version_is_read_once_while_nothing_moves(shelf):
    shelf.put("sales", 1)
    first = shelf.catalog.current("sales")
    shelf.put("other", 1)
    shelf.catalog.register_node("north", "grpc://north:1", "folder-north")
    assert shelf.catalog.current("sales") is first


def test_a_node_with_the_only_copy_is_not_forgotten(tmp_path):
    shelf = Shelf(tmp_path / "catalog", nodes=("north",), replicas=1)
    shelf.put("sales", 1)
    with pytest.raises(RequestError, match="only copy of 1 partition of"):
        shelf.catalog.forget_node("north")


def test_a_forgotten_node_is_no_location_any_more(shelf):
    shelf.put("sales", 1)
    shelf.catalog.current("sales")
    upload = shelf.catalog.uploads.begin("other")
    shelf.place(upload, 0, parquet(2))
    with pytest.raises(RequestError, match="upload in progress"):
        shelf.catalog.forget_node("north")
    shelf.catalog.uploads.abort(upload)
    shelf.catalog.forget_node("north")
    assert [node.name for node in shelf.catalog.nodes()] == ["south"]
    assert [node.name for node in shelf.catalog.current("sales").partitions[0].nodes] == ["south"]
    assert all(removal.node == "south" for removal in shelf.catalog.upkeep.removals())
    with pytest.raises(NotFoundError):
        shelf.catalog.forget_node("north")


# --- what is known of partitions -----------------------------------------------------------------------------


def test_the_metadata_of_all_partitions_together(shelf):
    shelf.put("sales", 1, 2, 1)
    metadata = shelf.catalog.metadata(shelf.catalog.current("sales"))
    assert metadata.files == 3
    assert metadata.file.tolist() == [0, 0, 1, 1, 2, 2]
    assert metadata.of_file(1).save() == description(parquet(2)).compact.save()
    shelf.put("sales", 3)
    assert shelf.catalog.metadata(shelf.catalog.current("sales")).files == 1


def test_the_description_of_a_partition(shelf):
    shelf.put("sales", 1)
    shelf.reopen()
    info = shelf.catalog.info(digest_of(parquet(1)))
    assert info.same_content(description(parquet(1)))
    with pytest.raises(NotFoundError):
        shelf.catalog.info(digest_of(parquet(2)))


def test_a_damaged_description_is_told_and_can_be_put_back(shelf):
    shelf.put("sales", 1)
    digest = digest_of(parquet(1))
    for harm in (b"x" * 100, description(parquet(2)).encode()):
        shelf.catalog.close()
        connection = sqlite3.connect(shelf.folder / "catalog.sqlite")
        with connection:
            connection.execute("UPDATE partitions SET info = ?", (harm,))
        connection.close()
        shelf.catalog = shelf.open()
        with pytest.raises(DamagedError):
            shelf.catalog.info(digest)
        shelf.catalog.restore_info(description(parquet(1)))
        assert shelf.catalog.info(digest).same_content(description(parquet(1)))
    with pytest.raises(NotFoundError):
        shelf.catalog.restore_info(description(parquet(2)))


# --- the file ------------------------------------------------------------------------------------------------


def test_one_process_has_a_catalog(shelf):
    with pytest.raises(BusyError, match="in use, by this or another process"):
        shelf.open()


def test_a_file_of_another_program_is_left_alone(tmp_path):
    (tmp_path / "catalog").mkdir()
    connection = sqlite3.connect(tmp_path / "catalog" / "catalog.sqlite")
    with connection:
        connection.execute("PRAGMA user_version = 7")
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    for _ in range(2):
        with pytest.raises(NearStorageError, match="another program or release"):
            Catalog(tmp_path / "catalog")


def test_a_file_that_is_no_database_is_told_without_its_path(tmp_path):
    (tmp_path / "catalog").mkdir()
    (tmp_path / "catalog" / "catalog.sqlite").write_bytes(b"no database " * 1000)
    with pytest.raises(DamagedError) as caught:
        Catalog(tmp_path / "catalog")
    assert str(tmp_path) not in str(caught.value)


def test_a_damaged_page_is_found_by_a_check(shelf):
    shelf.put("sales", *range(5))
    shelf.catalog.close()
    path = shelf.folder / "catalog.sqlite"
    data = bytearray(path.read_bytes())
    for at in range(4096 + 8, len(data), 4096):
        data[at : at + 12] = b"\xff" * 12
    path.write_bytes(bytes(data))
    with pytest.raises(DamagedError, match="damaged"):
        shelf.open().upkeep.view()


def test_a_count_that_no_query_looks_at_is_found_by_a_check(shelf):
    """The header's number of free pages is such a count."""
    shelf.put("sales", 1)
    shelf.catalog.close()
    path = shelf.folder / "catalog.sqlite"
    data = bytearray(path.read_bytes())
    data[36:40] = (5).to_bytes(4, "big")
    path.write_bytes(bytes(data))
    catalog = shelf.open()
    assert catalog.current("sales").rows == 40
    with pytest.raises(DamagedError, match="damaged"):
        catalog.upkeep.view()


def test_replicas_must_be_some(tmp_path):
    with pytest.raises(RequestError, match="at least 1"):
        Catalog(tmp_path / "catalog", replicas=0)


def test_a_full_disk_at_any_call_of_a_commit_leaves_the_old_version():
    disks = new_disks()
    cluster = Cluster(disks, Clock())
    old = cluster.put("sales", [parquet(1)])
    failed = 0
    while True:
        upload = cluster.catalog.uploads.begin("sales")
        cluster.put_partition(upload, 0, parquet(2))
        disks["catalog"].fail(failed, 28)
        try:
            cluster.catalog.uploads.commit(upload)
            break
        except FullError:
            failed += 1
            disks["catalog"].heal()
        assert cluster.catalog.current("sales").number == old
        cluster.catalog.uploads.abort(upload)
        cluster.remove(cluster.catalog.upkeep.removals())
    assert failed > 3
    disks["catalog"].heal()
    assert digests(cluster.catalog.current("sales")) == [digest_of(parquet(2))]
    assert cluster.check().findings == ()
    cluster.end()
