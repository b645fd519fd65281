"""Power cuts: acknowledged data is present and correct, nothing partial is visible, and faulty stores are detected.

`cuts.py 1000` runs the lives of the issue; the tests run fewer, and every call of one `put` and one `remove`.
"""

import random

import pytest

from libraries.durable.tests.simulated_disk import Power, PowerLoss, SimulatedDisk
from libraries.near_storage.errors import NearStorageError
from libraries.near_storage.storing import database
from libraries.near_storage.tests.storing.cluster import Cluster, NoFolderSync, NoSync, RegistersFirst, SyncsLate
from libraries.near_storage.tests.storing.cuts import live, prepared
from libraries.near_storage.tests.storing.files import LIMIT_BYTES, digest_of, in_pieces, parquet, simulated_store

OLD, NEW = parquet(1), parquet(2)
LIVES = 60


# --- one node ------------------------------------------------------------------------------------------------


def check_after(disk: SimulatedDisk, must: set[str], may: set[str]) -> None:
    """Check a store opened after a cut: nothing partial or left over, all of `must`, and nothing beyond `may`."""
    store = simulated_store(disk)
    assert must <= store.digests() <= must | may
    for digest in store.digests():
        store.verify(digest)
        assert store.info(digest).digest == digest
    for name in disk.files(disk.root / "node"):
        assert name == "lock" or name.partition(".")[0] in store.digests(), f"{name} is left over"


def cut_everywhere(kind: type[SimulatedDisk], seeds: int = 8) -> int:
    """Cut at each call of a put, of a repeated put and of a removal; return the number of cuts."""
    cuts = 0
    disk = kind()
    store = simulated_store(disk)
    store.put(in_pieces(OLD), digest_of(OLD), LIMIT_BYTES)
    store.close()
    for work in ("put new", "put again", "remove"):
        for seed in range(seeds):
            calls = 0
            while True:
                calls += 1
                power = Power()
                tried = disk.copied(power)
                store = simulated_store(tried)
                power.cut_at = power.calls + calls
                try:
                    if work == "remove":
                        store.remove(digest_of(OLD), 1)
                    else:
                        data = NEW if work == "put new" else OLD
                        store.put(in_pieces(data), digest_of(data), LIMIT_BYTES)
                except PowerLoss:
                    pass
                chance = random.Random(seed)
                acknowledged = not power.out
                old, new = {digest_of(OLD)}, {digest_of(NEW)} if work == "put new" else set()
                if work == "remove":
                    must, may = (set(), set()) if acknowledged else (set(), old)
                else:
                    must, may = (old | new, set()) if acknowledged else (old, new)
                check_after(tried.lost(chance), must, may)
                if acknowledged:
                    break
            cuts += calls
    return cuts


def test_a_cut_at_any_call_of_a_put_and_a_removal():
    assert cut_everywhere(SimulatedDisk) > 200


@pytest.mark.parametrize("kind", [NoSync, NoFolderSync, SyncsLate])
def test_a_store_that_does_not_sync_in_time_is_found_out(kind):
    with pytest.raises((AssertionError, NearStorageError)):
        cut_everywhere(kind)


# --- catalog and nodes ---------------------------------------------------------------------------------------


def test_lives_with_a_cut_in_the_middle():
    disks = prepared()
    during = {live(seed, disks).known.doing for seed in range(LIVES // 2)}
    assert during >= {"_put", "_delete", "_collect", "_repair", "_leave", "_open"}


def first_broken(lives: int, kind: type[Cluster] = Cluster, disk: type[SimulatedDisk] = SimulatedDisk) -> int | None:
    """Return the first life that breaks a promise."""
    disks = prepared(disk)
    for seed in range(lives):
        try:
            live(seed, disks, kind)
        except Exception:
            return seed
    return None


def test_a_version_registered_before_its_bytes_are_synced_is_found_out():
    assert first_broken(5 * LIVES, RegistersFirst) is not None


@pytest.mark.parametrize("weaker", ["FULL", "OFF"])
def test_a_catalog_whose_commits_are_not_synced_is_found_out(monkeypatch, weaker):
    monkeypatch.setattr(database, "SETTINGS", (*database.SETTINGS, f"PRAGMA synchronous = {weaker}"))
    assert first_broken(5 * LIVES) is not None


def test_a_node_that_does_not_sync_is_found_out():
    assert first_broken(5 * LIVES, disk=NoFolderSync) is not None
