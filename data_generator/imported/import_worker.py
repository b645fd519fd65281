"""Start a process that opens the user's files, receive the answers of this process, and report how it ended.

If a file crashes or blocks the process (data_generator.imported.import_process), this module raises a DataError. The
process never outlives the `with` block that started it.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from data_generator.errors import DataError
from data_generator.imported import memory_limit
from data_generator.imported.import_process import HEADER, REFUSAL
from data_generator.imported.refusal import REPAIR, printable

NONSENSE = "the reading process gave an invalid answer"

_LARGEST_FRAME_BYTES = 1 << 30
_LAST_WORDS_BYTES = 300
_EXIT_S = 5.0
_ROOT = Path(__file__).resolve().parents[2]
_QUIET = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""Environment variables of the process. They keep `datasets` off the network, and reduce the memory that pools and
threads reserve, because reserved memory counts towards the limit."""


@contextmanager
def started(
    command: Sequence[str], task: Mapping[str, Any], path: Path, *, memory_bytes: int, stall_s: float
) -> Iterator[Answers]:
    """Yield the answers of a new process to the task about the input at `path`.

    The memory of the process is limited to `memory_bytes`, or to half of the memory of the machine or container if this
    is less. The process is ended when the `with` block ends. Reading the answers raises DataError after `stall_s`
    seconds without a message.
    """
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
            with _process(command, request, said, page, memory_bytes) as process:
                try:
                    yield Answers(process, path, progress, said, stall_s)
                finally:
                    process.kill()
    finally:
        os.close(page)


def _process(
    command: Sequence[str], request: IO[bytes], said: IO[bytes], page: int, memory_bytes: int
) -> subprocess.Popen[bytes]:
    limit = min(memory_bytes, memory_limit.usable_bytes() // 2)
    # Leave out empty parts, because in PYTHONPATH they mean the current folder.
    parts = [str(_ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return subprocess.Popen(
        [*command, str(os.getpid()), str(limit), str(page)],
        stdin=request,
        stdout=subprocess.PIPE,
        stderr=said,
        env={**os.environ, **_QUIET, "PYTHONPATH": os.pathsep.join(parts)},
        pass_fds=(page,),
        # Ctrl-C must reach only this process. The child ends with the `with` block that started it.
        start_new_session=True,
    )


class Answers:
    """Reads the messages that a process sends."""

    def __init__(
        self, process: subprocess.Popen[bytes], path: Path, progress: mmap.mmap, said: IO[bytes], stall_s: float
    ) -> None:
        assert process.stdout is not None
        self._process, self._path, self._progress, self._said = process, path, progress, said
        self._stall_s = stall_s
        self._pipe = process.stdout.fileno()
        self._ready = select.poll()
        self._ready.register(self._pipe, select.POLLIN)

    def frame(self, *expected: bytes) -> tuple[bytes, bytearray]:
        """Return the letter and the content of the next message. The letter must be one of `expected`.

        Raises DataError if the process refuses the input, ends early, or gives an invalid answer.
        """
        kind, size_bytes = HEADER.unpack(self._exactly(HEADER.size))
        if size_bytes > _LARGEST_FRAME_BYTES or kind not in (*expected, REFUSAL):
            raise self.failed(NONSENSE)
        content = self._exactly(size_bytes)
        if kind == REFUSAL:
            raise self._refusal(content)
        return kind, content

    def frame_after_counts(self, count: bytes, expected: bytes, on_rows: Callable[[int], None] | None) -> bytearray:
        """Return the content of the first message with the letter `expected`.

        Messages before it have the letter `count` and contain a number of rows. `on_rows` is called with each of these
        numbers. Raises DataError in the same cases as `frame`.
        """
        while (frame := self.frame(count, expected))[0] == count:
            seen = bytes(frame[1])
            if not seen.isdigit():
                raise self.failed(NONSENSE)
            if on_rows is not None:
                on_rows(int(seen))
        return frame[1]

    def batch(self, content: bytearray, schema: pa.Schema) -> pa.RecordBatch:
        """Return the batch in a message. Raises DataError for an invalid batch.

        The batch is checked, because a hostile file may have taken control of the process.
        """
        try:
            batch = pa.ipc.read_record_batch(pa.py_buffer(content), schema)
            batch.validate(full=True)
        except (pa.ArrowException, OSError, ValueError):
            raise self.failed(NONSENSE) from None
        return batch

    def _refusal(self, content: bytearray) -> DataError:
        try:
            said = json.loads(content)
            where, reason, step = (printable(said[key]) for key in ("where", "reason", "step"))
        except (ValueError, KeyError, TypeError):
            return self.failed(NONSENSE)
        return DataError(f"{where or printable(self._path)}: {reason}.", step)

    def _exactly(self, size_bytes: int) -> bytearray:
        """Return the next `size_bytes` bytes of the pipe. Raises DataError if the process ends or sends nothing for too
        long."""
        content = bytearray(size_bytes)
        view = memoryview(content)
        while view:
            if not self._ready.poll(self._stall_s * 1000):
                raise self.failed(f"the reading process sent nothing for {self._stall_s:g} s")
            count = os.readv(self._pipe, [view])
            if count == 0:
                raise self.failed(f"the reading process ended with {self._end()}")
            view = view[count:]
        return content

    def _end(self) -> str:
        """Return a description of how the process ended. Call this when the pipe of the process is closed."""
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

    def failed(self, what: str) -> DataError:
        """Return an error that names the place in the user's files that the process was reading last. Use this for
        failures that the process did not report."""
        where = bytes(self._progress).partition(b"\0")[0].decode(errors="replace")
        return DataError(f"{printable(where or self._path)}: {what}.", f"The file may be damaged or hostile. {REPAIR}")
