"""Read Parquet, Arrow and ORC files.

Rows are counted without reading all columns. Then only the parts of a file that contain rows of the sample are read,
one batch at a time, so the whole table is never in memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq

from data_generator.imported.import_process import Progress, opened
from data_generator.imported.refusal import Refused
from data_generator.imported.tables import parquet_types, sampling, table_types
from data_generator.imported.tables.parquet_folder import Partition, Partitions, Union
from data_generator.imported.tables.table_reading import Found, Reading, TableFile, chosen_blocks

_MOST_BATCH_ROWS = 1 << 16
_STREAM_BYTES = 1 << 20
"""Number of bytes of a column that are read at once. Whole row groups are not read at once, because they may be larger
than memory."""
_ARROW_FILE = b"ARROW1"


@dataclass(frozen=True)
class ParquetFile:
    """One file of a table. `name` is used in messages.

    `partition` has the values of partition columns, which are in the names of the file's folders.
    """

    name: str
    path: str
    partition: Partition = field(default_factory=dict)


@dataclass(frozen=True)
class _RowGroup:
    file: ParquetFile
    number: int
    rows: int
    size_bytes: int

    def batches(self, int96_unit: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the row group in batches. `columns` are the columns to read (default: all)."""
        rows_at_once = self.rows * table_types.BATCH_BYTES // max(self.size_bytes, 1)
        with opened(self.file.path) as stream, _parquet(stream, int96_unit) as parquet:
            yield from parquet.iter_batches(
                max(1, min(_MOST_BATCH_ROWS, rows_at_once)),
                row_groups=[self.number],
                columns=columns,
                use_threads=False,
            )


@dataclass(frozen=True)
class _Contents:
    file: ParquetFile
    schema: Any
    """The file's Parquet schema."""
    found: pa.Schema
    groups: Sequence[_RowGroup]

    def annotated(self, int96_unit: str) -> pa.Schema:
        return parquet_types.annotated(self.schema, self.found, int96_unit)

    def remarks(self) -> list[str]:
        special = parquet_types.stored_as(self.schema, self.found)
        return [*table_types.remarks(self.found, special), *_index_remarks(self.found)]


def read_parquet(files: Sequence[ParquetFile], rows: int, progress: Progress) -> Reading:
    """Return the sample of a table that consists of these files, in this order.

    Raises Refused for invalid files, and for files whose schemas do not agree.
    """
    contents: list[_Contents] = []
    input_rows = 0
    for file in files:
        progress.at(file.name)
        contents.append(_contents(file))
        input_rows += sum(group.rows for group in contents[-1].groups)
        yield input_rows
    groups = [group for each in contents for group in each.groups]
    blocks = chosen_blocks(input_rows, rows)
    unit = yield from _int96_unit(contents, blocks, input_rows, progress)
    partitions = Partitions(
        [file.partition for file in files], {name for each in contents for name in each.found.names}
    )
    union = _union(contents, partitions, unit, progress)
    schema = table_types.kept_schema(union.schema)
    batches = _of_row_groups(groups, blocks, _Layout(schema, partitions, unit), progress)
    of_files = dict.fromkeys(remark for each in contents for remark in each.remarks())
    remarks = [*table_types.name_remarks(schema.names), *of_files, *partitions.remarks, *union.remarks()]
    return Found(input_rows, blocks, schema, batches, remarks, partitions.understood())


def _contents(file: ParquetFile) -> _Contents:
    with opened(file.path) as stream, _parquet(stream) as parquet:
        table_types.check_number(parquet.metadata.num_columns)
        found = parquet.schema_arrow
        table_types.kept_schema(found)
        return _Contents(file, parquet.schema, found, list(_row_groups(file, parquet.metadata)))


def _parquet(stream: object, int96_unit: str = "ns") -> pq.ParquetFile:
    return pq.ParquetFile(
        stream,
        buffer_size=_STREAM_BYTES,
        pre_buffer=False,
        coerce_int96_timestamp_unit=int96_unit,
        page_checksum_verification=True,
    )


def _row_groups(file: ParquetFile, metadata: pq.FileMetaData) -> Iterator[_RowGroup]:
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if group.num_rows < 0:
            raise Refused(
                f"states a negative number of rows ({group.num_rows:,}) for row group {number}",
                "The file may be damaged or hostile. Repair it.",
            )
        yield _RowGroup(file, number, group.num_rows, group.total_byte_size)


def _union(contents: Sequence[_Contents], partitions: Partitions, int96_unit: str, progress: Progress) -> Union:
    first = contents[0]
    union = Union(partitions.added(first.annotated(int96_unit)), first.file.name)
    for other in contents[1:]:
        progress.at(other.file.name)
        union.add(partitions.added(other.annotated(int96_unit)), other.file.name)
    return union


def _int96_unit(
    contents: Sequence[_Contents], blocks: Sequence[sampling.Block], input_rows: int, progress: Progress
) -> Generator[int, None, str]:
    """Return the timestamp unit that holds all INT96 values of the sample. These values are read for this purpose.

    Meanwhile yields `input_rows` again and again, because a process that sends nothing for a while is ended.
    """
    found = parquet_types.Int96Unit()
    start = 0
    for each in contents:
        paths = parquet_types.int96_paths(each.schema)
        for group in each.groups:
            parts = list(sampling.overlaps(blocks, start, group.rows))
            start += group.rows
            if not paths or not parts:
                continue
            progress.at(f"{group.file.name}, row group {group.number}")
            for seconds, ns in zip(group.batches("s", paths), group.batches("ns", paths), strict=True):
                found.look(seconds, ns)
                yield input_rows
    return found.unit


def _index_remarks(found: pa.Schema) -> list[str]:
    """Return remarks on a DataFrame's index. pandas stores an index as columns, or as a range in the file's
    metadata."""
    try:
        index = json.loads((found.metadata or {}).get(b"pandas", b"{}"))["index_columns"]
    except (ValueError, KeyError, TypeError):
        return []
    parts = index if isinstance(index, list) else []
    said = []
    columns = [repr(name) for name in parts if isinstance(name, str) and name in found.names]
    if columns:
        said.append(
            f"the index of a DataFrame is measured as a column: {table_types.listed(columns)}\n"
            "write the file by to_parquet(FILE, index=False) to leave it out"
        )
    ranges = [part for part in parts if isinstance(part, dict) and not _is_default(part)]
    if ranges:
        start, step, name = (ranges[0].get(key) for key in ("start", "step", "name"))
        said.append(
            f"the index of a DataFrame is left out: pandas stores it as a range from {start} in steps of {step}"
            f"{'' if name is None else f', called {name!r}'}\n"
            "write the file by reset_index().to_parquet(FILE) to measure it as a column"
        )
    return said


def _is_default(index: Mapping[str, Any]) -> bool:
    return (index.get("start"), index.get("step"), index.get("name")) == (0, 1, None)


@dataclass(frozen=True)
class _Layout:
    """Converts the batches of all files to batches of one table with the same columns."""

    schema: pa.Schema
    partitions: Partitions
    int96_unit: str

    def batches(self, group: _RowGroup) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a row group with all columns of the table, in the order of the schema."""
        for batch in group.batches(self.int96_unit):
            yield self.partitions.filled(batch, group.file.partition).select(self.schema.names)


def _of_row_groups(
    groups: Sequence[_RowGroup], blocks: Sequence[sampling.Block], layout: _Layout, progress: Progress
) -> Iterator[pa.RecordBatch]:
    start = 0
    for group in groups:
        parts = list(sampling.overlaps(blocks, start, group.rows))
        start += group.rows
        if parts:
            progress.at(f"{group.file.name}, row group {group.number}")
            rows = yield from _of_batches(layout.batches(group), parts, layout.schema)
            if rows < parts[-1].end:
                raise Refused(
                    f"has {rows:,} rows, but its metadata state {group.rows:,}",
                    "The file may be damaged or hostile. Repair it.",
                )


def _of_batches(
    batches: Iterator[pa.RecordBatch], parts: Sequence[sampling.Block], schema: pa.Schema
) -> Generator[pa.RecordBatch, None, int]:
    """Yield the rows of the parts, converted to the stored types. Return the number of rows read. Batches after the
    last part are not read."""
    start = 0
    for batch in batches:
        for part in sampling.overlaps(parts, start, batch.num_rows):
            yield from table_types.kept(batch.slice(part.start, part.rows), schema)
        start += batch.num_rows
        if start >= parts[-1].end:
            break
    return start


def _remarks(found: pa.Schema) -> list[str]:
    return [*table_types.name_remarks(found.names), *table_types.remarks(found), *_index_remarks(found)]


# --- Arrow's own ---------------------------------------------------------------------------------------------------


def read_arrow(source: TableFile) -> Reading:
    """Return the sample of an Arrow IPC stream or file, such as Feather. Raises Refused for invalid files."""
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
    return Found(input_rows, blocks, schema, _of_batches(batches, blocks, schema), _remarks(found))


def _file_batches(mapped: pa.MemoryMappedFile, options: pa.ipc.IpcReadOptions) -> Iterator[pa.RecordBatch]:
    mapped.seek(0)
    reader = pa.ipc.open_file(mapped, options=options)
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number)


def _stream_batches(mapped: pa.MemoryMappedFile, options: pa.ipc.IpcReadOptions) -> Iterator[pa.RecordBatch]:
    mapped.seek(0)
    yield from pa.ipc.open_stream(mapped, options=options)


# --- ORC -------------------------------------------------------------------------------------------------------------


def read_orc(source: TableFile) -> Reading:
    """Return the sample of an ORC file. Raises Refused for invalid files."""
    source.progress.at(source.path)
    orc = pyarrow.orc.ORCFile(source.stream)
    found = orc.schema
    schema = table_types.kept_schema(found)
    rows: list[int] = []
    for number in range(orc.nstripes):
        source.progress.at(f"{source.path}, stripe {number}")
        rows.append(_stripe(orc, number, [found.names[0]]).num_rows)
        yield sum(rows)
    blocks = chosen_blocks(sum(rows), source.rows)
    stripes = _stripes(lambda number: _stripe(orc, number), rows, blocks, schema, source)
    return Found(sum(rows), blocks, schema, stripes, _remarks(found))


def _stripe(orc: Any, number: int, columns: Sequence[str] | None = None) -> pa.RecordBatch:
    try:
        return orc.read_stripe(number, columns=columns)
    except pa.ArrowInvalid as error:
        if "out of range for nanosecond" not in str(error):
            raise
        raise Refused(
            "has timestamps before 1677 or after 2262, which pyarrow does not read from ORC",
            "Write the table to Parquet instead, with timestamps in microseconds.",
        ) from None


def _stripes(
    read_stripe: Callable[[int], pa.RecordBatch],
    rows: Sequence[int],
    blocks: Sequence[sampling.Block],
    schema: pa.Schema,
    source: TableFile,
) -> Iterator[pa.RecordBatch]:
    start = 0
    for number, count in enumerate(rows):
        parts = list(sampling.overlaps(blocks, start, count))
        start += count
        if parts:
            source.progress.at(f"{source.path}, stripe {number}")
            yield from _of_batches(iter([read_stripe(number)]), parts, schema)
