"""Protocol of the processes that open the user's files: tasks, answers, and progress.

Such a process reads a task (JSON) from stdin and answers on stdout with frames. A frame is a letter, the length of the
content in 8 bytes (little-endian), and the content. Two letters have the same meaning for all processes:

e  the end of the answer
r  a refusal instead of the rest, as JSON with 'where', 'reason' and 'step'

The process has three arguments: the process id of its parent, its memory limit in bytes, and the descriptor of a shared
memory page. The process writes its current position in the input to this page. If the process crashes, the parent
(data_generator.imported.import_worker) reports this position. This module does not depend on the content of files.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import stat
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from data_generator.imported.confinement import confine, forbid_writing
from data_generator.imported.refusal import REPAIR, Refused, printable

HEADER = struct.Struct("<cQ")
END, REFUSAL = b"e", b"r"

Task = Mapping[str, Any]
"""The task: at least the `path` of the user's input."""


class Progress:
    """The shared page. This process writes its current position in the input there, and the parent reads it."""

    def __init__(self, descriptor: int) -> None:
        self._page = mmap.mmap(descriptor, mmap.PAGESIZE)
        self.where = ""

    def at(self, where: str) -> None:
        """Set the current position, such as a file and a row."""
        self.where = where
        text = where.encode(errors="backslashreplace")[: mmap.PAGESIZE - 1] + b"\0"
        self._page[: len(text)] = text


@dataclass(frozen=True)
class Reader:
    """The part of a process that depends on the kind of data.

    `frames` is called with the task and yields (letter, content) for each frame except the end frame, or raises
    Refused. `install` maps a module that may be missing to the package to install and the extra that includes the
    package. `smaller` is the next step that an error suggests for an input that needs too much memory.
    """

    frames: Callable[[Task, Progress], Iterator[tuple[bytes, Any]]]
    install: Mapping[str, tuple[str, str]]
    smaller: str
    may_write: bool = False
    """Whether a library that `frames` uses needs to write files."""


_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """Yield a regular file, open for reading.

    Raises Refused for a link, even if the link has replaced the file after its folder was listed.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Refused("is a link", "Leave it out, or replace it by the file.") from None
        raise Refused(f"cannot be opened: {error.strerror}", "Change its permissions, or leave the file out.") from None
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Refused("is not a regular file", "Leave it out.")
        if os.pread(descriptor, len(_LFS_POINTER), 0) == _LFS_POINTER:
            raise Refused("is a Git LFS pointer, not the file itself", "Run: git lfs pull")
        yield stream


def answer(out: IO[bytes], reader: Reader, task: Task, progress: Progress, memory_bytes: int) -> None:
    """Write the messages that answer a task. If an error occurs, write a refusal that states the reason."""
    try:
        for kind, content in reader.frames(task, progress):
            _write(out, kind, content)
        _write(out, END, b"")
    except Refused as refused:
        _refuse(out, refused, progress)
    except MemoryError:
        reason = f"needs more memory than the limit of an import ({memory_bytes / 2**30:.1f} GiB)"
        _refuse(out, Refused(reason, reader.smaller), progress)
    except ModuleNotFoundError as error:
        package, extra = reader.install.get(error.name or "", (error.name, "all"))
        reason = f"reading it needs {package}, which is not installed"
        _refuse(out, Refused(reason, f"Run: pip install -e '.[{extra}]'", task["path"]), progress)
    except BrokenPipeError:
        return  # The parent has ended, or needs no more messages.
    except Exception as error:
        # Libraries raise many kinds of errors on damaged files; the first line is the most informative.
        said = (str(error).splitlines() or [""])[0]
        _refuse(out, Refused(f"cannot be read: {said or type(error).__name__}", REPAIR), progress)


def _refuse(out: IO[bytes], refused: Refused, progress: Progress) -> None:
    where = refused.where or printable(progress.where)
    _write(out, REFUSAL, json.dumps({"where": where, "reason": refused.reason, "step": refused.step}).encode())


def _write(out: IO[bytes], kind: bytes, content: Any) -> None:
    view = memoryview(content)
    out.write(HEADER.pack(kind, view.nbytes))
    out.write(view)
    out.flush()


def serve(reader: Reader) -> None:
    """Run the process that this module describes."""
    parent, memory_bytes, page = map(int, sys.argv[1:4])
    confine(parent, memory_bytes)
    if not reader.may_write:
        forbid_writing()
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Output of libraries must not appear between the frames.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    answer(out, reader, json.load(sys.stdin), Progress(page), memory_bytes)
