"""Receive and check the sample of the user's documents from a process of
data_generator.imported.documents.document_import.

data_generator.imported.import_worker reports how the process ended.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import msgspec
import pyarrow as pa

from data_generator import documents
from data_generator.errors import DataError
from data_generator.imported import import_worker
from data_generator.imported.documents.document_import import BATCH, FACTS, ROWS
from data_generator.imported.import_process import END
from data_generator.imported.import_worker import NONSENSE, Answers
from data_generator.imported.refusal import REPAIR, printable
from data_generator.imported.user_files import UserInput

COMMAND = (sys.executable, "-P", "-m", "data_generator.imported.documents.document_import")
"""Command that starts the process. -P keeps the user's current folder off Python's import path."""

STALL_S = 60.0
"""The process is ended after this time, in seconds, without a message. A working process sends a message for every 8 MB
of input."""

MEMORY_BYTES = 4 << 30
"""Memory limit: enough for the keys of all documents of a sample, and for the longest line as Python objects."""


class DocumentFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Number of documents in the input, number of documents and blocks in the sample, the key field, and whether the
    key field was added because the documents lack it."""

    input_rows: int
    rows: int
    blocks: int
    key: str
    numbered: bool


@contextmanager
def started(found: UserInput, rows: int, key: str, on_rows: Callable[[int], None] | None = None) -> Iterator[Import]:
    """Yield a process that takes a sample of at most `rows` documents.

    `key` is the key field, or empty for the default. `on_rows` is called with the number of documents seen so far.
    Raises DataError if documents are refused.
    """
    task = {**asdict(found), "path": str(found.path), "rows": rows, "key": key}
    with import_worker.started(COMMAND, task, found.path, memory_bytes=MEMORY_BYTES, stall_s=STALL_S) as answers:
        yield Import(answers, found.path, on_rows)


class Import:
    """The sample of documents that a process sends, as batches, and the facts about the sample."""

    def __init__(self, answers: Answers, path: Path, on_rows: Callable[[int], None] | None = None) -> None:
        """Wait until the process has sent `facts`. Raises DataError if the process ends or refuses the documents before
        that."""
        self._answers, self._path = answers, path
        facts = answers.frame_after_counts(ROWS, FACTS, on_rows)
        try:
            self.facts = msgspec.json.decode(facts, type=DocumentFacts)
        except msgspec.MsgspecError:
            raise answers.failed(NONSENSE) from None
        if not 0 < self.facts.rows <= self.facts.input_rows or self.facts.blocks < 1 or not self.facts.key:
            raise answers.failed(NONSENSE)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the documents as batches with the schema of data_generator.documents.

        Raises DataError if the process refuses a document, ends early, or gives an invalid answer.
        """
        left = self.facts.rows
        while (frame := self._answers.frame(BATCH, END))[0] == BATCH:
            try:
                batch = documents.batch(bytes(frame[1]), self.facts.key)
            except ValueError:
                raise self._answers.failed(NONSENSE) from None
            left -= batch.num_rows
            yield batch
        if left:
            raise DataError(
                f"{printable(self._path)}: {self.facts.rows - left:,} documents of the sample were read, but "
                f"{self.facts.rows:,} were expected.",
                REPAIR,
            )
