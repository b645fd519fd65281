"""Receive and check the sample of the user's table from a process of data_generator.imported.tables.table_import.

data_generator.imported.import_worker reports how the process ended.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import msgspec
import pyarrow as pa

from data_generator.errors import DataError
from data_generator.imported import import_worker
from data_generator.imported.import_process import END
from data_generator.imported.import_worker import NONSENSE, Answers
from data_generator.imported.read_options import AS_FOUND, ReadOptions
from data_generator.imported.refusal import REPAIR, printable
from data_generator.imported.tables import table_types
from data_generator.imported.tables.categories import Decoder
from data_generator.imported.tables.table_import import BATCH, CATEGORIES, FACTS, ROWS, SCHEMA
from data_generator.imported.tables.table_reading import TableFacts
from data_generator.imported.user_files import UserInput

COMMAND = (sys.executable, "-P", "-m", "data_generator.imported.tables.table_import")
"""Command that starts the process. -P keeps the user's current folder off Python's import path."""

STALL_S = 60.0
"""The process is ended after this time, in seconds, without a message. A working process sends a message for every 8 MB
of input."""

MEMORY_BYTES = 4 << 30
"""Memory limit: enough for a sample of text and for the values of one column while its type is determined."""


@contextmanager
def started(
    found: UserInput, rows: int | None, options: ReadOptions = AS_FOUND, on_rows: Callable[[int], None] | None = None
) -> Iterator[Import]:
    """Yield a process that takes a sample of at most `rows` rows (None: all rows) of the table, read with `options`.

    `on_rows` is called with the number of rows seen so far. Raises DataError if the process refuses the table.
    """
    task = {**asdict(found), "path": str(found.path), "rows": rows, "options": msgspec.to_builtins(options)}
    with import_worker.started(COMMAND, task, found.path, memory_bytes=MEMORY_BYTES, stall_s=STALL_S) as answers:
        yield Import(answers, found.path, on_rows)


class Import:
    """The sample of a table that a process sends."""

    def __init__(self, answers: Answers, path: Path, on_rows: Callable[[int], None] | None = None) -> None:
        """Wait until the process has sent `facts` and `schema`. Raises DataError if the process ends or refuses the
        table before that."""
        self._answers, self._path = answers, path
        self.facts = self._checked_facts(answers.frame_after_counts(ROWS, FACTS, on_rows))
        self.schema = self._checked_schema(answers.frame(SCHEMA)[1])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the sample as batches.

        Raises DataError if the process refuses the table, ends early, or gives an invalid answer.
        """
        left = self.facts.rows
        decoder = Decoder(self.schema)
        while (frame := self._answers.frame(CATEGORIES, BATCH, END))[0] != END:
            try:
                if frame[0] == CATEGORIES:
                    decoder.learn(frame[1])
                    continue
                batch = decoder.decoded(self._answers.batch(frame[1], decoder.codes))
            except (pa.ArrowException, OSError, ValueError, IndexError, struct.error):
                raise self._answers.failed(NONSENSE) from None
            left -= batch.num_rows
            yield batch
        if left:
            raise DataError(
                f"{printable(self._path)}: {self.facts.rows - left:,} rows of the sample were read, but "
                f"{self.facts.rows:,} were expected.",
                REPAIR,
            )

    def _checked_facts(self, content: bytearray) -> TableFacts:
        """Return the facts if they are plausible, because a hostile file may have taken control of the process.

        Raises DataError otherwise.
        """
        try:
            facts = msgspec.json.decode(content, type=TableFacts)
        except msgspec.MsgspecError:
            raise self._answers.failed(NONSENSE) from None
        if facts.blocks < 1 or not 0 < facts.rows <= facts.input_rows:
            raise self._answers.failed(NONSENSE)
        understood = {printable(key): printable(value) for key, value in facts.understood.items()}
        return msgspec.structs.replace(
            facts, understood=understood, remarks=tuple(_remark(text) for text in facts.remarks)
        )

    def _checked_schema(self, content: bytearray) -> pa.Schema:
        try:
            schema = pa.ipc.read_schema(pa.py_buffer(content))
            is_kept = all(table_types.column_type(column.type) == column.type for column in schema)
        except (pa.ArrowException, OSError, ValueError):
            raise self._answers.failed(NONSENSE) from None
        if not is_kept or not schema.names or len(set(schema.names)) != len(schema.names):
            raise self._answers.failed(NONSENSE)
        return schema.remove_metadata()


def _remark(text: str) -> str:
    """Return the text with two lines and without control characters, which could change the terminal."""
    said, _, remedy = text.partition("\n")
    return f"{printable(said)}\n{printable(remedy)}"
