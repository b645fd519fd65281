"""Where a run's working files lie, and who removes them when the run cannot.

Every run has a folder of its own under its working directories. A small shell process holds the other end of a pipe:
when the run ends, however it ends, the pipe closes and the shell removes the folders. So a run killed by `kill -9`
leaves no file behind either.
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

# Workers are killed by the kernel in the same moment as the run; the pause and the second removal are for one
# that was inside a system call and still made a file.
_JANITOR = 'cat >/dev/null; rm -rf -- "$@"; [ -e "$1" ] && sleep 0.5; rm -rf -- "$@"'


@contextmanager
def open_locked(folder: Path) -> Iterator[bool]:
    """Hold the kernel's lock on a folder, which is made where it is missing; False when another process has it."""
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
    """Make a working folder for each label, and remove all of them at the end, also after a crash.

    The label 'default' lies in the run's own result folder; any other label is a directory of the user's.
    Raises OSError when one cannot be made.
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
