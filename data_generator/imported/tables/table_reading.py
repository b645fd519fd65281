"""Inputs and results that the readers of the user's tables share.

A reader is a generator. While it counts the rows, it yields the number of rows seen so far. Its return value is the
sample. Readers run only in the process of data_generator.imported.tables.table_import.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

import msgspec
import pyarrow as pa

from data_generator.imported.byte_stream import ByteStream
from data_generator.imported.import_process import Progress
from data_generator.imported.read_options import AS_FOUND, ReadOptions
from data_generator.imported.refusal import Refused
from data_generator.imported.tables import sampling, table_types
from data_generator.imported.tables.sampling import Block

TYPE_ROWS, TYPE_BYTES = 1_000_000, 128 << 20
"""Maximum rows and bytes of the sample in which the types of a text file are found, if the whole file is then read."""


@dataclass(frozen=True)
class TableFile:
    """An open file. `path` is the name of the file in messages, and `rows` is the maximum number of rows of the
    sample."""

    path: str
    stream: IO[bytes]
    size_bytes: int
    rows: int
    progress: Progress
    options: ReadOptions = AS_FOUND
    whole: bool = False
    """Whether all rows of a text file are wanted. The sample then only determines the types."""

    def type_blocks(self, input_rows: int, content_bytes: int) -> tuple[Block, ...]:
        """Return the blocks of a text file in which types are found. `content_bytes` is the size of the unpacked text.

        If the whole file is wanted, the blocks have at most about TYPE_BYTES bytes. Raises Refused for a table without
        rows.
        """
        bounded = max(1, TYPE_BYTES * input_rows // max(content_bytes, 1)) if self.whole else self.rows
        return chosen_blocks(input_rows, min(self.rows, bounded))

    def content(self) -> ByteStream:
        """Return the content of a text file from the beginning, unpacked, as UTF-8. Raises Refused if it cannot be
        unpacked."""
        return ByteStream(self.stream.fileno(), self.path, self.size_bytes, self.options.encoding)


@dataclass(frozen=True)
class Found:
    """The sample of a table: the number of rows of the table, and the blocks, the schema and the batches of the sample.

    `remarks` are warnings of two lines: what was changed or is ambiguous, and what to do. `understood` describes how
    the file was read, as subject -> text, e.g. {'delimiter': 'semicolon', 'encoding': 'utf-8'}.
    """

    input_rows: int
    blocks: tuple[Block, ...]
    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    remarks: Sequence[str] = ()
    understood: Mapping[str, str] = field(default_factory=dict)
    changed: Sequence[str] = ()
    """Names of columns in which reading changed values. For each of them, a remark states the change."""

    def facts(self) -> TableFacts:
        """Return the facts about the sample that are known before the batches are made."""
        rows = sum(block.rows for block in self.blocks)
        return TableFacts(
            self.input_rows, rows, len(self.blocks), dict(self.understood), tuple(self.remarks), tuple(self.changed)
        )


class TableFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Facts that a reader found, in the form in which they are sent between processes and stored in the cache."""

    input_rows: int
    rows: int
    blocks: int
    understood: dict[str, str] = {}
    remarks: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


Reading = Generator[int, None, Found]
"""The generator that a reader function returns. It yields row counts, and its return value is the sample."""


def chosen_blocks(input_rows: int, rows: int) -> tuple[Block, ...]:
    """Return the blocks of a sample of at most `rows` rows. Raises Refused for a table without rows."""
    if input_rows < 1:
        raise Refused("has no rows", "Name a file with a table.")
    return sampling.blocks(input_rows, rows)


def as_batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield a table in memory as batches of the size in which they are stored."""
    for batch in table.to_batches(max_chunksize=1 << 17):
        yield from table_types.kept(batch, table.schema)
