"""Facts on Parquet columns that pyarrow drops: INT96 beyond nanoseconds, ENUM, annotated bytes."""

from __future__ import annotations

import datetime
from datetime import datetime as at
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data_generator.imported.tables.table_files import refusal, take

SPECIAL = "columns of special types are measured as their storage types: "


def int96(path: Path, *arrays: pa.Array, **options: Any) -> Path:
    table = pa.table({f"c{number}": array for number, array in enumerate(arrays)})
    pq.write_table(table, path / "a.parquet", use_deprecated_int96_timestamps=True, **options)
    schema = pq.ParquetFile(path / "a.parquet").schema
    assert "INT96" in [schema.column(place).physical_type for place in range(len(schema))]
    return path / "a.parquet"


FAR = [
    [at(9999, 12, 31, 23, 59, 59, 999_999), None],
    [at(1, 1, 1)],
    [at(1677, 9, 21), at(2024, 1, 2, 3, 4, 5, 678_901)],
    [at(2262, 4, 12)],
    [at(1900, 1, 1), at(3000, 1, 1)],
]


@pytest.mark.parametrize("values", FAR, ids=lambda values: str(values[0]))
def test_int96_beyond_nanoseconds_is_kept_in_microseconds(values: list[Any], tmp_path: Path) -> None:
    """pyarrow's own reading wraps around: 1816-03-29 for the end of 9999."""
    made = take(int96(tmp_path, pa.array(values, pa.timestamp("us")), pa.array([1] * len(values)))).table["c0"]
    assert (made.type, made.to_pylist()) == (pa.timestamp("us"), values)


def test_int96_within_nanoseconds_keeps_them(tmp_path: Path) -> None:
    ends = [-(1 << 63) + 1, (1 << 63) - 1, 1_234_567_890_123_456_789, -1, 0]
    made = take(int96(tmp_path, pa.array(ends, pa.timestamp("ns")))).table["c0"]
    assert (made.type, made.cast(pa.int64()).to_pylist()) == (pa.timestamp("ns"), ends)


def test_int96_that_no_unit_holds_is_refused(tmp_path: Path) -> None:
    path = int96(tmp_path, pa.array([at(9999, 1, 1)], pa.timestamp("us")), pa.array([1], pa.timestamp("ns")))
    assert "column 'c1' is INT96 with fractions of a microsecond, and the table also has INT96 values" in refusal(path)
    path = int96(tmp_path, pa.array([1 << 58], pa.timestamp("ms")))
    assert "column 'c0' is INT96 with timestamps more than 292,000 years before or after" in refusal(path)


@pytest.mark.parametrize(
    ("nested", "kind"),
    [
        ([[at(9999, 1, 1)], None, []], pa.list_(pa.timestamp("us"))),
        ([{"x": at(9999, 1, 1)}, {"x": None}, None], pa.struct([("x", pa.timestamp("us"))])),
        ([[("k", at(1, 1, 1))], [], None], pa.map_(pa.string(), pa.timestamp("us"))),
    ],
    ids=["list", "struct", "map"],
)
def test_int96_is_looked_at_inside_of_columns(nested: list[Any], kind: pa.DataType, tmp_path: Path) -> None:
    made = take(int96(tmp_path, pa.array(nested, kind))).table["c0"]
    assert (made.type, made.to_pylist()) == (kind, nested)


def test_only_row_groups_of_the_sample_choose_the_unit(tmp_path: Path) -> None:
    values = [at(2024, 1, 1)] * 50 + [at(9999, 1, 1)] + [at(2024, 1, 1)] * 49
    path = int96(tmp_path, pa.array(values, pa.timestamp("us")), row_group_size=10)
    assert take(path).table["c0"].to_pylist() == values
    assert take(path, 2).table["c0"].type == pa.timestamp("ns")


def annotated(path: Path, values: list[bytes], converted_type: int) -> Path:
    """Write a file with one column of bytes with this ConvertedType (parquet.thrift), which no library here writes."""
    fastparquet = pytest.importorskip("fastparquet")
    pandas = pytest.importorskip("pandas")
    fastparquet.write(str(path), pandas.DataFrame({"a": values}), object_encoding="bytes", stats=False)
    footer = fastparquet.ParquetFile(str(path)).fmd
    footer.schema[1].converted_type = converted_type
    made, content = footer.to_bytes(), path.read_bytes()
    end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    path.write_bytes(content[:end] + made + len(made).to_bytes(4, "little") + b"PAR1")
    return path


def test_enum_is_text(tmp_path: Path) -> None:
    values = ["left", "right", "left"]
    taken = take(annotated(tmp_path / "a.parquet", [value.encode() for value in values], 4))
    assert (taken.table["a"].type, taken.table["a"].to_pylist()) == (pa.string(), values)
    assert taken.remarks == []


def test_bson_is_bytes_with_a_remark(tmp_path: Path) -> None:
    taken = take(annotated(tmp_path / "a.parquet", [b"\5\0\0\0\0", b"\5\0\0\0\0"], 20))
    assert taken.table["a"].to_pylist() == [b"\5\0\0\0\0"] * 2
    assert taken.remarks[0].startswith(f"{SPECIAL}'a' (BSON as binary)\n")


DUCKDB = [
    ("interval '1 month'", b"\1" + bytes(11), "Interval as binary"),
    ("uuid '00000000-0000-0000-0000-000000000001'", bytes(15) + b"\1", "arrow.uuid as binary"),
    ("[uuid '00000000-0000-0000-0000-000000000001']", [bytes(15) + b"\1"], "arrow.uuid as list<item: binary>"),
    ("""'{"x": 1}'::json""", '{"x": 1}', "arrow.json as string"),
    ("timetz '01:02:03+01'", datetime.time(0, 2, 3), "time of day in UTC as time64[us]"),
]


@pytest.mark.parametrize(("value", "made", "said"), DUCKDB, ids=[said for _, _, said in DUCKDB])
def test_special_types_are_named(value: str, made: object, said: str, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    duckdb.sql(f"copy (select {value} as a, 1 as b) to '{tmp_path}/a.parquet'")
    taken = take(tmp_path / "a.parquet")
    assert taken.table["a"].to_pylist() == [made]
    assert taken.remarks[0].startswith(f"{SPECIAL}'a' ({said})\n")


def test_a_variant_is_named(tmp_path: Path) -> None:
    kind = pa.struct([pa.field("metadata", pa.binary(), nullable=False), ("value", pa.binary())])
    pq.write_table(pa.table({"a": pa.array([{"metadata": b"\1\0\0", "value": b"\0"}], kind)}), tmp_path / "a.parquet")
    assert "'a' (VARIANT as struct" in take(tmp_path / "a.parquet").remarks[0]


def test_values_of_other_libraries_are_exact(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    duckdb.sql(
        "copy (select 18446744073709551615::ubigint u, '12345678901234567890123456789012345.678'::decimal(38,3) d, "
        "timestamp_ns '2024-01-01 00:00:00.123456789' ns, timestamp '0001-01-01' first, date '9999-12-31' last, "
        f"timestamptz '2024-01-01 00:00:00+02' z) to '{tmp_path}/a.parquet'"
    )
    taken = take(tmp_path / "a.parquet")
    assert taken.remarks == []
    types = [pa.uint64(), pa.decimal128(38, 3), pa.timestamp("ns"), pa.timestamp("us"), pa.date32()]
    assert taken.table.schema.types == [*types, pa.timestamp("us", "UTC")]
    text = [str(column.cast(pa.string())[0]) for column in taken.table.columns]
    assert text == [
        *("18446744073709551615", "12345678901234567890123456789012345.678", "2024-01-01 00:00:00.123456789"),
        *("0001-01-01 00:00:00.000000", "9999-12-31", "2023-12-31 22:00:00.000000Z"),
    ]


@pytest.mark.filterwarnings("ignore:The 'fastparquet' engine is deprecated")
@pytest.mark.parametrize("engine", ["pyarrow", "fastparquet"])
def test_an_index_of_pandas_is_a_column_and_named(engine: str, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip(engine)
    path = tmp_path / "a.parquet"
    pandas.DataFrame({"a": [1, 2]}, index=pandas.Index(["x", "y"], name="key")).to_parquet(path, engine=engine)
    taken = take(path)
    assert taken.table["key"].to_pylist() == ["x", "y"]
    assert "the index of a DataFrame is measured as a column: 'key'\n" in "\n".join(taken.remarks)
    pandas.DataFrame({"a": [1, 2]}).to_parquet(path, engine=engine)
    assert take(path).remarks == []


def test_an_index_that_is_only_noted_is_named(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    index = pandas.RangeIndex(10, 14, 2, name="key")
    pandas.DataFrame({"a": [1, 2]}, index=index).to_parquet(tmp_path / "a.parquet")
    taken = take(tmp_path / "a.parquet")
    assert taken.table.schema.names == ["a"]
    assert "is left out: pandas stores it as a range from 10 in steps of 2, called 'key'\n" in taken.remarks[0]


def test_a_page_that_does_not_fit_its_checksum_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    options = {"use_dictionary": False, "compression": "none", "write_page_checksum": True}
    pq.write_table(pa.table({"a": [1 << 40] * 100}), path, **options)
    content = bytearray(path.read_bytes())
    content[content.index((1 << 40).to_bytes(8, "little") * 20) + 80] ^= 1
    path.write_bytes(content)
    assert "CRC checksum verification failed" in refusal(path)


def test_names_with_points_are_no_fields(tmp_path: Path) -> None:
    table = pa.table({"a.b": pa.array([at(9999, 1, 1)]), "a": pa.array([1])})
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    assert take(tmp_path / "a.parquet").table.to_pylist() == [{"a.b": at(9999, 1, 1), "a": 1}]
