"""Create the folders for the working files of a run, and remove them afterwards.

Every run has a separate folder in each of its working directories. A small shell process reads from a pipe that the run
holds open. When the run ends, for any reason, the pipe closes and the shell removes the folders. So even `kill -9`
leaves no files.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

# The kernel kills workers together with the run. The pause and the second removal are for a worker that was in a system
# call and created a file after the first removal.
_JANITOR = 'cat >/dev/null; rm -rf -- "$@"; [ -e "$1" ] && sleep 0.5; rm -rf -- "$@"'


@contextmanager
def open_locked(folder: Path) -> Iterator[bool]:
    """Lock a folder, creating it if needed. Yield False if another process holds the lock, else True."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


@contextmanager
def work_folders(run_id: str, run_folder: Path, work_dirs: tuple[str, ...]) -> Iterator[Mapping[str, Path]]:
    """Make a working folder for each label, and remove all of these folders at the end, even after a crash.

    The folder of the label 'default' is inside the run's result folder. The folder of any other label is inside a
    directory of the user. Raises OSError if a folder cannot be made.
    """
    folders = {
        label: run_folder / "work" if label == "default" else Path(mkdtemp(prefix=f"format-bench-{run_id}-", dir=label))
        for label in work_dirs
    }
    command = ["/bin/sh", "-c", _JANITOR, "sh", *map(str, folders.values())]
    janitor = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    try:
        for folder in folders.values():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        yield folders
    finally:
        for folder in folders.values():
            shutil.rmtree(folder, ignore_errors=True)
        assert janitor.stdin is not None
        janitor.stdin.close()
        janitor.wait()
