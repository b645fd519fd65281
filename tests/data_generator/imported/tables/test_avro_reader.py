"""Avro: types from the file's schema, and refusals that name the column."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.data_generator.imported.tables.table_files import refusal, take

fastavro = pytest.importorskip("fastavro")


def avro(path: Path, kind: Any, *values: object) -> Path:
    schema = {"type": "record", "name": "row", "fields": [{"name": "a", "type": kind}]}
    with (path / "table.avro").open("wb") as file:
        fastavro.writer(file, schema, [{"a": value} for value in values])
    return path / "table.avro"


UTC = datetime.timezone.utc  # noqa: UP017
UUID = "5c3fdb2e-32a5-4b63-8a36-2f3b7b0d7c11"
TYPES = [
    ("int", 1, pa.int32()),
    ("long", 1, pa.int64()),
    ("float", 0.5, pa.float32()),
    ("bytes", b"x", pa.binary()),
    ({"type": "enum", "name": "e", "symbols": ["X"]}, "X", pa.string()),
    ({"type": "fixed", "name": "f", "size": 2}, b"xy", pa.binary()),
    ({"type": "array", "items": "long"}, [1], pa.list_(pa.int64())),
    ({"type": "int", "logicalType": "date"}, datetime.date(2024, 1, 2), pa.date32()),
    (
        {"type": "long", "logicalType": "timestamp-micros"},
        datetime.datetime(2024, 1, 2, tzinfo=UTC),
        pa.timestamp("us", "UTC"),
    ),
    (
        {"type": "long", "logicalType": "local-timestamp-millis"},
        datetime.datetime(2024, 1, 2),
        pa.timestamp("ms"),
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
        decimal.Decimal("1.50"),
        pa.decimal128(5, 2),
    ),
    ({"type": "string", "logicalType": "uuid"}, UUID, pa.string()),
    (
        {"type": "record", "name": "r", "fields": [{"name": "x", "type": ["null", "long"]}]},
        {"x": 1},
        pa.struct([("x", pa.int64())]),
    ),
]


@pytest.mark.parametrize(("kind", "value", "arrow"), TYPES, ids=[str(arrow) for _, _, arrow in TYPES])
def test_types_are_those_of_the_schema(kind: Any, value: object, arrow: pa.DataType, tmp_path: Path) -> None:
    made = take(avro(tmp_path, ["null", kind], value, None)).table["a"]
    assert made.type == arrow
    assert made.to_pylist() == [value, None]


def test_maps_are_kept(tmp_path: Path) -> None:
    made = take(avro(tmp_path, {"type": "map", "values": "long"}, {"x": 1})).table["a"]
    assert (made.type, made.to_pylist()) == (pa.map_(pa.string(), pa.int64()), [[("x", 1)]])


def test_a_union_of_several_types_is_refused_by_column(tmp_path: Path) -> None:
    assert "column 'a' is ['long', 'string'], which is not measured" in refusal(avro(tmp_path, ["long", "string"], 1))


def test_a_record_within_itself_is_refused_by_column(tmp_path: Path) -> None:
    kind = {"type": "record", "name": "r", "fields": [{"name": "next", "type": ["null", "r"]}]}
    assert "column 'a' is" in refusal(avro(tmp_path, kind, {"next": None}))


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "table.avro").open("wb") as file:
        fastavro.writer(file, "long", [1, 2])
    assert "holds no records" in refusal(tmp_path / "table.avro")
