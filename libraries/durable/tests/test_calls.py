"""The calls of the operating system, and folders that one process locks."""

import errno
import os
import random
import subprocess
import sys

import pytest

from libraries.durable.calls import InUseError, OSCalls, ensure_folder, own_folder
from libraries.durable.tests.simulated_disk import SimulatedDisk

OWN = """
import sys, pathlib
from libraries.durable.calls import InUseError, OSCalls, own_folder
try:
    own_folder(OSCalls(), pathlib.Path(sys.argv[1]))
except InUseError as error:
    sys.exit(str(error))
"""


def test_a_write_of_which_little_is_taken_goes_on(tmp_path, monkeypatch):
    taken = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: taken(descriptor, bytes(data)[:3]))
    calls = OSCalls()
    descriptor = calls.create(tmp_path / "a")
    calls.write(descriptor, b"0123456789")
    calls.close(descriptor)
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_a_read_that_gives_little_goes_on(tmp_path, monkeypatch):
    given = os.pread
    monkeypatch.setattr(os, "pread", lambda descriptor, length, offset: given(descriptor, min(length, 3), offset))
    (tmp_path / "a").write_bytes(b"0123456789")
    calls = OSCalls()
    descriptor = calls.open(tmp_path / "a")
    assert calls.read(descriptor, 7, 2) == b"2345678"
    assert calls.read(descriptor, 100, 2) == b"23456789"
    calls.close(descriptor)


def test_files_are_for_their_owner_alone(tmp_path):
    calls = OSCalls()
    calls.mkdir(tmp_path / "in")
    calls.close(calls.create(tmp_path / "in" / "a"))
    assert (tmp_path / "in").stat().st_mode & 0o077 == 0
    assert (tmp_path / "in" / "a").stat().st_mode & 0o077 == 0


def test_a_folder_is_made_with_those_above_it_and_each_is_synced():
    disk = SimulatedDisk()
    ensure_folder(disk, disk.root / "a" / "b")
    assert disk.power.calls == 4
    disk.create(disk.root / "a" / "b" / "c")
    ensure_folder(disk, disk.root / "a" / "b")
    assert disk.power.calls == 5, "an existing folder is left alone"


@pytest.mark.parametrize("after", range(4))
def test_a_folder_that_was_made_and_not_synced_is_synced_by_the_next_call(after):
    disk = SimulatedDisk()
    disk.fail(after, errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        ensure_folder(disk, disk.root / "a" / "b")
    disk.heal()
    ensure_folder(disk, disk.root / "a" / "b")
    for seed in range(8):
        lost = disk.lost(random.Random(seed))
        assert lost.listdir(lost.root / "a") == ["b"]


def test_a_folder_below_one_that_nobody_may_read_is_of_use():
    class Closed(SimulatedDisk):
        """A disk on which the parent folder belongs to another user."""

        def fsync_folder(self, folder):
            raise PermissionError(errno.EACCES, "closed")

    disk = Closed()
    disk.mkdir(disk.root / "a")
    ensure_folder(disk, disk.root / "a")


def test_another_process_cannot_have_the_folder(tmp_path):
    owned = own_folder(OSCalls(), tmp_path / "store")
    with pytest.raises(InUseError, match="in use, by this or another process"):
        own_folder(OSCalls(), tmp_path / "store")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    other = [sys.executable, "-c", OWN, str(tmp_path / "store")]
    refused = subprocess.run(other, env=environment, capture_output=True, text=True)
    assert (refused.returncode, "in use, by this or another process" in refused.stderr) == (1, True)
    os.close(owned)
    assert subprocess.run(other, env=environment).returncode == 0
