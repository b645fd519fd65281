"""A table that every kind of file can hold, files of it, and their reading without another process."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq

from data_generator.imported.import_process import END, HEADER, REFUSAL, Progress, Reader, Task, answer
from data_generator.imported.read_options import AS_FOUND, ReadOptions
from data_generator.imported.tables import table_import, table_input
from data_generator.imported.tables.categories import Decoder
from data_generator.imported.tables.own_table import MOST_ROWS
from tests.data_generator.imported.refused import two_lines


def numbered(rows: int) -> pa.Table:
    """Return a table with the row number as `place`, which shows where a sample comes from."""
    return pa.table(
        {
            "place": pa.array(range(rows), pa.int64()),
            "share": pa.array([number / 4 for number in range(rows)], pa.float64()),
            "word": pa.array([f"word {number % 7}" for number in range(rows)]),
        }
    )


def write(table: pa.Table, path: Path) -> Path:
    """Write the table as the name of the file says."""
    suffix = path.name.partition(".")[2]
    _WRITERS[suffix](table, path)
    return path


def _csv(table: pa.Table, path: Path, delimiter: str = ",") -> None:
    pyarrow.csv.write_csv(table, path, pyarrow.csv.WriteOptions(delimiter=delimiter))


def _packed(table: pa.Table, path: Path) -> None:
    written = io.BytesIO()
    pyarrow.csv.write_csv(table, written)
    path.write_bytes(gzip.compress(written.getvalue()))


def _json(table: pa.Table, path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


def _parquet(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, row_group_size=max(1, table.num_rows // 5))


def _arrow_file(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=max(1, table.num_rows // 5))


def _arrow_stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=max(1, table.num_rows // 5))


def _excel(table: pa.Table, path: Path) -> None:
    table.to_pandas().to_excel(path, index=False)


def _avro(table: pa.Table, path: Path) -> None:
    import fastavro

    types = {"int64": "long", "double": "double", "string": "string"}
    fields = [{"name": column.name, "type": ["null", types[str(column.type)]]} for column in table.schema]
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "row", "fields": fields}, table.to_pylist(), sync_interval=500)


_WRITERS: dict[str, Any] = {
    "csv": _csv,
    "csv.gz": _packed,
    "tsv": lambda table, path: _csv(table, path, "\t"),
    "jsonl": _json,
    "json": _json,
    "parquet": _parquet,
    "feather": lambda table, path: pyarrow.feather.write_feather(table, path, chunksize=max(1, table.num_rows // 5)),
    "arrow": _arrow_file,
    "arrows": _arrow_stream,
    "orc": lambda table, path: pyarrow.orc.write_table(table, path, stripe_size=1 << 16),
    "xlsx": _excel,
    "avro": _avro,
}
KINDS = tuple(_WRITERS)


@dataclass(frozen=True)
class Taken:
    """The result of a reading: the facts, and the sample."""

    facts: dict[str, Any]
    table: pa.Table

    @property
    def remarks(self) -> list[str]:
        said: list[str] = self.facts["remarks"]
        return said

    @property
    def understood(self) -> dict[str, str]:
        said: dict[str, str] = self.facts["understood"]
        return said


def take(path: Path, rows: int | None = MOST_ROWS, **options: Any) -> Taken:
    """Return the sample of the file, taken in this process; `options` are those of ReadOptions."""
    said = list(frames(path, rows, ReadOptions(**options)))
    refusals = [json.loads(content) for kind, content in said if kind == REFUSAL]
    assert refusals == []
    assert said[-1][0] == END
    content = {kind: content for kind, content in said if kind in (table_import.FACTS, table_import.SCHEMA)}
    schema = pa.ipc.read_schema(pa.py_buffer(content[table_import.SCHEMA]))
    decoder = Decoder(schema)
    batches = []
    for kind, content_of in said:
        if kind == table_import.CATEGORIES:
            decoder.learn(content_of)
        elif kind == table_import.BATCH:
            codes = pa.ipc.read_record_batch(pa.py_buffer(content_of), decoder.codes)
            batches.append(decoder.decoded(codes))
    return Taken(json.loads(content[table_import.FACTS]), pa.Table.from_batches(batches, schema))


def refusal(path: Path, rows: int | None = MOST_ROWS, **options: Any) -> str:
    """Return the text with which the file is refused."""
    return two_lines(frames(path, rows, ReadOptions(**options)))


def frames(path: Path, rows: int | None, options: ReadOptions = AS_FOUND) -> Iterator[tuple[bytes, bytes]]:
    """Yield the letters and contents with which a reading answers."""
    found = table_input.find(path)
    task = {**asdict(found), "path": str(found.path), "rows": rows, "options": msgspec.to_builtins(options)}
    return answers(table_import.READER, task)


def answers(reader: Reader, task: Task) -> Iterator[tuple[bytes, bytes]]:
    """Yield the letters and contents with which a reader's process would answer."""
    page = os.memfd_create("progress")
    try:
        os.ftruncate(page, 4096)
        out = io.BytesIO()
        answer(out, reader, task, Progress(page), 1 << 30)
    finally:
        os.close(page)
    content = out.getvalue()
    while content:
        kind, size_bytes = HEADER.unpack_from(content)
        yield kind, content[HEADER.size : HEADER.size + size_bytes]
        content = content[HEADER.size + size_bytes :]
