"""SQLite after a power cut, with the settings of the catalog."""

import random
import sqlite3

from libraries.durable.tests.simulated_disk import Power, SimulatedDisk
from libraries.near_storage.storing.database import SETTINGS


def lost_transactions(settings: tuple[str, ...], lives: int) -> int:
    """Return in how many lives SQLite lost an acknowledged transaction, or its file was damaged."""
    lost = 0
    for seed in range(lives):
        chance = random.Random(seed)
        disk = SimulatedDisk(Power(cut_at=chance.randint(30, 300)))
        acknowledged = -1
        try:
            connection = disk.connect(disk.root / "a.sqlite")
            for setting in settings:
                connection.execute(setting).fetchall()
            connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
            for acknowledged in range(1_000):
                connection.execute("INSERT INTO t VALUES (?, ?)", (acknowledged, "x" * chance.randint(10, 3000)))
        except sqlite3.Error:
            assert disk.power.out
        connection.close()
        after = disk.lost(chance)
        try:
            connection = after.connect(after.root / "a.sqlite")
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert acknowledged < 0 or connection.execute("SELECT count(*) FROM t").fetchone()[0] >= acknowledged
        except (sqlite3.Error, AssertionError):
            lost += 1
        connection.close()
    return lost


def test_sqlite_loses_nothing_with_our_settings_and_is_found_out_with_weaker_ones():
    assert lost_transactions(SETTINGS, 60) == 0
    for weaker in ("FULL", "NORMAL", "OFF"):
        assert lost_transactions((*SETTINGS, f"PRAGMA synchronous = {weaker}"), 30) > 0
