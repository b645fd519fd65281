"""Starts the process that opens the user's images, takes its answers, and tells what became of it.

Whatever the files do to that process (data_generator.image_import), here it is a DataError of two lines. It never
outlives the `with` block that started it. This module knows neither caches nor what is done with the images.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO

import pyarrow as pa

from data_generator import images
from data_generator.errors import DataError
from data_generator.image_import import BATCH, COUNT, END, HEADER, REFUSAL
from data_generator.image_input import ImageInput
from data_generator.image_refusal import REPAIR, printable

COMMAND = (sys.executable, "-P", "-m", "data_generator.image_import")
"""-P: the user's current folder must not stand before the project on the path."""

STALL_S = 60.0
"""Without a word for so long, the process is ended: it says something for every 64 MB of pixels."""

MEMORY_BYTES = 4 << 30
"""Room for the largest image that Pillow takes without complaint, in all the copies that its decoding makes."""

_LARGEST_FRAME_BYTES = 1 << 30
_LAST_WORDS_BYTES = 300
_EXIT_S = 5.0
_NONSENSE = "reading it gave an answer that makes no sense"
_ROOT = Path(__file__).resolve().parents[1]
_QUIET = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""`datasets` must look for nothing on the network; and memory that is only reserved, by pools and for threads, counts
against the limit as well."""


@contextmanager
def started(found: ImageInput, rows: int | None) -> Iterator[Import]:
    """A process that reads at most `rows` images of what was found. Raises DataError when it refuses them."""
    task = {**asdict(found), "path": str(found.path), "rows": rows, "batch_bytes": images.BATCH_BYTES}
    page = os.memfd_create("progress")
    try:
        os.ftruncate(page, mmap.PAGESIZE)
        with (
            tempfile.TemporaryFile() as request,
            tempfile.TemporaryFile() as said,
            mmap.mmap(page, mmap.PAGESIZE) as progress,
        ):
            request.write(json.dumps(task).encode())
            request.seek(0)
            with _process(request, said, page) as process:
                try:
                    yield Import(process, found.path, progress, said)
                finally:
                    process.kill()
    finally:
        os.close(page)


def _process(request: IO[bytes], said: IO[bytes], page: int) -> subprocess.Popen[bytes]:
    limit = min(MEMORY_BYTES, os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE // 2)
    # An empty part would mean the current folder.
    parts = [str(_ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return subprocess.Popen(
        [*COMMAND, str(os.getpid()), str(limit), str(page)],
        stdin=request,
        stdout=subprocess.PIPE,
        stderr=said,
        env={**os.environ, **_QUIET, "PYTHONPATH": os.pathsep.join(parts)},
        pass_fds=(page,),
        # Ctrl-C is for us; the process is ended with the block that started it.
        start_new_session=True,
    )


class Import:
    """The answers of one process."""

    def __init__(self, process: subprocess.Popen[bytes], path: Path, progress: mmap.mmap, said: IO[bytes]) -> None:
        """Waits for the number of images, `count`. Raises DataError when there will be none."""
        assert process.stdout is not None
        self._process, self._path, self._progress, self._said = process, path, progress, said
        self._pipe = process.stdout.fileno()
        self._ready = select.poll()
        self._ready.register(self._pipe, select.POLLIN)
        count = bytes(self._frame(COUNT)[1])
        if not count.isdigit():
            raise self._failed(_NONSENSE)
        self.count = int(count)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The images, with the schema of data_generator.images. Raises DataError for one that is refused, for a
        process that came to an end before they did, and for answers that make no sense."""
        left = self.count
        while (frame := self._frame(BATCH, END))[0] == BATCH:
            batch = self._checked(frame[1])
            left -= batch.num_rows
            yield batch
        if left:
            raise DataError(
                f"{printable(self._path)}: holds {self.count - left:,} images, and says {self.count:,}\n  {REPAIR}"
            )

    def _frame(self, *expected: bytes) -> tuple[bytes, bytearray]:
        kind, size_bytes = HEADER.unpack(self._exactly(HEADER.size))
        if size_bytes > _LARGEST_FRAME_BYTES or kind not in (*expected, REFUSAL):
            raise self._failed(_NONSENSE)
        content = self._exactly(size_bytes)
        if kind == REFUSAL:
            raise self._refusal(content)
        return kind, content

    def _refusal(self, content: bytearray) -> DataError:
        try:
            said = json.loads(content)
            where, reason, step = (printable(said[key]) for key in ("where", "reason", "step"))
        except (ValueError, KeyError, TypeError):
            return self._failed(_NONSENSE)
        return DataError(f"{where or printable(self._path)}: {reason}\n  {step}")

    def _exactly(self, size_bytes: int) -> bytearray:
        """So many bytes of the pipe, each part of which comes in time."""
        content = bytearray(size_bytes)
        view = memoryview(content)
        while view:
            if not self._ready.poll(STALL_S * 1000):
                raise self._failed(f"reading it has come to nothing for {STALL_S:g} s")
            count = os.readv(self._pipe, [view])
            if count == 0:
                raise self._failed(f"reading it ended with {self._end()}")
            view = view[count:]
        return content

    def _checked(self, content: bytearray) -> pa.RecordBatch:
        """A decoder that was taken over could answer anything."""
        try:
            batch = pa.ipc.read_record_batch(pa.py_buffer(content), images.SCHEMA)
            batch.validate(full=True)
        except (pa.ArrowException, OSError, ValueError):
            raise self._failed(_NONSENSE) from None
        if not images.is_sound(batch):
            raise self._failed(_NONSENSE)
        return batch

    def _end(self) -> str:
        """How the process ended, once its pipe is closed."""
        try:
            code = self._process.wait(_EXIT_S)
        except subprocess.TimeoutExpired:
            return "no answer"
        if code < 0:
            return f"a crash of the decoder ({signal.strsignal(-code)})"
        size_bytes = self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, size_bytes - _LAST_WORDS_BYTES))
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return f"exit code {code}" + (f" ({printable(lines[-1])})" if lines else "")

    def _failed(self, what: str) -> DataError:
        """The error for a process that cannot tell by itself, with the image at which it was."""
        where = bytes(self._progress).partition(b"\0")[0].decode(errors="replace")
        return DataError(f"{printable(where or self._path)}: {what}\n  the file may be damaged or hostile: {REPAIR}")
