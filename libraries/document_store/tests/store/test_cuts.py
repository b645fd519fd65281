"""Power cuts: acknowledged data is present and correct, nothing partial is visible, and faulty stores are detected.

`cuts.py 1000` runs the lives of the issue; the tests run fewer.
"""

import random

import pytest

from libraries.document_store.errors import DocumentStoreError
from libraries.document_store.layouts import LAYOUTS
from libraries.document_store.tests.store.cuts import CALLS, live
from libraries.document_store.tests.store.model import Disk, document, opened
from libraries.document_store.tree import background_merge
from libraries.document_store.tree.logs import Logs
from libraries.durable.tests.simulated_disk import Power, PowerLoss

LIVES = {"open": 8, "vector": 8, "amax": 3}
"""`make selfbench-documents` runs a thousand. Lives with columns take six times as long as the others."""
FAULTY_LIVES = 80
"""Maximum number of lives until a fault is detected; the first ones detect it."""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_lives_with_a_cut_in_the_middle(layout):
    during = {name for seed in range(LIVES[layout]) for name in live(seed, layout).cuts}
    # Merges run in a thread, so a cut may be in another call than the last time.
    assert len(during & CALLS.keys()) >= LIVES[layout] // 2 - 1


def test_a_cut_at_any_call_of_a_flush_and_a_merge():
    """Cut at every call; the lives above choose some."""
    calls = 0
    while True:
        calls += 1
        power = Power()
        disk = Disk(power)
        store = opened(disk, disk.root / "store", "open")
        model = {}
        for number in range(3):
            documents = [document(random.Random(number + key), key) for key in range(10 * number, 10 * number + 20)]
            store.upsert(documents)
            model.update({found["id"]: found for found in documents})
            if number == 1:
                store.flush()
        power.cut_at = power.calls + calls
        try:
            store.flush()
            store.wait_for_merges()
        except (PowerLoss, DocumentStoreError):
            pass
        store._tree._merger.stop()
        after = disk.lost(random.Random(calls))
        again = opened(after, after.root / "store", None)
        assert again.count() == len(model)
        again.close()
        if not power.out:
            break
    assert calls > 15


class NoSync(Disk):
    def sync_file(self, file):
        pass


class NoFolderSync(Disk):
    def fsync_folder(self, folder):
        pass


def first_broken(lives: int, disk: type[Disk] = Disk) -> str:
    """Return the message of the first life that breaks a promise; empty if none does."""
    for seed in range(lives):
        try:
            live(seed, "open", disk)
        except AssertionError as error:
            return str(error)
    return ""


@pytest.mark.parametrize("disk", [NoSync, NoFolderSync])
def test_a_disk_that_does_not_sync_is_found_out(disk):
    assert "after" in first_broken(FAULTY_LIVES, disk)


def test_a_mark_before_the_data_is_found_out():
    class MarkFirst(Disk):
        """The manifest names components whose bytes are not yet synced."""

        def fsync(self, descriptor):
            if descriptor in unsynced:
                return
            super().fsync(descriptor)

        def create(self, path):
            descriptor = super().create(path)
            if path.name.startswith(("component-", "index-")):
                unsynced.add(descriptor)
            return descriptor

    unsynced = set()
    assert "after" in first_broken(FAULTY_LIVES, MarkFirst)


def test_a_log_removed_before_the_mark_is_found_out(monkeypatch):
    begin = Logs.begin

    def begin_and_remove(self):
        number = begin(self)
        self.flushed(number)
        return number

    monkeypatch.setattr(Logs, "begin", begin_and_remove)
    assert "after" in first_broken(FAULTY_LIVES)


def test_anti_matter_that_is_dropped_too_early_is_found_out(monkeypatch):
    due = background_merge.due_merge

    def drops_always(version, late):
        found = due(version, late)
        return found and background_merge.Merge(found.path, found.components, found.index_files, with_oldest=True)

    monkeypatch.setattr(background_merge, "due_merge", drops_always)
    assert first_broken(FAULTY_LIVES)
