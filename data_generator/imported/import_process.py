"""What the processes that open the user's files have in common: how they are asked, how they answer, where they are.

Such a process reads a task (JSON) from stdin and answers on stdout with frames: a letter, the length in 8 bytes,
little-endian, and so many bytes. Two letters are the same for all:

    e  the end; all is said
    r  instead of the rest: why the input is not taken, as JSON with 'where', 'reason' and 'step'

It is started with three numbers: its parent, its limit of memory in bytes, and a descriptor of one shared page, in
which stands where it is: if it dies of that, data_generator.imported.import_worker, which started it, can tell. Nothing
here knows what the files hold.
"""

from __future__ import annotations

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
"""What is asked for; at least the `path` of the user's input."""


class Progress:
    """The page in which the parent sees where this process is."""

    def __init__(self, descriptor: int) -> None:
        self._page = mmap.mmap(descriptor, mmap.PAGESIZE)
        self.where = ""

    def at(self, where: str) -> None:
        """From now on at this place."""
        self.where = where
        text = where.encode(errors="backslashreplace")[: mmap.PAGESIZE - 1] + b"\0"
        self._page[: len(text)] = text


@dataclass(frozen=True)
class Reader:
    """How a task is answered: `frames` gives the letters and contents, without the end, or raises Refused.

    `install` says for a module what has to be installed and which extra brings it; `smaller` is the next step for an
    input that needs too much memory.
    """

    frames: Callable[[Task, Progress], Iterator[tuple[bytes, Any]]]
    install: Mapping[str, tuple[str, str]]
    smaller: str
    may_write: bool = False
    """Whether a library of it keeps notes in files."""


_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """A regular file, no link, to read; whatever stood there when its folder was listed. Raises Refused."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Refused(f"cannot be opened: {error.strerror}", "allow it, or leave the file out") from None
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Refused("is no regular file", "leave it out")
        if os.pread(descriptor, len(_LFS_POINTER), 0) == _LFS_POINTER:
            raise Refused("is a pointer of Git LFS, and not yet the file that it stands for", "git lfs pull")
        yield stream


def answer(out: IO[bytes], reader: Reader, task: Task, progress: Progress, memory_bytes: int) -> None:
    """Write the frames for a task, whatever comes of it."""
    try:
        for kind, content in reader.frames(task, progress):
            _write(out, kind, content)
        _write(out, END, b"")
    except Refused as refused:
        _refuse(out, refused, progress)
    except MemoryError:
        reason = f"needs more memory than an import may take ({memory_bytes / 2**30:.1f} GiB)"
        _refuse(out, Refused(reason, reader.smaller), progress)
    except ModuleNotFoundError as error:
        package, extra = reader.install.get(error.name or "", (error.name, "all"))
        reason = f"reading it needs {package}, not installed here"
        _refuse(out, Refused(reason, f"pip install -e '.[{extra}]'", task["path"]), progress)
    except BrokenPipeError:
        return  # The parent has gone, or wants no more.
    except Exception as error:
        # The libraries raise all sorts of errors on damaged files; the first line of theirs tells most.
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
    """Be such a process: see the module."""
    parent, memory_bytes, page = map(int, sys.argv[1:4])
    confine(parent, memory_bytes)
    if not reader.may_write:
        forbid_writing()
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # What libraries print must not stand between the frames.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    answer(out, reader, json.load(sys.stdin), Progress(page), memory_bytes)
