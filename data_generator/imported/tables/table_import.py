"""The process that opens the user's table.

    python -m data_generator.imported.tables.table_import PARENT MEMORY_BYTES PROGRESS

It takes a sample, or all rows if the task's number of rows is None. It answers as described in
data_generator.imported.import_process, with these additional letters:

p  number of rows seen so far, as JSON
n  facts: data_generator.imported.tables.table_reading.TableFacts, as JSON
s  the schema, as an Arrow IPC message
c  new categories of a column, as described in data_generator.imported.tables.categories
b  a batch of the sample, as an Arrow IPC message, with codes instead of categories

This module does not depend on caches or data sets.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import IO, Any

import msgspec

from data_generator.imported.byte_stream import check_packing, packing_of
from data_generator.imported.import_process import Progress, Reader, Task, opened, serve
from data_generator.imported.read_options import ReadOptions
from data_generator.imported.refusal import Refused
from data_generator.imported.tables.table_input import ARROW, AVRO, CSV, EXCEL, JSON, ORC, PACKED_KINDS, PARQUET

ROWS, FACTS, SCHEMA, CATEGORIES, BATCH = b"p", b"n", b"s", b"c", b"b"

_MAGIC = (
    (b"PAR1", PARQUET),
    (b"ARROW1", ARROW),
    (b"\xff\xff\xff\xff", ARROW),
    (b"ORC", ORC),
    (b"Obj\x01", AVRO),
    (b"PK\x03\x04", EXCEL),
    (b"\xd0\xcf\x11\xe0", EXCEL),
)
"""(First bytes, kind) for kinds of files that always begin with the same bytes. Text files have no such bytes."""
_FEATHER_1 = b"FEA1"


_READERS: Mapping[str, str] = {
    CSV: "csv_reader:read",
    JSON: "json_reader:read",
    ARROW: "columnar_reader:read_arrow",
    ORC: "columnar_reader:read_orc",
    EXCEL: "excel_reader:read",
    AVRO: "avro_reader:read",
}
"""Kind of file -> 'module:function' of the reader for it. The module is imported when it is needed."""


def frames(task: Task, progress: Progress) -> Iterator[tuple[bytes, Any]]:
    """Yield (letter, content) for each message of the answer to a task, except the final message.

    Raises Refused if the table is invalid, has no rows, or cannot be stored.
    """
    if task["kind"] == PARQUET:
        yield from _of_parquet(task, progress)
        return
    (file,) = task["files"]
    progress.at(task["path"])
    from data_generator.imported.tables.table_reading import TYPE_ROWS, TableFile

    with opened(file["path"]) as stream:
        _check_beginning(stream, task)
        options = msgspec.convert(task["options"], ReadOptions)
        whole = task["rows"] is None and task["kind"] in PACKED_KINDS
        rows = TYPE_ROWS if whole else _rows(task)
        source = TableFile(task["path"], stream, file["size_bytes"], rows, progress, options, whole)
        module, _, function = _READERS[task["kind"]].partition(":")
        read = getattr(importlib.import_module(f"data_generator.imported.tables.{module}"), function)
        yield from _answered(read(source))


def _of_parquet(task: Task, progress: Progress) -> Iterator[tuple[bytes, Any]]:
    from data_generator.imported.tables import columnar_reader, parquet_folder

    files = []
    for file in task["files"]:
        is_file_itself = file["path"] == task["path"]
        name = task["path"] if is_file_itself else os.path.join(task["path"], file["name"])
        progress.at(name)
        with opened(file["path"]) as stream:
            _check_beginning(stream, task)
        files.append(columnar_reader.ParquetFile(name, file["path"], parquet_folder.partition_of(file["name"])))
    yield from _answered(columnar_reader.read_parquet(files, _rows(task), progress))


def _rows(task: Task) -> int:
    """Return the maximum number of rows of the answer; sys.maxsize if the task asks for all rows (None)."""
    return sys.maxsize if task["rows"] is None else int(task["rows"])


def _check_beginning(stream: IO[bytes], task: Task) -> None:
    """Raise Refused if the first bytes of a file do not match the kind that its suffix indicates."""
    beginning = stream.read(16)
    stream.seek(0)
    kind = task["kind"]
    found = next((known for magic, known in _MAGIC if beginning.startswith(magic)), None)
    if beginning.startswith(_FEATHER_1):
        raise Refused(
            "is Feather version 1, which is not supported", "Convert it with pandas: read_feather(FILE).to_feather(NEW)"
        )
    if kind in PACKED_KINDS:
        check_packing(task["path"], beginning)
        found = None if packing_of(task["path"]) else found
    if found == kind or (found is None and kind in PACKED_KINDS):
        return
    if found is None:
        raise Refused(
            f"is not in the format {kind}, because it begins with {beginning[:6]!r}",
            "Repair it, or correct its suffix.",
        )
    raise Refused(f"is {found} by its content, but {kind} by its suffix", "Correct the suffix.")


def _answered(reading: Any) -> Iterator[tuple[bytes, Any]]:
    """Yield messages with the results of a reader: row counts while it reads, then facts, schema, and sample."""
    while True:
        try:
            rows = next(reading)
        except StopIteration as done:
            found = done.value
            break
        yield ROWS, json.dumps(rows).encode()
    from data_generator.imported.tables.categories import Coder

    yield FACTS, msgspec.json.encode(found.facts())
    yield SCHEMA, found.schema.serialize()
    coder = Coder(found.schema)
    for batch in found.batches:
        categories, codes = coder.add(batch)
        yield from ((CATEGORIES, message) for message in categories)
        yield BATCH, codes.serialize()


READER = Reader(
    frames,
    install={"fastavro": ("fastavro", "avro"), "python_calamine": ("python-calamine", "excel")},
    smaller="Request a smaller sample by `rows`, or name a part of the data.",
)

if __name__ == "__main__":
    serve(READER)
