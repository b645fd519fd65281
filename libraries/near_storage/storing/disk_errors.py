"""What near storage tells of a folder that is in use and of file calls that failed.

It knows neither Parquet nor what the files mean; the calls themselves are those of libraries/durable.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from libraries.durable import calls as durable
from libraries.near_storage.errors import BusyError, FullError, NearStorageError, NotFoundError


def own_folder(calls: durable.FileCalls, folder: Path) -> int:
    """Make the folder if there is none and own it; the descriptor of its lock, which ends with the process.

    Raises `BusyError` if another process owns it.
    """
    try:
        return durable.own_folder(calls, folder)
    except durable.InUseError as error:
        raise BusyError(str(error)) from None


def disk_error(error: OSError, what: str) -> NearStorageError:
    """What to tell of a failed file call: without a path, and a full disk by its own name."""
    if durable.is_full(error):
        return FullError(f"{what}: the disk is full. Nothing of it was kept; free space there, then try again.")
    if error.errno == errno.ENOENT:
        return NotFoundError(f"{what}: it is not there any more. Ask the catalog again.")
    reason = os.strerror(error.errno) if error.errno else type(error).__name__
    return NearStorageError(f"{what}: the disk failed ({reason}). Look at the machine's log before trying again.")
