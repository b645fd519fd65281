"""Avro: blocks of records are counted, and only those are decoded that hold the sample.

The types come from the file's own schema. This module knows no other kind of file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import fastavro
import fastavro.read
import pyarrow as pa

from data_generator.imported.refusal import Refused
from data_generator.imported.tables import sampling, table_types
from data_generator.imported.tables.table_reading import Found, Reading, Source, chosen_blocks

_ROWS_AT_ONCE = 1 << 14

_TYPES: Mapping[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "int-date": pa.date32(),
    "int-time-millis": pa.time32("ms"),
    "long-time-micros": pa.time64("us"),
    "long-timestamp-millis": pa.timestamp("ms", "UTC"),
    "long-timestamp-micros": pa.timestamp("us", "UTC"),
    "long-local-timestamp-millis": pa.timestamp("ms"),
    "long-local-timestamp-micros": pa.timestamp("us"),
}
"""Avro's types, with the logical type behind a hyphen as fastavro has it (Avro 1.11), and Arrow's."""


def read(source: Source) -> Reading:
    """The sample of an Avro file of records. Raises Refused."""
    # Text that is called a UUID is kept as the text that it is.
    fastavro.read.LOGICAL_READERS.pop("string-uuid", None)
    source.progress.at(source.path)
    schema = _schema(fastavro.block_reader(source.stream).writer_schema)
    input_rows = 0
    for block in _blocks(source):
        input_rows += block.num_records
        source.progress.at(f"{source.path}, record {input_rows:,}")
        yield input_rows
    blocks = chosen_blocks(input_rows, source.rows)
    return Found(input_rows, blocks, table_types.kept_schema(schema), _batches(source, blocks, schema))


def _blocks(source: Source) -> Any:
    source.stream.seek(0)
    return fastavro.block_reader(source.stream)


def _batches(source: Source, blocks: Sequence[sampling.Block], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    kept = table_types.kept_schema(schema)
    start = 0
    for block in _blocks(source):
        parts = list(sampling.overlaps(blocks, start, block.num_records))
        source.progress.at(f"{source.path}, record {start:,}")
        start += block.num_records
        if parts:
            records = list(block)
            for part in parts:
                for first in range(part.start, part.end, _ROWS_AT_ONCE):
                    rows = records[first : min(first + _ROWS_AT_ONCE, part.end)]
                    yield from table_types.kept(pa.RecordBatch.from_pylist(rows, schema=schema), kept)


def _schema(described: Any) -> pa.Schema:
    """The Arrow schema of the records. Raises Refused for what is no record, and for a type that is not measured."""
    if not isinstance(described, dict) or described.get("type") != "record":
        raise Refused("holds no records", "name a file whose schema is a record, which is what a table is")
    table_types.check_names([field["name"] for field in described["fields"]])
    named: dict[str, Any] = {}
    _collect(described, named)
    fields = []
    for field in described["fields"]:
        kind = _type(field["type"], named, frozenset())
        if kind is None:
            raise Refused(
                f"column {field['name']!r} is {field['type']}, which is not measured",
                "leave the column out, or store it as another type",
            )
        fields.append(pa.field(field["name"], kind))
    return pa.schema(fields)


def _collect(described: Any, named: dict[str, Any]) -> None:
    """Every type with a name, for those that refer to it."""
    if isinstance(described, list):
        for part in described:
            _collect(part, named)
    elif isinstance(described, dict):
        if "name" in described and described.get("type") in ("record", "enum", "fixed"):
            named[described["name"]] = described
        for part in (described.get("items"), described.get("values"), *_field_types(described)):
            _collect(part, named)


def _field_types(described: Mapping[str, Any]) -> list[Any]:
    return [field["type"] for field in described.get("fields", ())]


def _type(described: Any, named: Mapping[str, Any], within: frozenset[str]) -> pa.DataType | None:
    """The Arrow type; None where there is none: unions of several, and records within themselves."""
    if isinstance(described, list):
        real = [part for part in described if part != "null"]
        return _type(real[0], named, within) if len(real) == 1 else None if real else pa.null()
    if isinstance(described, str):
        if described not in named:
            return _TYPES.get(described)
        return _type(named[described], named, within) if described not in within else None
    kind, logical = described["type"], described.get("logicalType")
    if logical == "decimal" and described["precision"] <= 38:
        return pa.decimal128(described["precision"], described.get("scale", 0))
    if kind == "record":
        return _record(described, named, within | {described["name"]})
    if kind == "array":
        item = _type(described["items"], named, within)
        return pa.list_(item) if item is not None else None
    if kind == "map":
        item = _type(described["values"], named, within)
        return pa.map_(pa.string(), item) if item is not None else None
    if not isinstance(kind, str):
        return _type(kind, named, within)
    return _TYPES.get(f"{kind}-{logical}", _TYPES.get(kind))


def _record(described: Mapping[str, Any], named: Mapping[str, Any], within: frozenset[str]) -> pa.DataType | None:
    fields = [(field["name"], _type(field["type"], named, within)) for field in described["fields"]]
    return pa.struct(fields) if all(kind is not None for _, kind in fields) else None
