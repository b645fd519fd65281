"""Errors of near storage for a folder that is in use and for failed file calls.

The calls themselves are in libraries/durable.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from libraries.durable import calls as durable
from libraries.near_storage.errors import BusyError, FullError, NearStorageError, NotFoundError


def own_folder(calls: durable.FileCalls, folder: Path) -> int:
    """Create the folder if necessary and lock it for this process. Return the descriptor of the lock, which ends with
    the process.

    Raises `BusyError` if another process has locked the folder.
    """
    try:
        return durable.own_folder(calls, folder)
    except durable.InUseError as error:
        raise BusyError(str(error)) from None


def disk_error(error: OSError, what: str) -> NearStorageError:
    """Return the error for a failed file call, without a path. For a full disk, return FullError."""
    if durable.is_full(error):
        return FullError(f"{what}: the disk is full. Nothing new was kept; free space, then try again.")
    if error.errno == errno.ENOENT:
        return NotFoundError(f"{what}: a file no longer exists. Ask the catalog again.")
    reason = os.strerror(error.errno) if error.errno else type(error).__name__
    return NearStorageError(f"{what}: the disk failed ({reason}). Check the machine's log before trying again.")
