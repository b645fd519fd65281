"""Receive and check the user's images from a process of data_generator.imported.images.image_import.

data_generator.imported.import_worker reports how the process ended.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import msgspec
import pyarrow as pa

from data_generator import images
from data_generator.errors import DataError
from data_generator.imported import import_worker
from data_generator.imported.images.image_import import BATCH, COUNT, REMARKS
from data_generator.imported.import_process import END
from data_generator.imported.import_worker import NONSENSE, Answers
from data_generator.imported.refusal import REPAIR, printable
from data_generator.imported.user_files import UserInput

COMMAND = (sys.executable, "-P", "-m", "data_generator.imported.images.image_import")
"""Command that starts the process. -P keeps the user's current folder off Python's import path."""

STALL_S = 60.0
"""The process is ended after this time, in seconds, without a message. A working process sends a message for every 64
MB of pixels."""

MEMORY_BYTES = 4 << 30
"""Memory limit: enough for the largest image that Pillow accepts, and all copies made while decoding it."""


@contextmanager
def started(found: UserInput, rows: int | None) -> Iterator[Import]:
    """Yield a process that reads at most `rows` images. Raises DataError if the process refuses the images."""
    task = {**asdict(found), "path": str(found.path), "rows": rows, "batch_bytes": images.BATCH_BYTES}
    with import_worker.started(COMMAND, task, found.path, memory_bytes=MEMORY_BYTES, stall_s=STALL_S) as answers:
        yield Import(answers, found.path)


class Import:
    """The images that a process sends."""

    def __init__(self, answers: Answers, path: Path) -> None:
        """Wait until the process has sent `count`, the number of images. Raises DataError if no number arrives.

        `remarks` are complete after all batches have been read.
        """
        self._answers, self._path = answers, path
        self.remarks: tuple[str, ...] = ()
        count = bytes(answers.frame(COUNT)[1])
        if not count.isdigit():
            raise answers.failed(NONSENSE)
        self.count = int(count)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the images as batches with the schema of data_generator.images.

        Raises DataError if the process refuses an image, ends early, or gives an invalid answer.
        """
        left = self.count
        while (frame := self._answers.frame(BATCH, REMARKS, END))[0] != END:
            if frame[0] == REMARKS:
                self.remarks = self._checked_remarks(frame[1])
                continue
            batch = self._answers.batch(frame[1], images.SCHEMA)
            if not images.is_sound(batch):
                raise self._answers.failed(NONSENSE)
            left -= batch.num_rows
            yield batch
        if left:
            raise DataError(
                f"{printable(self._path)}: {self.count - left:,} images were read, but {self.count:,} were expected.",
                REPAIR,
            )

    def _checked_remarks(self, content: bytearray) -> tuple[str, ...]:
        """Return the remarks as texts of two lines, without control characters, which could change the terminal."""
        try:
            said = msgspec.json.decode(content, type=list[str])
        except msgspec.MsgspecError:
            raise self._answers.failed(NONSENSE) from None
        return tuple("\n".join(map(printable, remark.split("\n", 1))) for remark in said)
