"""The sample that the process of data_generator.imported.documents.document_import takes of the user's documents.

What becomes of that process is told by data_generator.imported.import_worker.
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
"""-P: the user's current folder must not stand before the project on the path."""

STALL_S = 60.0
"""Without a word for so long, the process is ended: it says something for every 8 MB that it reads."""

MEMORY_BYTES = 4 << 30
"""Room for the keys of all documents of a sample, and for the longest line as Python objects."""


class DocumentFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What there is: documents of the whole, documents and blocks of the sample, the field that is the key, and whether
    it was put in front because the documents have none."""

    input_rows: int
    rows: int
    blocks: int
    key: str
    numbered: bool


@contextmanager
def started(found: UserInput, rows: int, key: str, on_rows: Callable[[int], None] | None = None) -> Iterator[Import]:
    """A process that takes a sample of at most `rows` documents; `key` is the field that is their key, or empty;
    `on_rows` hears how many it has seen. Raises DataError when it refuses them."""
    task = {**asdict(found), "path": str(found.path), "rows": rows, "key": key}
    with import_worker.started(COMMAND, task, found.path, memory_bytes=MEMORY_BYTES, stall_s=STALL_S) as answers:
        yield Import(answers, found.path, on_rows)


class Import:
    """The sample of one process."""

    def __init__(self, answers: Answers, path: Path, on_rows: Callable[[int], None] | None = None) -> None:
        """Waits for `facts`. Raises DataError when there will be none."""
        self._answers, self._path = answers, path
        while (frame := answers.frame(ROWS, FACTS))[0] == ROWS:
            seen = bytes(frame[1])
            if not seen.isdigit():
                raise answers.failed(NONSENSE)
            if on_rows is not None:
                on_rows(int(seen))
        try:
            self.facts = msgspec.json.decode(frame[1], type=DocumentFacts)
        except msgspec.MsgspecError:
            raise answers.failed(NONSENSE) from None
        if not 0 < self.facts.rows <= self.facts.input_rows or self.facts.blocks < 1 or not self.facts.key:
            raise answers.failed(NONSENSE)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The documents, with the schema of data_generator.documents. Raises DataError for what is refused, for a
        process that came to an end before they did, and for answers that make no sense."""
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
                f"{printable(self._path)}: a sample of {self.facts.rows - left:,} documents could be read, and it has "
                f"to be one of {self.facts.rows:,}\n  {REPAIR}"
            )
