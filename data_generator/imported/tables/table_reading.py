"""What the readers of the user's tables have in common: what they are given, and what they give back.

A reader is a generator: while it counts it yields the rows that it has seen, and what it returns is the sample. Readers
run in the process of data_generator.imported.tables.table_import alone.
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


@dataclass(frozen=True)
class TableFile:
    """One file, opened: `path` is how messages name it, `rows` how many are wanted of it at most."""

    path: str
    stream: IO[bytes]
    size_bytes: int
    rows: int
    progress: Progress
    options: ReadOptions = AS_FOUND

    def content(self) -> ByteStream:
        """The content of a text file from its beginning, unpacked, as UTF-8. Raises Refused."""
        return ByteStream(self.stream.fileno(), self.path, self.size_bytes, self.options.encoding)


@dataclass(frozen=True)
class Found:
    """The sample of a table: the rows of the whole, the blocks of the sample, and its batches, all of them with
    `schema`.

    `remarks` are warnings of two lines: what was changed or may be meant otherwise, and what to do. `understood` says
    how the file was read, as text by subject: {'delimiter': 'semicolon', 'encoding': 'utf-8'}.
    """

    input_rows: int
    blocks: tuple[Block, ...]
    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    remarks: Sequence[str] = ()
    understood: Mapping[str, str] = field(default_factory=dict)

    def facts(self) -> TableFacts:
        """What is known of the sample before its batches are made."""
        rows = sum(block.rows for block in self.blocks)
        return TableFacts(self.input_rows, rows, len(self.blocks), dict(self.understood), tuple(self.remarks))


class TableFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a reader found, as it is sent between processes and kept in the cache."""

    input_rows: int
    rows: int
    blocks: int
    understood: dict[str, str] = {}
    remarks: tuple[str, ...] = ()


Reading = Generator[int, None, Found]
"""A reader at work."""


def chosen_blocks(input_rows: int, rows: int) -> tuple[Block, ...]:
    """The blocks of the sample. Raises Refused for a table without rows."""
    if input_rows < 1:
        raise Refused("holds no rows", "name a file with a table in it")
    return sampling.blocks(input_rows, rows)


def as_batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """A table that is whole in memory, in batches as they are kept."""
    for batch in table.to_batches(max_chunksize=1 << 17):
        yield from table_types.kept(batch, table.schema)
