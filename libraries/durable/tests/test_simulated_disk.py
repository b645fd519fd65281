"""The simulated disk behaves like the operating system. After a power cut, everything that POSIX allows can happen, and
nothing else."""

import errno
import os
import random
from pathlib import Path

import pytest

from libraries.durable.calls import OSCalls
from libraries.durable.tests.simulated_disk import BLOCK_BYTES, Power, PowerLoss, SimulatedDisk

LIVES = 400
OLD, NEW = b"o" * 3 * BLOCK_BYTES, b"n" * 3 * BLOCK_BYTES


@pytest.fixture(params=["simulated", "real"])
def place(request, tmp_path):
    """Return the calls and an empty folder."""
    if request.param == "real":
        return OSCalls(), tmp_path
    disk = SimulatedDisk()
    return disk, disk.root


def write(calls, path: Path, data: bytes, sync: bool = True) -> None:
    descriptor = calls.create(path)
    calls.write(descriptor, data)
    if sync:
        calls.fsync(descriptor)
    calls.close(descriptor)


def read(calls, path: Path) -> bytes:
    descriptor = calls.open(path)
    try:
        return calls.read(descriptor, 10_000, 0)
    finally:
        calls.close(descriptor)


# --- like the operating system -------------------------------------------------------------------------------


def test_files_are_written_read_renamed_and_removed(place):
    calls, folder = place
    write(calls, folder / "a", b"0123456789")
    descriptor = calls.open(folder / "a")
    assert calls.read(descriptor, 4, 3) == b"3456"
    assert calls.read(descriptor, 100, 8) == b"89"
    assert calls.read(descriptor, 4, 100) == b""
    write(calls, folder / "b", b"other")
    calls.rename(folder / "a", folder / "b")
    assert sorted(calls.listdir(folder)) == ["b"]
    calls.unlink(folder / "b")
    calls.fsync_folder(folder)
    assert calls.listdir(folder) == []
    assert calls.read(descriptor, 4, 3) == b"3456"
    calls.close(descriptor)


def test_what_is_not_there_and_what_is(place):
    calls, folder = place
    for call in (calls.open, calls.unlink, calls.status, calls.listdir):
        with pytest.raises(FileNotFoundError):
            call(folder / "none")
    with pytest.raises(FileNotFoundError):
        calls.create(folder / "none" / "a")
    with pytest.raises(FileNotFoundError):
        calls.rename(folder / "none", folder / "a")
    calls.mkdir(folder / "in")
    write(calls, folder / "in" / "a", b"123")
    assert calls.status(folder / "in" / "a").size_bytes == 3
    for call in (calls.mkdir, calls.create):
        with pytest.raises(FileExistsError):
            call(folder / "in")


def test_a_lock_has_one_owner(place):
    calls, folder = place
    owned = calls.lock(folder / "lock")
    with pytest.raises(BlockingIOError):
        calls.lock(folder / "lock")
    calls.close(owned)
    calls.close(calls.lock(folder / "lock"))


def test_sqlite_works(place):
    calls, folder = place
    connection = calls.connect(folder / "some.sqlite")
    connection.execute("CREATE TABLE t (a)")
    connection.executemany("INSERT INTO t VALUES (?)", [("x" * 5000,)] * 20)
    assert connection.execute("SELECT sum(length(a)) FROM t").fetchone() == (100_000,)
    connection.close()
    assert calls.listdir(folder) == ["some.sqlite"]


# --- after a cut ---------------------------------------------------------------------------------------------


def outcomes(work, lives: int = LIVES) -> list[SimulatedDisk]:
    """Return disks as power cuts after `work(disk)` may leave them, one disk per random seed."""
    found = []
    for seed in range(lives):
        disk = SimulatedDisk()
        work(disk)
        found.append(disk.lost(random.Random(seed)))
    return found


def test_synced_bytes_and_names_stay():
    def work(disk):
        write(disk, disk.root / "a", OLD)
        disk.fsync_folder(disk.root)

    assert all(disk.files(disk.root) == {"a": OLD} for disk in outcomes(work))


def test_unsynced_bytes_are_lost_kept_and_torn():
    def work(disk):
        descriptor = disk.create(disk.root / "a")
        disk.fsync_folder(disk.root)
        disk.write(descriptor, OLD)
        disk.fsync(descriptor)
        disk.write_at(disk.file(disk.root / "a"), NEW + NEW, 0)

    found = {disk.files(disk.root)["a"] for disk in outcomes(work)}
    assert {OLD, NEW + NEW} <= found
    blocks = {
        tuple(data[start : start + BLOCK_BYTES][:1] for start in range(0, len(OLD), BLOCK_BYTES)) for data in found
    }
    assert (b"o", b"n", b"o") in blocks, "blocks are not reordered"
    assert any(len(set(data[:BLOCK_BYTES])) == 2 for data in found), "no block is torn"
    assert any(b"\0" in data for data in found), "no file grew without its data"


def test_synced_bytes_stay_when_later_ones_are_lost():
    def work(disk):
        descriptor = disk.create(disk.root / "a")
        disk.fsync_folder(disk.root)
        disk.write(descriptor, OLD)
        disk.fsync(descriptor)
        disk.write(descriptor, NEW)

    assert all(disk.files(disk.root)["a"].startswith(OLD) for disk in outcomes(work))


def test_unsynced_names_are_lost_and_kept_in_any_order():
    def work(disk):
        write(disk, disk.root / "a", OLD)
        write(disk, disk.root / "b", OLD)

    found = {frozenset(disk.files(disk.root)) for disk in outcomes(work)}
    assert found == {frozenset(names) for names in ((), ("a",), ("b",), ("a", "b"))}


def test_an_unsynced_removal_is_done_or_not():
    def work(disk):
        write(disk, disk.root / "a", OLD)
        disk.fsync_folder(disk.root)
        disk.unlink(disk.root / "a")

    assert {frozenset(disk.files(disk.root)) for disk in outcomes(work)} == {frozenset(), frozenset("a")}


def test_an_unsynced_rename_is_seen_whole_or_not_at_all():
    def work(disk):
        write(disk, disk.root / "a", OLD)
        write(disk, disk.root / "b", NEW)
        disk.fsync_folder(disk.root)
        disk.rename(disk.root / "b", disk.root / "a")

    found = [disk.files(disk.root) for disk in outcomes(work)]
    assert all(files in ({"a": NEW}, {"a": OLD, "b": NEW}) for files in found)
    assert {"a": NEW} in found
    assert {"a": OLD, "b": NEW} in found


def test_a_renamed_file_whose_bytes_were_not_synced_may_be_empty():
    def work(disk):
        write(disk, disk.root / "part", NEW, sync=False)
        disk.rename(disk.root / "part", disk.root / "a")
        disk.fsync_folder(disk.root)

    found = {disk.files(disk.root)["a"] for disk in outcomes(work)}
    assert {b"", NEW} < found


def test_an_unsynced_folder_goes_with_all_that_is_in_it():
    def work(disk):
        disk.mkdir(disk.root / "in")
        write(disk, disk.root / "in" / "a", OLD)
        disk.fsync_folder(disk.root / "in")

    assert {frozenset(disk.listdir(disk.root)) for disk in outcomes(work)} == {frozenset(), frozenset(["in"])}


def test_a_sync_after_a_failed_one_promises_nothing():
    def work(disk):
        descriptor = disk.create(disk.root / "a")
        disk.fsync_folder(disk.root)
        disk.write(descriptor, NEW)
        disk.fail(0, errno.EIO)
        with pytest.raises(OSError, match="Input/output"):
            disk.fsync(descriptor)
        disk.heal()
        disk.fsync(descriptor)

    assert b"" in {disk.files(disk.root)["a"] for disk in outcomes(work)}


def test_a_process_that_died_takes_nothing_along():
    disk = SimulatedDisk()
    write(disk, disk.root / "a", NEW, sync=False)
    after = disk.restarted()
    assert after.files(after.root) == {"a": NEW}
    found = {frozenset(lost.files(lost.root)) for lost in (after.lost(random.Random(seed)) for seed in range(20))}
    assert found == {frozenset(), frozenset("a")}, "the end of the process made it durable"


def test_the_power_goes_out_at_a_call_and_stays_out():
    power = Power(cut_at=3)
    disk = SimulatedDisk(power)
    descriptor = disk.create(disk.root / "a")
    disk.write(descriptor, b"1")
    for call in (lambda: disk.write(descriptor, b"2"), lambda: disk.listdir(disk.root), lambda: disk.fsync(descriptor)):
        with pytest.raises(PowerLoss):
            call()
    assert bytes(disk.file(disk.root / "a").content) == b"1"


def test_a_full_disk_takes_half_of_a_write_and_no_new_file():
    disk = SimulatedDisk()
    descriptor = disk.create(disk.root / "a")
    disk.fail(1, errno.ENOSPC)
    disk.write(descriptor, b"12")
    for call in (lambda: disk.write(descriptor, b"34"), lambda: disk.create(disk.root / "b")):
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            call()
    disk.unlink(disk.root / "a")
    disk.heal()
    disk.close(disk.create(disk.root / "b"))
