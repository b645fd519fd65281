"""Avro: types from the file's schema, and refusals that name the column."""

from __future__ import annotations

import datetime
import decimal
import importlib.util
import json
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


def by_hand(path: Path, kind: Any, *values: bytes, codec: str = "null", **more: Any) -> Path:
    """Write a file of encoded values, with a schema that fastavro would not write."""
    schema = {"type": "record", "name": "row", "fields": [{"name": "a", "type": kind}], **more}
    meta = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
    header = b"".join(sized(key.encode()) + sized(value) for key, value in meta.items())
    block = number(len(values)) + sized(b"".join(values))
    (path / "table.avro").write_bytes(b"Obj\1" + number(len(meta)) + header + b"\0" + bytes(16) + block + bytes(16))
    return path / "table.avro"


def number(value: int) -> bytes:
    """Encode a whole number as Avro does: zigzag, 7 bits per byte."""
    left = (value << 1) ^ (value >> 63)
    out = bytearray()
    while left > 127:
        out.append(left & 127 | 128)
        left >>= 7
    return bytes([*out, left])


def sized(content: bytes) -> bytes:
    """Encode bytes and text as Avro does."""
    return number(len(content)) + content


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
    ({"type": "long", "logicalType": "local-timestamp-millis"}, datetime.datetime(2024, 1, 2), pa.timestamp("ms")),
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


LONGS = [
    ("timestamp-millis", pa.timestamp("ms", "UTC"), 253_402_300_800_000),
    ("timestamp-micros", pa.timestamp("us", "UTC"), -62_135_596_800_000_001),
    ("timestamp-nanos", pa.timestamp("ns", "UTC"), 1_234_567_890_123_456_789),
    ("local-timestamp-millis", pa.timestamp("ms"), -1),
    ("local-timestamp-micros", pa.timestamp("us"), (1 << 63) - 1),
    ("local-timestamp-nanos", pa.timestamp("ns"), -(1 << 63) + 1),
    ("time-micros", pa.time64("us"), 86_399_999_999),
]


@pytest.mark.parametrize(("logical", "arrow", "value"), LONGS, ids=[logical for logical, _, _ in LONGS])
def test_points_in_time_are_exact_in_every_year(logical: str, arrow: pa.DataType, value: int, tmp_path: Path) -> None:
    kind = {"type": "long", "logicalType": logical}
    taken = take(by_hand(tmp_path, kind, number(value), number(0)))
    assert (taken.table["a"].type, taken.remarks) == (arrow, [])
    assert taken.table["a"].cast(pa.int64()).to_pylist() == [value, 0]


def test_logical_types_are_followed_inside_of_columns(tmp_path: Path) -> None:
    inside = {"type": "long", "logicalType": "timestamp-nanos"}
    for kind, value, arrow in (
        ({"type": "array", "items": ["null", inside]}, number(1) + number(1) + number(5) + b"\0", pa.list_),
        ({"type": "map", "values": inside}, number(1) + sized(b"k") + number(5) + b"\0", None),
        ({"type": "record", "name": "r", "fields": [{"name": "x", "type": inside}]}, number(5), None),
    ):
        made = take(by_hand(tmp_path, kind, value)).table["a"]
        assert "timestamp[ns, tz=UTC]" in str(made.type)
        assert "1970-01-01 00:00:00.000000005" in str(made.to_pylist()), arrow


SPECIAL = [
    ({"type": "fixed", "name": "f", "size": 12, "logicalType": "duration"}, bytes(12), bytes(12), "duration as binary"),
    ({"type": "fixed", "name": "f", "size": 16, "logicalType": "uuid"}, bytes(16), bytes(16), "uuid as binary"),
    ({"type": "bytes", "logicalType": "big-decimal"}, sized(b"\2x\0"), b"\2x\0", "big-decimal as binary"),
    ({"type": "long", "logicalType": "acme-money"}, number(5), 5, "acme-money as int64"),
    ({"type": "long", "logicalType": "date"}, number(5), 5, "date as int64"),
    ({"type": "string", "logicalType": "decimal"}, sized(b"1.5"), "1.5", "decimal as string"),
    (["null", {"type": "string", "logicalType": "json"}], number(1) + sized(b"{}"), "{}", "json as string"),
    ({"type": "array", "items": {"type": "int", "logicalType": "x"}}, number(1) + b"\2\0", [1], "x as list"),
]


@pytest.mark.parametrize(("kind", "value", "made", "said"), SPECIAL, ids=[said for *_, said in SPECIAL])
def test_logical_types_that_are_not_followed_are_named(
    kind: Any, value: bytes, made: object, said: str, tmp_path: Path
) -> None:
    taken = take(by_hand(tmp_path, kind, value))
    assert taken.table["a"].to_pylist() == [made]
    (remark,) = taken.remarks
    assert remark.startswith(f"columns of special types are measured as their storage types: 'a' ({said}")


DECIMALS = [(38, 0, -(10**38) + 1), (38, 37, 10**38 - 1), (5, 5, 1), (20, 2, -12345)]


@pytest.mark.parametrize(("digits", "scale", "unscaled"), DECIMALS)
@pytest.mark.parametrize("fixed", [True, False])
def test_decimals_are_exact(digits: int, scale: int, unscaled: int, fixed: bool, tmp_path: Path) -> None:
    stored = {"type": "fixed", "name": "f", "size": 16} if fixed else {"type": "bytes"}
    kind = {**stored, "logicalType": "decimal", "precision": digits, "scale": scale}
    content = unscaled.to_bytes(16, "big", signed=True)
    taken = take(by_hand(tmp_path, kind, content if fixed else sized(content)))
    assert (taken.table["a"].type, taken.remarks) == (pa.decimal128(digits, scale), [])
    assert taken.table["a"].to_pylist() == [decimal.Decimal(f"{unscaled}E-{scale}")]


def test_decimals_that_are_too_wide_are_refused(tmp_path: Path) -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 2}
    assert "column 'a' has the type decimal256(39, 2)" in refusal(by_hand(tmp_path, kind, sized(b"1")))
    assert "'precision': 80" in refusal(by_hand(tmp_path, {**kind, "precision": 80}, sized(b"1")))
    assert "which is not supported" in refusal(by_hand(tmp_path, {**kind, "precision": 0}, sized(b"1")))
    assert "scale must be less than" in refusal(by_hand(tmp_path, {**kind, "precision": 2, "scale": 3}, sized(b"1")))
    # More digits than the schema says: fastavro rounds them.
    assert "a.avro" in refusal(by_hand(tmp_path, {**kind, "precision": 2}, sized(b"\x7f\xff"))).replace("table", "a")


def test_names_with_namespaces_are_found(tmp_path: Path) -> None:
    part = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "x", "type": {"type": "enum", "name": "o.e", "symbols": ["X"]}}],
    }
    fields = [{"name": "a", "type": part}, {"name": "b", "type": ["null", "r"]}, {"name": "c", "type": "o.e"}]
    path = by_hand(tmp_path, "int", number(0) + number(1) + number(0) + number(0), namespace="ns", fields=fields)
    assert take(path).table.to_pylist() == [{"a": {"x": "X"}, "b": {"x": "X"}, "c": "X"}]


def test_names_that_are_easily_confused_are_reported(tmp_path: Path) -> None:
    fields = [{"name": name, "type": "int"} for name in ("id", "ID")]
    assert "'id' and 'ID'" in take(by_hand(tmp_path, "int", number(1) + number(2), fields=fields)).remarks[0]


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"])
def test_codecs_are_read(codec: str, tmp_path: Path) -> None:
    schema = {"type": "record", "name": "row", "fields": [{"name": "a", "type": "string"}]}
    with (tmp_path / "table.avro").open("wb") as file:
        fastavro.writer(file, schema, [{"a": "x" * 100}] * 50, codec=codec)
    assert take(tmp_path / "table.avro").table["a"].to_pylist() == ["x" * 100] * 50


def test_other_codecs_are_named(tmp_path: Path) -> None:
    assert "Unrecognized codec: none" in refusal(by_hand(tmp_path, "int", number(1), codec="none"))
    if importlib.util.find_spec("lz4") is None:
        said = refusal(by_hand(tmp_path, "int", number(1), codec="lz4"))
        assert "is compressed with lz4, which is not supported\n  Compress it with deflate" in said


def test_fastavro_is_left_as_it_was(tmp_path: Path) -> None:
    before = dict(fastavro.read.LOGICAL_READERS)
    assert "int-date" in before
    take(by_hand(tmp_path, {"type": "int", "logicalType": "date"}, number(1)))
    assert before == fastavro.read.LOGICAL_READERS


def test_maps_are_kept(tmp_path: Path) -> None:
    made = take(avro(tmp_path, {"type": "map", "values": "long"}, {"x": 1})).table["a"]
    assert (made.type, made.to_pylist()) == (pa.map_(pa.string(), pa.int64()), [[("x", 1)]])


def test_maps_hold_named_types_and_maps_and_have_defaults(tmp_path: Path) -> None:
    point = {"type": "record", "name": "p", "namespace": "n", "fields": [{"name": "x", "type": "int"}]}
    fields = [
        {"name": "a", "type": {"type": "map", "values": point}, "default": {}},
        {"name": "b", "type": ["null", {"type": "map", "values": {"type": "map", "values": "n.p"}}], "default": None},
    ]
    schema = {"type": "record", "name": "row", "namespace": "m", "fields": fields}
    rows = [{"a": {"k": {"x": 1}}, "b": {"o": {"i": {"x": 2}}}}, {"a": {}, "b": None}]
    with (tmp_path / "table.avro").open("wb") as file:
        fastavro.writer(file, schema, rows)
    taken = take(tmp_path / "table.avro").table
    assert taken["a"].to_pylist() == [[("k", {"x": 1})], []]
    assert taken["b"].to_pylist() == [[("o", [("i", {"x": 2})])], None]


@pytest.mark.parametrize("values", ["long", {"type": "map", "values": "long"}], ids=["plain", "nested"])
def test_a_map_that_has_a_key_twice_is_refused(values: Any, tmp_path: Path) -> None:
    value = number(5) if values == "long" else number(1) + sized(b"in") + number(5) + b"\0"
    twice = number(2) + sized(b"k") + value + sized(b"k") + value + b"\0"
    said = refusal(by_hand(tmp_path, {"type": "map", "values": values}, twice))
    assert "has a map with the key 'k' twice" in said
    # In Avro a map may come in several blocks.
    blocks = number(1) + sized(b"k") + value + number(1) + sized(b"k") + value + b"\0"
    assert "twice" in refusal(by_hand(tmp_path, {"type": "map", "values": values}, blocks))


def test_a_union_of_several_types_is_refused_by_column(tmp_path: Path) -> None:
    assert "column 'a' has the type ['long', 'string'], which is not supported" in refusal(
        avro(tmp_path, ["long", "string"], 1)
    )


def test_a_record_within_itself_is_refused_by_column(tmp_path: Path) -> None:
    kind = {"type": "record", "name": "r", "fields": [{"name": "next", "type": ["null", "r"]}]}
    assert "column 'a' has the type" in refusal(avro(tmp_path, kind, {"next": None}))


def test_data_other_than_records_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "table.avro").open("wb") as file:
        fastavro.writer(file, "long", [1, 2])
    assert "its schema is not a record" in refusal(tmp_path / "table.avro")
