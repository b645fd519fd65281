"""Several Parquet files as one table: columns that agree, and columns in the names of folders."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data_generator.imported.tables.table_files import refusal, take


def folder(path: Path, **files: pa.Table) -> Path:
    """Write the tables as files with these names."""
    for name, table in files.items():
        file = path / f"{name}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, file)
    return path


def of(*values: Any, kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"a": pa.array(values, kind)})


NULLS = [
    (of(None, kind=pa.null()), of("x"), pa.string(), [None, "x"]),
    (of(7, kind=pa.int8()), of(None, kind=pa.null()), pa.int8(), [7, None]),
    (of([None], kind=pa.list_(pa.null())), of(["x"]), pa.list_(pa.string()), [[None], ["x"]]),
    (of({"x": None}), of({"x": 0.5}), pa.struct([("x", pa.float64())]), [{"x": None}, {"x": 0.5}]),
    (of(None, kind=pa.null()), of(None, kind=pa.null()), pa.float64(), [None, None]),
    (of(None, kind=pa.null()), of([("k", 1)], kind=pa.map_(pa.string(), pa.int8())), None, [None, [("k", 1)]]),
]


@pytest.mark.parametrize(("one", "other", "kind", "values"), NULLS)
def test_a_column_without_values_agrees_with_any(
    one: pa.Table, other: pa.Table, kind: pa.DataType | None, values: list[Any], tmp_path: Path
) -> None:
    made = take(folder(tmp_path, a=one, b=other)).table["a"]
    assert made.to_pylist() == values
    assert made.type == (kind or other["a"].type)


D = decimal.Decimal
WIDENED = [
    (of(1, kind=pa.int32()), of(1 << 40), pa.int64(), [1, 1 << 40]),
    (of((1 << 32) - 1, kind=pa.uint32()), of(-1, kind=pa.int8()), pa.int64(), [(1 << 32) - 1, -1]),
    (of(255, kind=pa.uint8()), of(-1, kind=pa.int8()), pa.int16(), [255, -1]),
    (of(0.1), of(0.5, kind=pa.float32()), pa.float64(), [0.1, 0.5]),
    (of(D("1.25")), of(D(12345)), pa.decimal128(7, 2), [D("1.25"), D(12345)]),
    (of(1, kind=pa.timestamp("ms")), of(1, kind=pa.timestamp("us")), pa.timestamp("us"), None),
    (of([1], kind=pa.list_(pa.int8())), of([1 << 40]), pa.list_(pa.int64()), [[1], [1 << 40]]),
]


@pytest.mark.parametrize(("one", "other", "kind", "values"), WIDENED, ids=[str(kind) for _, _, kind, _ in WIDENED])
def test_types_are_widened_where_every_value_is_kept(
    one: pa.Table, other: pa.Table, kind: pa.DataType, values: list[Any] | None, tmp_path: Path
) -> None:
    taken = take(folder(tmp_path, a=one, b=other))
    assert taken.table["a"].type == kind
    if values is not None:
        assert taken.table["a"].to_pylist() == values
    (remark,) = taken.remarks
    assert remark.startswith("files have columns of several types: 'a' (")
    assert f"taken as {taken.table['a'].type}".replace("item:", "element:") in remark.replace("item:", "element:")


DIFFER = [
    (of(1, kind=pa.uint64()), of(-1), "has the column 'a' as int64, which cannot be combined with uint64 .*a.parquet"),
    (of(1), of(0.5), "has the column 'a' as double, which cannot be combined with int64 .*a.parquet"),
    (of("x"), of(1), "has the column 'a' as int64, which cannot be combined with string .*a.parquet"),
    (of(D(1), kind=pa.decimal128(38, 0)), of(D("0.5")), r"has the column 'a' as decimal128\(1, 1\)"),
    (of(1, kind=pa.timestamp("us")), of(1, kind=pa.timestamp("us", "UTC")), r"timestamp\[us, tz=UTC\]"),
    (of({"x": 1}), of({"y": 1}), "has the column 'a' as struct"),
]


@pytest.mark.parametrize(("one", "other", "message"), DIFFER)
def test_types_that_do_not_hold_each_other_are_refused(
    one: pa.Table, other: pa.Table, message: str, tmp_path: Path
) -> None:
    import re

    said = refusal(folder(tmp_path, a=one, b=other))
    assert said.startswith(f"{tmp_path}/b.parquet: ")
    assert re.search(message, said)


def test_columns_are_taken_by_their_names(tmp_path: Path) -> None:
    whole = pa.table({"a": [1, 2], "b": ["x", "y"]})
    taken = take(folder(tmp_path, a=whole.slice(0, 1), b=whole.slice(1).select(["b", "a"])))
    assert taken.table.equals(whole)
    (remark,) = taken.remarks
    assert remark.startswith(f"{tmp_path}/b.parquet has its columns in another order than {tmp_path}/a.parquet; ")


def test_int96_of_all_files_has_one_unit(tmp_path: Path) -> None:
    times = [datetime.datetime(2024, 1, 1), datetime.datetime(9999, 1, 1)]
    for number, time in enumerate(times):
        pq.write_table(of(time), tmp_path / f"{number}.parquet", use_deprecated_int96_timestamps=True)
    assert take(tmp_path).table["a"].to_pylist() == times


# --- columns in the names of folders -------------------------------------------------------------------------------


def test_values_in_the_names_of_folders_become_columns(tmp_path: Path) -> None:
    parts = {f"year={year}/month={month}/part": of(year * 100 + month) for year in (2023, 2024) for month in (1, 12)}
    taken = take(folder(tmp_path, **parts))
    assert taken.table.schema.types == [pa.int64(), pa.int32(), pa.int32()]
    rows = [(row["a"], row["year"], row["month"]) for row in taken.table.to_pylist()]
    assert rows == [(202301, 2023, 1), (202312, 2023, 12), (202401, 2024, 1), (202412, 2024, 12)]
    assert taken.understood == {"partitions": "year (int32), month (int32), from the names of folders"}
    assert taken.remarks == []


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a b", "ü/x", None, "1"], pa.string()),
        (["1", "-2", None], pa.int32()),
        ([str(1 << 40), "1"], pa.int64()),
        (["2024-01-31", "2024-02-29"], pa.string()),
        ([None], pa.string()),
        (["", "1"], pa.string()),
    ],
)
def test_values_of_folders_are_decoded_and_typed(values: list[str | None], kind: pa.DataType, tmp_path: Path) -> None:
    from urllib.parse import quote

    names = ["__HIVE_DEFAULT_PARTITION__" if value is None else quote(value, safe="") for value in values]
    made = take(folder(tmp_path, **{f"k={name}/part": of(1) for name in names})).table["k"]
    assert made.type == kind
    assert {None if value is None else str(value) for value in made.to_pylist()} == set(values)


def test_folders_of_pandas_and_polars_come_back(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"v": range(6), "year": [2023, 2024] * 3, "name": ["x y", "z"] * 3})
    frame.to_parquet(tmp_path / "pandas", partition_cols=["year", "name"], index=False)
    rows = sorted(take(tmp_path / "pandas").table.to_pylist(), key=lambda row: row["v"])
    assert rows == frame.to_dict("records")


def test_zeros_before_a_number_are_reported(tmp_path: Path) -> None:
    taken = take(folder(tmp_path, **{"month=01/part": of(1), "month=10/part": of(2)}))
    assert taken.table["month"].to_pylist() == [1, 10]
    (remark,) = taken.remarks
    assert "'month' become integers, which are not written the same way: '01' becomes 1\n" in remark


def test_a_column_that_is_in_the_files_too_has_to_agree(tmp_path: Path) -> None:
    table = pa.table({"v": [1, 2], "k": pa.array([7, 7], pa.int64()), "d": [datetime.date(2024, 1, 2)] * 2})
    taken = take(folder(tmp_path / "same", **{"k=07/d=2024-01-02/part": table}))
    assert taken.table.equals(table)
    assert taken.understood == {"partitions": "k, d, from the names of folders"}
    differs = folder(tmp_path / "other", **{"k=7/d=2024-01-03/part": table})
    assert "has the column 'd' with values other than '2024-01-03', which the name" in refusal(differs)
    missing = folder(tmp_path / "none", **{"k=__HIVE_DEFAULT_PARTITION__/part": table})
    assert "has the column 'k' with values other than null" in refusal(missing)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("k=%FF/part", "the folder name 'k=%FF' is not UTF-8"),
        ("k=1/k=2/part", "two folders give values of the column 'k'"),
    ],
)
def test_names_of_folders_that_make_no_sense_are_refused(name: str, message: str, tmp_path: Path) -> None:
    assert message in refusal(folder(tmp_path, **{name: of(1)}))
