"""Read Avro files. All blocks of records are counted, but a block is only decoded if it has rows of the sample.

Types come from the file's schema. Dates and timestamps are decoded as the integers that Avro stores, and Arrow converts
these integers. Python's dates would end with the year 9999, and Python's timestamps have no nanoseconds.
"""

from __future__ import annotations

import decimal
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import fastavro
import fastavro.read
import pyarrow as pa

from data_generator.imported.refusal import Refused, printable
from data_generator.imported.tables import sampling, table_types
from data_generator.imported.tables.table_reading import Found, Reading, TableFile, chosen_blocks

_ROWS_AT_ONCE = 1 << 14

_PLAIN: Mapping[str, pa.DataType] = {
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
}
"""Name of a plain Avro type -> Arrow type."""

_LOGICAL: Mapping[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-nanos"): pa.timestamp("ns", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
    ("string", "uuid"): pa.string(),
}
"""(Avro type, logical type of Avro 1.12) -> Arrow type. Decimals are handled separately."""

_PAIRS = "format_bench_pairs"
"""Logical type that only this module uses. It marks the arrays of pairs that replace maps in the schema."""

_CODECS = "deflate, snappy, zstandard, bzip2 or xz"


@dataclass(frozen=True)
class _Type:
    """The Arrow type of a column when it is decoded, and the type in which it is stored.

    `special` is the name of a logical type that is ignored, or ''.
    """

    decoded: pa.DataType
    kept: pa.DataType
    special: str = ""


def read(source: TableFile) -> Reading:
    """Return the sample of an Avro file. Raises Refused if the file is invalid or its schema is not a record."""
    source.progress.at(source.path)
    described = fastavro.block_reader(source.stream).writer_schema
    columns = _columns(described)
    schema = table_types.kept_schema(pa.schema([(name, kind.kept) for name, kind in columns.items()]))
    input_rows = 0
    for block in _blocks(source):
        input_rows += block.num_records
        source.progress.at(f"{source.path}, record {input_rows:,}")
        yield input_rows
    blocks = chosen_blocks(input_rows, source.rows)
    special = {name: kind.special for name, kind in columns.items() if kind.special}
    remarks = [*table_types.name_remarks(schema.names), *table_types.remarks(schema, special)]
    decoder = fastavro.parse_schema(_with_pairs(described, itertools.count()))
    return Found(input_rows, blocks, schema, _batches(source, blocks, decoder, columns, schema), remarks)


def _blocks(source: TableFile) -> Iterator[Any]:
    source.stream.seek(0)
    try:
        yield from fastavro.block_reader(source.stream)
    except ValueError as error:
        if "codec is supported but" not in str(error):
            raise
        raise Refused(
            f"is compressed with {str(error).split()[0]}, which is not supported",
            f"Compress it with {_CODECS} instead.",
        ) from None


def _batches(
    source: TableFile, blocks: Sequence[sampling.Block], decoder: Any, columns: Mapping[str, _Type], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    decoded = pa.schema([(name, kind.decoded) for name, kind in columns.items()])
    start = 0
    for block in _blocks(source):
        parts = list(sampling.overlaps(blocks, start, block.num_records))
        source.progress.at(f"{source.path}, record {start:,}")
        start += block.num_records
        if parts:
            with _plain_values():
                records = [fastavro.schemaless_reader(block.bytes_, decoder, None) for _ in range(block.num_records)]
            for part in parts:
                for first in range(part.start, part.end, _ROWS_AT_ONCE):
                    rows = records[first : min(first + _ROWS_AT_ONCE, part.end)]
                    yield from table_types.kept(pa.RecordBatch.from_pylist(rows, schema=decoded), schema)


@contextmanager
def _plain_values() -> Iterator[None]:
    """Make fastavro return dates and timestamps as the stored integers, within the `with` block. Decimals are exact."""
    readers = fastavro.read.LOGICAL_READERS
    before = dict(readers)
    readers.clear()
    readers.update({"bytes-decimal": _decimal, "fixed-decimal": _decimal, f"array-{_PAIRS}": _checked_pairs})
    try:
        yield
    finally:
        readers.clear()
        readers.update(before)


def _decimal(content: Any, described: dict[Any, Any] | None, _: object = None) -> decimal.Decimal:
    unscaled = int.from_bytes(content, "big", signed=True)
    return decimal.Decimal(f"{unscaled}E-{(described or {}).get('scale', 0)}")


def _with_pairs(described: Any, number: Iterator[int]) -> Any:
    """Return the schema with each map replaced by an array of pairs (key, value).

    Both have the same bytes in a file (Avro 1.12, "Maps"). fastavro would turn a map into a dictionary, and if a key
    occurs twice, only the last value would be kept.
    """
    if isinstance(described, list):
        return [_with_pairs(part, number) for part in described]
    if not isinstance(described, dict):
        return described
    if described.get("type") == "map":
        fields = [{"name": "key", "type": "string"}, {"name": "value", "type": described["values"]}]
        pair = {"type": "record", "name": f"{_PAIRS}_{next(number)}", "fields": fields}
        described = {"type": "array", "items": pair, "logicalType": _PAIRS}
    inner = {name: _with_pairs(described[name], number) for name in ("items", "fields", "type") if name in described}
    # The default value of a map is not valid for an array. It is not needed, because the file is read with its schema.
    return {name: value for name, value in described.items() if name != "default"} | inner


def _checked_pairs(pairs: list[dict[str, Any]], *_: object) -> list[dict[str, Any]]:
    """Return the pairs of a map. Raises Refused for a repeated key."""
    keys = [pair["key"] for pair in pairs]
    if len(set(keys)) < len(keys):
        key = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise Refused(f"has a map with the key {printable(key)!r} twice", "Keep only one value for this key.")
    return pairs


def _columns(described: Any) -> dict[str, _Type]:
    """Return field name -> Arrow types, for each field of the records.

    Raises Refused if the schema is not a record, or if a field has an unsupported type.
    """
    if not isinstance(described, dict) or described.get("type") != "record":
        raise Refused("has no columns, because its schema is not a record", "Name a file whose schema is a record.")
    table_types.check_names([field["name"] for field in described["fields"]])
    named: dict[str, Any] = {}
    _collect(described, named)
    columns = {}
    for field in described["fields"]:
        kind = _type(field["type"], named, frozenset())
        if kind is None:
            raise Refused(
                f"column {field['name']!r} has the type {field['type']}, which is not supported",
                "Leave the column out, or store it as another type.",
            )
        columns[field["name"]] = kind
    return columns


def _collect(described: Any, named: dict[str, Any]) -> None:
    """Add all named types of a schema to `named`, because other types may refer to these names."""
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


def _type(described: Any, named: Mapping[str, Any], within: frozenset[str]) -> _Type | None:
    """Return the Arrow types of an Avro type; None if the type is not supported.

    Unions of several types, and records that contain themselves, are not supported.
    """
    if isinstance(described, list):
        real = [part for part in described if part != "null"]
        return _type(real[0], named, within) if len(real) == 1 else None if real else _Type(pa.null(), pa.null())
    if isinstance(described, str):
        if described in named:
            return _type(named[described], named, within) if described not in within else None
        plain = _PLAIN.get(described)
        return _Type(plain, plain) if plain is not None else None
    kind, logical = described["type"], described.get("logicalType", "")
    if kind == "record":
        return _record(described, named, within | {described["name"]})
    if kind in ("array", "map"):
        item = _type(described["items" if kind == "array" else "values"], named, within)
        return _Type(_holder(kind, item.decoded), _holder(kind, item.kept), item.special) if item is not None else None
    if not isinstance(kind, str) or kind not in _PLAIN:
        return _type(kind, named, within)
    if logical == "decimal" and kind in ("bytes", "fixed"):
        digits, scale = described.get("precision", 0), described.get("scale", 0)
        if not 0 < digits <= 76:
            return None
        # Decimals with more digits are refused later, together with other columns of unsupported types.
        wide = pa.decimal128 if digits <= table_types.DECIMAL_DIGITS else pa.decimal256
        return _Type(wide(digits, scale), wide(digits, scale))
    kept = _LOGICAL.get((kind, logical))
    return _Type(_PLAIN[kind], _PLAIN[kind], str(logical)) if kept is None else _Type(_PLAIN[kind], kept)


def _holder(kind: str, item: pa.DataType) -> pa.DataType:
    return pa.list_(item) if kind == "array" else pa.map_(pa.string(), item)


def _record(described: Mapping[str, Any], named: Mapping[str, Any], within: frozenset[str]) -> _Type | None:
    types = [(field["name"], _type(field["type"], named, within)) for field in described["fields"]]
    fields = [(name, kind) for name, kind in types if kind is not None]
    if len(fields) < len(types):
        return None
    return _Type(
        pa.struct([(name, kind.decoded) for name, kind in fields]),
        pa.struct([(name, kind.kept) for name, kind in fields]),
        next((kind.special for _, kind in fields if kind.special), ""),
    )
