"""How near storage converts the errors of a folder in use and of the operating system."""

import errno
import os

import pytest

from libraries.durable.tests.simulated_disk import SimulatedDisk
from libraries.near_storage.errors import BusyError, FullError, NearStorageError, NotFoundError
from libraries.near_storage.storing.disk_errors import disk_error, own_folder


def test_a_folder_in_use_is_busy():
    disk = SimulatedDisk()
    own_folder(disk, disk.root / "store")
    with pytest.raises(BusyError, match="in use, by this or another process"):
        own_folder(disk, disk.root / "store")


@pytest.mark.parametrize(
    ("number", "kind", "says"),
    [
        (errno.ENOSPC, FullError, "the disk is full"),
        (errno.EDQUOT, FullError, "the disk is full"),
        (errno.EIO, NearStorageError, "Input/output error"),
        (errno.ENOENT, NotFoundError, "no longer exists"),
    ],
)
def test_errors_are_told_without_a_path(number, kind, says):
    error = disk_error(OSError(number, os.strerror(number), "/home/somebody/store/x"), "Partition 12")
    assert type(error) is kind
    assert says in str(error)
    assert "Partition 12" in str(error)
    assert "/home" not in str(error)
