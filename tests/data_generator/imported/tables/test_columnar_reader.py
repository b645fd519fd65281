"""Parquet, Arrow and ORC: their metadata are checked, and their types become those of docs/data.md."""

from __future__ import annotations

import decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_generator.imported.tables import table_types
from tests.data_generator.imported.tables.table_files import numbered, refusal, take, write


def kept(array: pa.Array, path: Path, suffix: str = "arrow") -> pa.ChunkedArray:
    return take(write(pa.table({"a": array}), path / f"table.{suffix}")).table["a"]


SAME_VALUES = [
    (pa.array(["x", None], pa.large_string()), pa.string()),
    (pa.array(["x", None], pa.string_view()), pa.string()),
    (pa.array([b"x", None], pa.binary_view()), pa.binary()),
    (pa.array([b"xy", None], pa.binary(2)), pa.binary()),
    (pa.array([[1.5, None]], pa.list_(pa.float16())), pa.list_(pa.float32())),
    (pa.array([0, 86_400_000], pa.date64()), pa.date32()),
    (pa.array([decimal.Decimal("1.5")], pa.decimal256(5, 2)), pa.decimal128(5, 2)),
    (pa.array([True, None]).dictionary_encode(), pa.bool_()),
    (pa.array([1.5, None], pa.float16()).dictionary_encode(), pa.float16()),
    (pa.RunEndEncodedArray.from_arrays([2, 3], ["x", "y"]), pa.string()),
    (pa.array([[1], None], pa.large_list(pa.int8())), pa.list_(pa.int8())),
    (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), pa.list_(pa.int8())),
    (pa.array([{"x": "y"}]).cast(pa.struct([("x", pa.large_string())])), pa.struct([("x", pa.string())])),
    (pa.array([["x"]], pa.list_(pa.dictionary(pa.int32(), pa.string()))), pa.list_(pa.string())),
    (pa.array([None, None]), pa.float64()),
    (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1], pa.int8())), pa.bool_()),
]


@pytest.mark.parametrize(("array", "kind"), SAME_VALUES, ids=[str(array.type) for array, _ in SAME_VALUES])
def test_other_types_become_the_plain_one_that_holds_the_same_values(
    array: pa.Array, kind: pa.DataType, tmp_path: Path
) -> None:
    made = kept(array, tmp_path)
    assert made.type == kind
    plain = array.to_pylist()
    assert made.to_pylist() == [value.date() if hasattr(value, "date") else value for value in plain]


KEPT = [
    *(pa.bool_(), pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.date32(), pa.time32("ms"), pa.time64("us")),
    *(pa.timestamp("s"), pa.timestamp("ns", "Europe/Prague"), pa.duration("us"), pa.decimal128(38, 3)),
    *(pa.list_(pa.int8()), pa.struct([("x", pa.int8())]), pa.map_(pa.string(), pa.int8())),
    *(pa.dictionary(codes, pa.string()) for codes in (pa.int8(), pa.int16(), pa.int32())),
    *(pa.dictionary(pa.int32(), values, ordered=True) for values in (pa.string(), pa.uint8(), pa.float64())),
]


@pytest.mark.parametrize("kind", KEPT, ids=map(str, KEPT))
def test_types_of_the_target_are_kept(kind: pa.DataType, tmp_path: Path) -> None:
    assert kept(pa.array([None, None], kind), tmp_path).type == kind
    assert table_types.column_type(kind) == kind


@pytest.mark.parametrize(
    "array",
    [
        pa.array([decimal.Decimal(1)], pa.decimal256(60, 2)),
        pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
        pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1]), pa.array(["x"])]),
        pa.array([{}], pa.struct([])),
    ],
    ids=["decimal256", "interval", "union", "empty struct"],
)
def test_a_type_that_is_not_measured_is_refused_by_column(array: pa.Array, tmp_path: Path) -> None:
    path = write(pa.table({"fine": [1] * len(array), "other": array}), tmp_path / "table.arrow")
    assert f"column 'other' has the type {array.type}" in refusal(path)


@pytest.mark.parametrize("suffix", ["arrow", "arrows", "feather", "parquet"])
def test_categories_stay_what_they_are(suffix: str, tmp_path: Path) -> None:
    categories = pa.array(["off", "low", "high"])
    array = pa.DictionaryArray.from_arrays(pa.array([2, None, 1, 2] * 3, pa.int8()), categories, ordered=True)
    taken = take(write(pa.table({"one": array, "two": [1] * 12}), tmp_path / f"table.{suffix}"))
    one = taken.table["one"]
    assert one.type == pa.dictionary(pa.int8(), pa.string(), ordered=True)
    assert one.to_pylist() == array.to_pylist()
    assert {tuple(chunk.dictionary.to_pylist()) for chunk in one.chunks} == {("off", "low", "high")}
    assert taken.remarks == []


def test_categories_that_are_neither_text_nor_numbers_are_said_to_become_plain(tmp_path: Path) -> None:
    array = pa.array([True, False]).dictionary_encode()
    taken = take(write(pa.table({"one": array, "two": [1, 2]}), tmp_path / "table.arrow"))
    assert taken.table["one"].type == pa.bool_()
    (remark,) = taken.remarks
    assert remark.startswith("categories that are neither text nor numbers are measured as plain values: 'one'\n")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (pa.array([0, 86_400_005], pa.int64()).cast(pa.date64()), "column 'a': date64[ms] 86400005 does not represent"),
        (pa.array([86_400_000_000], pa.int64()).cast(pa.time64("us")), "column 'a': time64[us] 86400000000 is not"),
        (pa.array([-1], pa.int32()).cast(pa.time32("s")), "column 'a': time32[s] -1 is not"),
        (
            pa.array([2932897, 1], pa.int32()).cast(pa.date32()),
            "'a' has 1 dates outside the years 1 to 9999 (the first",
        ),
        (pa.array([None, -719163], pa.int32()).cast(pa.date32()), "(the first is 719,163 days before 1970-01-01)"),
        (pa.array([86_400_000 * 3_000_000], pa.int64()).cast(pa.date64()), "outside the years 1 to 9999"),
        (pa.array([[1], [2932897]], pa.list_(pa.int32())).cast(pa.list_(pa.date32())), "'a' has 1 dates outside"),
        (pa.array([1], pa.timestamp("us", "Nowhere/City")), "has the time zone 'Nowhere/City', which is unknown"),
        (
            pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"]),
            "column 'a' has two fields with the name 'x'",
        ),
        (pa.array([decimal.Decimal(1)], pa.decimal256(39, 2)), "store it with at most 38 digits"),
    ],
)
def test_values_that_would_not_arrive_are_refused(array: pa.Array, message: str, tmp_path: Path) -> None:
    assert message in refusal(write(pa.table({"a": array}), tmp_path / "table.arrow"))


def test_the_first_and_last_day_are_taken(tmp_path: Path) -> None:
    import datetime

    days = [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]
    assert kept(pa.array(days), tmp_path).to_pylist() == days


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pa.array([b"0123456789abcdef"], pa.uuid()), "'a' (arrow.uuid as binary)"),
        (pa.array(["{}"], pa.json_()), "'a' (arrow.json as string)"),
        (pa.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((1, 2, 2))), "'a' (arrow.fixed_shape_tensor as list<"),
        (
            pa.ExtensionArray.from_storage(pa.opaque(pa.int8(), "money", "acme"), pa.array([1], pa.int8())),
            "'a' (arrow.",
        ),
    ],
)
def test_special_types_are_named(column: pa.Array, said: str, tmp_path: Path) -> None:
    (remark,) = take(write(pa.table({"a": column}), tmp_path / "a.arrow")).remarks
    assert remark.startswith(f"columns of special types are measured as their storage types: {said}")


def test_special_types_that_are_unknown_here_are_named(tmp_path: Path) -> None:
    """Like pandas.period if pandas is not imported."""
    note = {"ARROW:extension:name": "acme.period"}
    inside = pa.list_(pa.field("item", pa.int64(), metadata=note))
    schema = pa.schema([pa.field("a", pa.int64(), metadata=note), pa.field("b", inside), ("c", pa.int64())])
    (remark,) = take(write(pa.table([[648], [[1]], [2]], schema=schema), tmp_path / "a.arrow")).remarks
    assert "'a' (acme.period as int64), 'b' (acme.period as list<item: int64>)\n" in remark


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "orc"])
def test_names_that_are_easily_confused_are_reported(suffix: str, tmp_path: Path) -> None:
    taken = take(write(pa.table([[1], [2], [3]], names=["id", "ID", " x"]), tmp_path / f"a.{suffix}"))
    assert taken.table.schema.names == ["id", "ID", " x"]
    assert ["'id' and 'ID'" in taken.remarks[0], "' x'" in taken.remarks[1]] == [True, True]


UNITS = [(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "+05:30", "Europe/Prague")]


@pytest.mark.parametrize(("unit", "zone"), UNITS)
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_points_in_time_are_exact(unit: str, zone: str | None, suffix: str, tmp_path: Path) -> None:
    array = pa.array([-1, 1, None], pa.timestamp(unit, zone))
    made = kept(array, tmp_path, suffix)
    in_file = "ms" if (suffix, unit) == ("parquet", "s") else unit
    assert made.type == pa.timestamp(in_file, zone)
    assert made.combine_chunks().equals(array.cast(made.type))


def test_a_map_with_a_key_twice_is_kept(tmp_path: Path) -> None:
    pairs = [[("x", 1), ("x", 2)], None]
    for suffix in ("parquet", "arrow", "orc"):
        assert kept(pa.array(pairs, pa.map_(pa.string(), pa.int64())), tmp_path, suffix).to_pylist() == pairs


# --- ORC ---------------------------------------------------------------------------------------------------------


def test_orc_holds_nanoseconds_and_instants(tmp_path: Path) -> None:
    array = pa.array([-1, 1_704_067_200_123_456_789, None], pa.timestamp("ns"))
    assert kept(array, tmp_path, "orc").combine_chunks().equals(array)
    instants = array.cast(pa.timestamp("ns", "Europe/Prague"))
    assert kept(instants, tmp_path, "orc").combine_chunks().equals(array.cast(pa.timestamp("ns", "UTC")))


@pytest.mark.parametrize("seconds", [253_402_214_400, -62_135_596_800, -11_676_096_000])
def test_orc_beyond_nanoseconds_is_refused(seconds: int, tmp_path: Path) -> None:
    path = write(pa.table({"a": pa.array([0, seconds], pa.timestamp("s"))}), tmp_path / "a.orc")
    assert "has timestamps before 1677 or after 2262, which pyarrow does not read from ORC" in refusal(path)


@pytest.mark.parametrize("kind", [16, 17], ids=["varchar", "char"])
def test_orc_texts_of_a_length_are_text(kind: int, tmp_path: Path) -> None:
    """No library here writes them: the kind of the type in the footer is changed from string (orc_proto.proto)."""
    path = write(pa.table({"a": ["x", "yy "]}), tmp_path / "a.orc")
    content = path.read_bytes()
    place = content.rindex(b"\x22\x08\x08\x07")
    path.write_bytes(content[: place + 3] + bytes([kind]) + content[place + 4 :])
    assert take(path).table["a"].to_pylist() == ["x", "yy "]


def test_a_name_that_two_columns_have_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), path)
    assert "columns 1 and 2 have the same name 'a'" in refusal(path)


def test_no_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1, 2]}).select([]), path)
    assert "has no columns" in refusal(path)


def test_only_row_groups_of_the_sample_are_read(tmp_path: Path) -> None:
    """A row group without rows of the sample may be broken."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": range(100)}), path, row_group_size=10, use_dictionary=False, compression="none")
    place = pq.ParquetFile(path).metadata.row_group(5).column(0).data_page_offset
    content = bytearray(path.read_bytes())
    content[place : place + 40] = bytes(40)
    path.write_bytes(content)
    assert take(path, 2).table["a"].to_pylist() == [0, 99]
    assert "a.parquet, row group 5: cannot be read" in refusal(path)


def test_rows_that_are_claimed_and_not_there_are_refused(tmp_path: Path) -> None:
    """The footer gets another number of rows: 10^15 instead of 1,000,000."""
    path = tmp_path / "a.parquet"
    rows = 1_000_000_000_000_000
    table = pa.table({"a": pa.array([7] * 1000)})
    pq.write_table(table, path)
    content = path.read_bytes()
    real, claimed = varint(1000 * 2), varint(rows * 2)
    footer_bytes = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - footer_bytes : -8].replace(real, claimed)
    path.write_bytes(content[: -8 - footer_bytes] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    assert pq.read_metadata(path).num_rows == rows
    assert f"{path}" in refusal(path)


def varint(number: int) -> bytes:
    """Return a number, already in zigzag, in Thrift's compact protocol."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def test_offsets_that_lead_out_of_the_file_are_refused(tmp_path: Path) -> None:
    offsets = pa.py_buffer(np.array([0, 1_000_000_000, 3], np.int32))
    text = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"abc")])
    with pa.ipc.new_file(tmp_path / "a.arrow", pa.schema([("a", pa.string())])) as writer:
        writer.write_batch(pa.record_batch({"a": text}))
    path = tmp_path / "a.arrow"
    assert "a.arrow, row 2: cannot be read" in refusal(path)


# --- folders ------------------------------------------------------------------------------------------------------


def folder(path: Path, *tables: pa.Table) -> Path:
    path.mkdir(exist_ok=True)
    for number, table in enumerate(tables):
        pq.write_table(table, path / f"part-{number}.parquet")
    return path


def test_a_folder_is_one_table(tmp_path: Path) -> None:
    whole = numbered(1000)
    parts = folder(tmp_path / "parts", whole.slice(0, 10), whole.slice(10, 500), whole.slice(510))
    assert take(parts).table.equals(whole)
    assert take(parts, 100).table["place"].to_pylist()[-1] == 999


OTHERS = [
    (lambda table: table.drop_columns("share"), "lacks the column 'share', which .*part-0.parquet has"),
    (lambda table: table.append_column("more", table["place"]), "has the column 'more', which .*part-0.parquet lacks"),
    (
        lambda table: table.set_column(0, "place", table["share"]),
        "has the column 'place' as double, which cannot be combined with int64 .*part-0.parquet",
    ),
]


@pytest.mark.parametrize(("change", "message"), OTHERS)
def test_a_file_that_differs_is_reported_with_its_column(change, message: str, tmp_path: Path) -> None:
    import re

    table = numbered(10)
    said = refusal(folder(tmp_path / "parts", table, table, change(table)))
    assert said.startswith(f"{tmp_path}/parts/part-2.parquet: ")
    assert re.search(message, said)


def test_a_broken_file_of_a_folder_is_reported(tmp_path: Path) -> None:
    parts = folder(tmp_path / "parts", numbered(10), numbered(10))
    (parts / "part-1.parquet").write_bytes(b"PAR1 and no more")
    assert f"{parts}/part-1.parquet: cannot be read" in refusal(parts)


def test_feather_of_version_1_is_reported(tmp_path: Path) -> None:
    (tmp_path / "old.feather").write_bytes(b"FEA1" + bytes(100))
    assert "is Feather version 1" in refusal(tmp_path / "old.feather")


def test_compressed_arrow_files_are_read(tmp_path: Path) -> None:
    import pyarrow.feather

    pyarrow.feather.write_feather(numbered(1000), tmp_path / "a.feather", compression="zstd")
    assert take(tmp_path / "a.feather").table.equals(numbered(1000))
