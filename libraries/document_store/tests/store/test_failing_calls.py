"""Failing calls (EIO, ENOSPC) at every position of an operation: later acknowledged data survives them."""

import errno
import random
from contextlib import contextmanager, suppress

import pytest

from libraries.document_store.errors import DocumentStoreError
from libraries.document_store.tests.store.model import Disk, Trap, differs, document, opened
from libraries.document_store.tree import background_merge
from libraries.document_store.tree.log import log_path
from libraries.durable.tests.simulated_disk import Power, PowerLoss

MOST_CALLS = 26
"""More modifying calls than a flush or an index makes."""


@contextmanager
def reopened(disk):
    """Yield the store on a disk, and end its process afterwards."""
    store = opened(disk, disk.root / "store", None)
    try:
        yield store
    finally:
        store._tree._merger.stop()


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("failing", ["flush", "index"])
def test_what_is_acknowledged_after_a_failed_call_is_there_after_the_next_opening(failing, number):
    told = 0
    for after in range(MOST_CALLS):
        disk = Disk()
        store = opened(disk, disk.root / "store", "open")
        store.upsert([{"id": 1, "number": 3}])
        if failing == "index":
            store.flush()
        disk.fail(after, number)
        try:
            store.flush() if failing == "flush" else store.index("number")
        except DocumentStoreError:
            told += 1
        disk.heal()
        store.upsert([{"id": 2, "number": 7}])
        store.upsert([{"id": 1, "number": 4}])
        model = {1: {"id": 1, "number": 4}, 2: {"id": 2, "number": 7}}
        store._tree._merger.stop()
        for found in (disk.restarted(), *(disk.lost(random.Random(seed)) for seed in range(2))):
            with reopened(found) as again:
                assert differs(again, model) is None, f"call {after}"
    assert 3 < told < MOST_CALLS


def test_a_second_cut_right_after_opening_takes_nothing():
    """An older manifest may name what opening removes, so the newer one must be durable first."""
    calls, done = 0, False
    while not done:
        calls += 1
        power = Power()
        disk = Disk(power)
        store = opened(disk, disk.root / "store", "open")
        for number in range(2):
            store.upsert([{"id": key, "number": number} for key in range(5)])
            if number == 0:
                store.flush()
        power.cut_at = power.calls + calls
        with suppress(PowerLoss, DocumentStoreError):
            store.flush()
            store.wait_for_merges()
        store._tree._merger.stop()
        done = not power.out
        found = disk.restarted(Power())
        with reopened(found):
            pass
        for seed in range(8):
            with reopened(found.lost(random.Random(seed))) as again:
                assert again.count() == 5, f"call {calls}"
    assert calls > 15


def test_an_upsert_that_failed_does_not_come_back_by_closing():
    disk = Disk()
    store = opened(disk, disk.root / "store", "open")
    disk.fail(1, errno.EIO)
    with pytest.raises(DocumentStoreError):
        store.upsert([{"id": 1}])
    disk.heal()
    store.close()
    with reopened(disk) as again:
        assert differs(again, {}) is None


def test_a_thread_that_cannot_be_had_costs_no_file_and_is_told(monkeypatch):
    class NoThread(background_merge.Thread):
        """A thread that the system cannot start."""

        def start(self):
            raise RuntimeError("can't start new thread")

    disk = Disk()
    store = opened(disk, disk.root / "store", "open")
    model = {}
    with monkeypatch.context() as patched:
        patched.setattr(background_merge, "Thread", NoThread)
        for number in range(12):
            with suppress(DocumentStoreError):
                found = document(random.Random(number), number)
                store.upsert([found])
                model[number] = found
                store.flush()
        with pytest.raises(DocumentStoreError, match="can't start new thread"):
            store.wait_for_merges()
        assert differs(store, model) is None
        with reopened(disk.restarted()) as again:
            assert differs(again, model) is None
    with suppress(DocumentStoreError):
        store.flush()
    store.wait_for_merges()
    assert store.stats().components == 1
    assert differs(store, model) is None
    store.close()


@pytest.mark.parametrize("failing", ["upsert", "flush"])
def test_what_was_found_after_a_failed_sync_and_the_end_of_the_process_survives_a_cut_then(failing):
    """A later sync of the same file proves nothing: what the next process relies on is written again."""
    for after in range(MOST_CALLS // 2):
        disk = Disk()
        store = opened(disk, disk.root / "store", "open")
        store.upsert([{"id": 1}])
        disk.fail(after, errno.EIO)
        with suppress(DocumentStoreError):
            store.flush() if failing == "flush" else store.upsert([{"id": 2}])
        store._tree._merger.stop()
        disk = disk.restarted()
        with reopened(disk) as store:
            model = {found["id"]: found for found in store.scan()}
            assert 1 in model
            store.upsert([{"id": 3}])
            model[3] = {"id": 3}
        for seed in range(4):
            with reopened(disk.lost(random.Random(seed))) as again:
                assert differs(again, model) is None, f"call {after}"


def test_logs_that_failed_flushes_begin_do_not_vouch_for_what_was_found():
    """Found data may be only in memory; a cut may remove its end, and the store must still open."""
    disk = Disk()
    store = opened(disk, disk.root / "store", "open")
    store.upsert([{"id": 1}])
    disk.fail(1, errno.EIO)
    with pytest.raises(DocumentStoreError):
        store.upsert([{"id": 2}])
    store._tree._merger.stop()
    disk = disk.restarted()
    with reopened(disk) as store:
        for _ in range(2):
            disk.traps["fail"] = Trap(lambda: disk.fail(0, errno.EIO), 0, "rename")
            with pytest.raises(DocumentStoreError):
                store.flush()
            disk.heal()
    found = set()
    for seed in range(16):
        with reopened(disk.lost(random.Random(seed))) as again:
            found.add(again.count())
            assert again.get(1) == {"id": 1}
    assert 1 in found


def test_logs_behind_a_torn_one_do_not_go_one_by_one():
    """An unsynced log and two that follow: a cut during opening must leave a store that can be opened."""
    disk = Disk()
    store = opened(disk, disk.root / "store", "open", synced=False)
    store.upsert([{"id": 1}])
    for _ in range(2):
        disk.traps["fail"] = Trap(lambda: disk.fail(0, errno.EIO, 1), 0, "rename")
        with pytest.raises(DocumentStoreError):
            store.flush()
        disk.heal()
    store._tree._merger.stop()
    file = disk.file(log_path(disk.root / "store", store._tree.manifest.log))
    del file.content[-1:]
    file.durable = bytes(file.content)
    file.pending.clear()
    for calls in range(1, 6):
        power = Power()
        cut = disk.copied(power)
        power.cut_at = calls
        with suppress(PowerLoss), reopened(cut) as again:
            assert again.count() == 0
        for seed in range(4):
            with reopened(cut.lost(random.Random(seed))) as again:
                assert again.count() == 0
                again.upsert([{"id": 2}])
                again.flush()
                assert again.count() == 1
