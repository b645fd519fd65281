"""A node's folder: what it accepts, what it refuses, what is left in it, and what it finds damaged."""

import errno
import os
import random
import threading
from contextlib import contextmanager, nullcontext, suppress

import pytest

from libraries.durable.tests.simulated_disk import SimulatedDisk
from libraries.near_storage.errors import (
    BusyError,
    DamagedError,
    FooterError,
    FullError,
    NearStorageError,
    NotFoundError,
    RequestError,
)
from libraries.near_storage.storing.partitions import PartitionStore
from libraries.near_storage.tests.storing.files import (
    LIMIT_BYTES,
    describe_here,
    digest_of,
    in_pieces,
    parquet,
    simulated_store,
)

DATA = parquet(1)
DIGEST = digest_of(DATA)
OTHER = parquet(2)


@pytest.fixture
def store(tmp_path):
    opened = PartitionStore(tmp_path / "node", describe=describe_here)
    yield opened
    opened.close()


def put(store: PartitionStore, data: bytes = DATA) -> str:
    return store.put(in_pieces(data), digest_of(data), LIMIT_BYTES).digest


def bytes_of(store: PartitionStore, digest: str) -> bytes:
    with store.opened(digest) as descriptor:
        return os.pread(descriptor, LIMIT_BYTES, 0)


def names(tmp_path) -> set[str]:
    return set(os.listdir(tmp_path / "node"))


# --- put, read, remove ---------------------------------------------------------------------------------------


def test_a_partition_is_kept_byte_for_byte(store, tmp_path):
    info = store.put(in_pieces(DATA), DIGEST, LIMIT_BYTES)
    assert (info.digest, info.stored_bytes, info.rows) == (DIGEST, len(DATA), 40)
    assert bytes_of(store, DIGEST) == DATA
    assert store.info(DIGEST).same_content(info)
    assert store.digests() == {DIGEST}
    assert store.total_bytes() == len(DATA)
    assert names(tmp_path) == {"lock", f"{DIGEST}.parquet", f"{DIGEST}.info"}
    store.verify(DIGEST)


def test_the_footer_read_apart_is_the_default(tmp_path):
    store = PartitionStore(tmp_path / "node")
    assert put(store) == DIGEST
    with pytest.raises(FooterError):
        store.put([b"PAR1 no file PAR1"], None, LIMIT_BYTES)
    store.close()


@pytest.mark.parametrize(
    ("data", "footer_bytes"),
    [
        (DATA, int.from_bytes(DATA[-8:-4], "little")),
        (b"some text\n" * 1_000, 0),
        (b"PAR1", 0),
        (b"PAR1" + b"x" * 1_000 + (1_001).to_bytes(4, "little") + b"PAR1", 0),
        (b"PAR1" + b"x" * 1_000 + (1_000).to_bytes(4, "little") + b"PAR1", 1_000),
    ],
)
def test_memory_is_claimed_only_for_footers_that_are_read(store, data, footer_bytes):
    asked = []

    @contextmanager
    def describing(nbytes):
        asked.append(nbytes)
        yield

    with nullcontext() if data is DATA else pytest.raises(FooterError):
        store.put([data], None, LIMIT_BYTES, describing)
    assert asked == [footer_bytes]


def test_the_digest_need_not_be_known_before(store):
    assert store.put([DATA], None, LIMIT_BYTES).digest == DIGEST


def test_pieces_may_be_any_buffer(store):
    assert store.put([memoryview(DATA)[:100], bytearray(DATA[100:])], DIGEST, LIMIT_BYTES).digest == DIGEST


def test_a_partition_put_twice_is_there_once(store):
    put(store)
    put(store)
    assert store.digests() == {DIGEST}


@pytest.mark.parametrize(
    ("pieces", "expected", "kind"),
    [
        ([DATA[:-1]], DIGEST, DamagedError),
        ([DATA, b"x"], DIGEST, DamagedError),
        ([OTHER], DIGEST, DamagedError),
        ([b"no parquet"], None, FooterError),
        ([], None, FooterError),
        ([DATA], "../" + DIGEST[3:], RequestError),
        ([DATA] * 200, None, RequestError),
    ],
)
def test_what_is_refused_leaves_nothing(store, tmp_path, pieces, expected, kind):
    limit_bytes = len(DATA) + 100
    with pytest.raises(kind):
        store.put(pieces, expected, limit_bytes)
    assert names(tmp_path) == {"lock"}


def test_the_limit_stops_the_stream_early(store):
    taken = []

    def pieces():
        for number in range(1_000):
            taken.append(number)
            yield bytes(1_000)

    with pytest.raises(RequestError, match="10,000 bytes"):
        store.put(pieces(), None, 10_000)
    assert len(taken) == 11


def test_a_client_that_breaks_off_leaves_nothing(store, tmp_path):
    def pieces():
        yield DATA[:50]
        raise ConnectionResetError("gone")

    with pytest.raises(ConnectionResetError):
        store.put(pieces(), DIGEST, LIMIT_BYTES)
    assert names(tmp_path) == {"lock"}


def test_a_removed_partition_is_gone_and_a_reader_of_it_goes_on(store, tmp_path):
    put(store)
    store.info(DIGEST)
    with store.opened(DIGEST) as descriptor:
        store.remove(DIGEST, 1)
        assert os.pread(descriptor, LIMIT_BYTES, 0) == DATA
    assert names(tmp_path) == {"lock"}
    for ask in (store.verify, store.info, store.footer_bytes, lambda digest: bytes_of(store, digest)):
        with pytest.raises(NotFoundError):
            ask(DIGEST)


def test_removing_what_is_not_there_is_no_error(store):
    store.remove(DIGEST, 1)


def test_a_removal_that_comes_late_does_not_take_what_was_put_since(store):
    put(store)
    store.remove(DIGEST, 7)
    put(store)
    store.remove(DIGEST, 7)
    assert store.digests() == {DIGEST}
    store.remove(DIGEST, 8)
    assert store.digests() == frozenset()


@pytest.mark.parametrize("digest", ["", "..", "a" * 63, "/etc/passwd", DIGEST.upper(), f"{DIGEST[:-3]}/.."])
def test_names_from_outside_touch_no_path(store, digest):
    for ask in (
        store.verify,
        store.info,
        store.footer_bytes,
        lambda d: store.remove(d, 1),
        lambda d: bytes_of(store, d),
    ):
        with pytest.raises(RequestError, match="64 digits"):
            ask(digest)


# --- opening -------------------------------------------------------------------------------------------------


def test_leftovers_go_when_the_folder_is_opened_and_the_rest_stays(store, tmp_path):
    put(store)
    store.close()
    folder = tmp_path / "node"
    for name in ("0123.part", f"{digest_of(OTHER)}.info", "notes.txt"):
        (folder / name).write_bytes(b"x")
    PartitionStore(folder, describe=describe_here).close()
    assert names(tmp_path) == {"lock", f"{DIGEST}.parquet", f"{DIGEST}.info", "notes.txt"}


def test_one_process_has_a_folder(store, tmp_path):
    with pytest.raises(BusyError, match="in use, by this or another process"):
        PartitionStore(tmp_path / "node", describe=describe_here)


def test_a_folder_belongs_to_one_catalog(store, tmp_path):
    store.claim("first")
    store.claim("first")
    with pytest.raises(RequestError, match="another catalog"):
        store.claim("second")
    store.close()
    again = PartitionStore(tmp_path / "node", describe=describe_here)
    with pytest.raises(RequestError, match="another catalog"):
        again.claim("second")
    again.claim("first")


def test_a_folder_is_itself_for_ever(store, tmp_path):
    assert store.owner() is None
    store.claim("first")
    identity = store.identity()
    store.close()
    again = PartitionStore(tmp_path / "node", describe=describe_here)
    other = PartitionStore(tmp_path / "other", describe=describe_here)
    assert (again.owner(), again.identity()) == ("first", identity)
    assert other.identity() != identity
    other.close()


# --- damage --------------------------------------------------------------------------------------------------


def change(tmp_path, name: str, at: int) -> None:
    path = tmp_path / "node" / name
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("at", [0, 60, len(DATA) // 2, len(DATA) - 1])
def test_a_changed_byte_is_found_and_a_new_put_mends_it(store, tmp_path, at):
    put(store)
    change(tmp_path, f"{DIGEST}.parquet", at)
    with pytest.raises(DamagedError, match="damaged on this node"):
        store.verify(DIGEST)
    assert store.report(0.0, verify=True).damaged == {DIGEST}
    put(store)
    store.verify(DIGEST)
    assert store.report(0.0, verify=True).damaged == frozenset()


def test_bytes_that_the_disk_does_not_give_are_damaged(monkeypatch):
    disk = SimulatedDisk()
    store = simulated_store(disk)
    put(store)

    def unreadable(descriptor: int, length: int, offset: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(disk, "read", unreadable)
    assert store.report(0.0, verify=True).damaged == {DIGEST}
    with pytest.raises(NearStorageError, match="Input/output"):
        store.footer_bytes(DIGEST)


def test_a_partition_that_became_shorter_is_found(store, tmp_path):
    put(store)
    (tmp_path / "node" / f"{DIGEST}.parquet").write_bytes(DATA[:100])
    with pytest.raises(DamagedError):
        store.verify(DIGEST)
    assert store.report(0.0).held[DIGEST].stored_bytes == 100


@pytest.mark.parametrize("harm", ["missing", "changed", "torn", "of another", "empty"])
def test_a_description_is_rebuilt(store, tmp_path, harm):
    info = store.put([DATA], DIGEST, LIMIT_BYTES)
    beside = tmp_path / "node" / f"{DIGEST}.info"
    encoded = beside.read_bytes()
    if harm == "missing":
        beside.unlink()
    elif harm == "changed":
        change(tmp_path, beside.name, 90)
    elif harm == "of another":
        put(store, OTHER)
        beside.write_bytes((tmp_path / "node" / f"{digest_of(OTHER)}.info").read_bytes())
    else:
        beside.write_bytes(encoded[: 100 if harm == "torn" else 0])
    assert store.info(DIGEST).same_content(info)
    assert beside.read_bytes() == encoded
    assert not [name for name in names(tmp_path) if name.endswith(".part")]


def test_a_description_is_not_rebuilt_from_damaged_bytes(store, tmp_path):
    """Otherwise the digests of its chunks would hide the damage."""
    put(store)
    (tmp_path / "node" / f"{DIGEST}.info").unlink()
    change(tmp_path, f"{DIGEST}.parquet", 60)
    with pytest.raises(DamagedError):
        store.info(DIGEST)
    assert f"{DIGEST}.info" not in names(tmp_path)


def test_a_footer_is_the_end_of_the_file_and_checked(store, tmp_path):
    info = store.put([DATA], DIGEST, LIMIT_BYTES)
    assert store.footer_bytes(DIGEST) == DATA[-info.footer_bytes :]
    change(tmp_path, f"{DIGEST}.parquet", len(DATA) - info.footer_bytes + 3)
    with pytest.raises(DamagedError, match="footer"):
        store.footer_bytes(DIGEST)


def test_a_report_tells_size_and_age_and_sees_what_vanished(store, tmp_path):
    put(store)
    put(store, OTHER)
    os.utime(tmp_path / "node" / f"{DIGEST}.parquet", (1_000.0, 1_000.0))
    report = store.report(1_060.0)
    assert report.held[DIGEST].age_s == 60.0
    assert report.held[DIGEST].stored_bytes == len(DATA)
    assert report.held[digest_of(OTHER)].age_s == 0.0, "it is younger than the clock that asked"
    (tmp_path / "node" / f"{DIGEST}.parquet").unlink()
    assert set(store.report(1_060.0, verify=True).held) == {digest_of(OTHER)}


# --- many at once --------------------------------------------------------------------------------------------


def test_threads_put_and_remove_the_same_partitions(store, tmp_path):
    files = [parquet(number) for number in range(4)]
    failed = []

    def work(seed: int) -> None:
        chance = random.Random(seed)
        try:
            for number in range(15):
                data = chance.choice(files)
                if chance.random() < 0.6:
                    put(store, data)
                else:
                    store.remove(digest_of(data), seed * 1_000 + number)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    for digest in store.digests():
        store.verify(digest)
        assert store.info(digest).digest == digest
    assert not [name for name in names(tmp_path) if name.endswith(".part")]


# --- a disk that fails ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("there_before", [False, True])
def test_a_disk_that_fails_at_any_call_of_a_put(number, there_before):
    """Also if all later calls fail. What existed stays; the new one leaves nothing, or names that were not synced."""
    failed = 0
    while True:
        disk = SimulatedDisk()
        store = simulated_store(disk)
        put(store, OTHER)
        if there_before:
            put(store)
        before = set(disk.files(disk.root / "node"))
        disk.fail(failed, number)
        try:
            put(store)
            break
        except NearStorageError as error:
            caught = error
        assert isinstance(caught, FullError) == (number != errno.EIO)
        assert "simulated" not in str(caught)
        failed += 1
        disk.heal()
        left = set(disk.files(disk.root / "node"))
        if number == errno.EIO:
            left -= {f"{DIGEST}.parquet", f"{DIGEST}.info"} - before
        assert left == before
        for digest in store.digests():
            store.verify(digest)
        put(store)
        store.verify(DIGEST)
    assert failed >= 10


@pytest.mark.parametrize("failed", range(24))
def test_what_a_node_tells_is_durable_though_a_call_before_failed(failed):
    """If files were synced but their folder was not, the folder is synced before anything relies on their names."""
    disk = SimulatedDisk()
    store = simulated_store(disk)
    disk.fail(failed, errno.EIO)
    for work in (lambda: store.claim("ours"), lambda: put(store)):
        with suppress(NearStorageError):
            work()
    disk.heal()
    store.claim("ours")
    held = {f"{digest}.parquet" for digest in store.report(0.0).held}
    for seed in range(8):
        lost = disk.lost(random.Random(seed))
        files = lost.files(lost.root / "node")
        assert held <= files.keys()
        assert files["catalog"] == b"ours"
