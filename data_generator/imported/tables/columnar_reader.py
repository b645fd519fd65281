"""Parquet, Arrow and ORC: their metadata say how many rows there are, and only the parts are read that hold the sample.

Batches come one after the other: no more than a part of the table is in memory. This module knows no text.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq

from data_generator.imported.import_process import Progress, opened
from data_generator.imported.refusal import Refused
from data_generator.imported.tables import sampling, table_types
from data_generator.imported.tables.table_reading import Found, Reading, Source, chosen_blocks

_MOST_BATCH_ROWS = 1 << 16
_STREAM_BYTES = 1 << 20
"""Read at once of each column; a row group may be larger than the memory."""
_ARROW_FILE = b"ARROW1"


@dataclass(frozen=True)
class ParquetFile:
    """One file of a table: `name` is how messages call it."""

    name: str
    path: str


@dataclass(frozen=True)
class _RowGroup:
    file: ParquetFile
    number: int
    rows: int
    size_bytes: int

    def batches(self) -> Iterator[pa.RecordBatch]:
        rows_at_once = self.rows * table_types.BATCH_BYTES // max(self.size_bytes, 1)
        with opened(self.file.path) as stream, _parquet(stream) as parquet:
            yield from parquet.iter_batches(
                max(1, min(_MOST_BATCH_ROWS, rows_at_once)), row_groups=[self.number], use_threads=False
            )


def read_parquet(files: Sequence[ParquetFile], rows: int, progress: Progress) -> Reading:
    """The sample of the table that the files hold one behind the other. Raises Refused, also for a file of another
    schema."""
    groups: list[_RowGroup] = []
    first: pa.Schema | None = None
    input_rows = 0
    for file in files:
        progress.at(file.name)
        with opened(file.path) as stream, _parquet(stream) as parquet:
            table_types.check_number(parquet.metadata.num_columns)
            found = parquet.schema_arrow
            schema = table_types.kept_schema(found)
            if first is None:
                first, remarks = schema, table_types.remarks(found)
            _check_alike(first, schema, files[0])
            groups += _row_groups(file, parquet.metadata)
        input_rows = sum(group.rows for group in groups)
        yield input_rows
    assert first is not None
    blocks = chosen_blocks(input_rows, rows)
    return Found(input_rows, blocks, first, _of_row_groups(groups, blocks, first, progress), remarks)


def _parquet(stream: object) -> pq.ParquetFile:
    return pq.ParquetFile(stream, buffer_size=_STREAM_BYTES, pre_buffer=False)


def _row_groups(file: ParquetFile, metadata: pq.FileMetaData) -> Iterator[_RowGroup]:
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if group.num_rows < 0:
            raise Refused(f"says that row group {number} has {group.num_rows:,} rows", "the file may be hostile")
        yield _RowGroup(file, number, group.num_rows, group.total_byte_size)


def _check_alike(first: pa.Schema, schema: pa.Schema, file: ParquetFile) -> None:
    """Raises Refused for another schema than the first file has, naming the first column that differs."""
    if schema.equals(first):
        return
    step = "put the files of one schema into a folder, and name that"
    for name in first.names:
        if name not in schema.names:
            raise Refused(f"lacks the column {name!r}, which {file.name} has", step)
        mine, theirs = schema.field(name).type, first.field(name).type
        if mine != theirs:
            raise Refused(f"has the column {name!r} as {mine}, and {file.name} as {theirs}", step)
    extra = next((name for name in schema.names if name not in first.names), None)
    if extra is not None:
        raise Refused(f"has the column {extra!r}, which {file.name} lacks", step)
    moved = next(mine for mine, theirs in zip(schema.names, first.names, strict=True) if mine != theirs)
    raise Refused(f"has its columns in another order than {file.name}, from {moved!r} on", step)


def _of_row_groups(
    groups: Sequence[_RowGroup], blocks: Sequence[sampling.Block], schema: pa.Schema, progress: Progress
) -> Iterator[pa.RecordBatch]:
    start = 0
    for group in groups:
        parts = list(sampling.overlaps(blocks, start, group.rows))
        start += group.rows
        if parts:
            progress.at(f"{group.file.name}, row group {group.number}")
            rows = yield from _of_batches(group.batches(), parts, schema)
            if rows < parts[-1].end:
                raise Refused(
                    f"holds {rows:,} rows, and says {group.rows:,}", "the file may be damaged or hostile: repair it"
                )


def _of_batches(
    batches: Iterator[pa.RecordBatch], parts: Sequence[sampling.Block], schema: pa.Schema
) -> Generator[pa.RecordBatch, None, int]:
    """The rows of the parts, as they are kept; returns how many rows have been looked at. No batch behind the last part
    is asked for."""
    start = 0
    for batch in batches:
        for part in sampling.overlaps(parts, start, batch.num_rows):
            yield from table_types.kept(batch.slice(part.start, part.rows), schema)
        start += batch.num_rows
        if start >= parts[-1].end:
            break
    return start


# --- Arrow's own ---------------------------------------------------------------------------------------------------


def read_arrow(source: Source) -> Reading:
    """The sample of an Arrow IPC file, which Feather is, or stream. Raises Refused."""
    mapped = pa.memory_map(f"/proc/self/fd/{source.stream.fileno()}")
    is_file = mapped.read(len(_ARROW_FILE)) == _ARROW_FILE
    make = _file_batches if is_file else _stream_batches
    mapped.seek(0)
    found = (pa.ipc.open_file(mapped) if is_file else pa.ipc.open_stream(mapped)).schema
    schema = table_types.kept_schema(found)
    input_rows = 0
    for batch in make(mapped, pa.ipc.IpcReadOptions(included_fields=[0], use_threads=False)):
        input_rows += batch.num_rows
        source.progress.at(f"{source.path}, row {input_rows:,}")
        yield input_rows
    blocks = chosen_blocks(input_rows, source.rows)
    batches = make(mapped, pa.ipc.IpcReadOptions(use_threads=False))
    return Found(input_rows, blocks, schema, _of_batches(batches, blocks, schema), table_types.remarks(found))


def _file_batches(mapped: pa.MemoryMappedFile, options: pa.ipc.IpcReadOptions) -> Iterator[pa.RecordBatch]:
    mapped.seek(0)
    reader = pa.ipc.open_file(mapped, options=options)
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number)


def _stream_batches(mapped: pa.MemoryMappedFile, options: pa.ipc.IpcReadOptions) -> Iterator[pa.RecordBatch]:
    mapped.seek(0)
    yield from pa.ipc.open_stream(mapped, options=options)


# --- ORC -------------------------------------------------------------------------------------------------------------


def read_orc(source: Source) -> Reading:
    """The sample of an ORC file. Raises Refused."""
    source.progress.at(source.path)
    orc = pyarrow.orc.ORCFile(source.stream)
    found = orc.schema
    schema = table_types.kept_schema(found)
    rows: list[int] = []
    for number in range(orc.nstripes):
        source.progress.at(f"{source.path}, stripe {number}")
        rows.append(orc.read_stripe(number, columns=[found.names[0]]).num_rows)
        yield sum(rows)
    blocks = chosen_blocks(sum(rows), source.rows)
    stripes = _stripes(orc.read_stripe, rows, blocks, schema, source)
    return Found(sum(rows), blocks, schema, stripes, table_types.remarks(found))


def _stripes(
    read_stripe: Callable[[int], pa.RecordBatch],
    rows: Sequence[int],
    blocks: Sequence[sampling.Block],
    schema: pa.Schema,
    source: Source,
) -> Iterator[pa.RecordBatch]:
    start = 0
    for number, count in enumerate(rows):
        parts = list(sampling.overlaps(blocks, start, count))
        start += count
        if parts:
            source.progress.at(f"{source.path}, stripe {number}")
            yield from _of_batches(iter([read_stripe(number)]), parts, schema)
