"""docs/data.md is correct: the required dtypes, conversions in both directions, and the touching of every page of a
result."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from adapters.contract import Native, Records
from bench_runner.operations import targets
from bench_runner.operations.targets import Target
from bench_runner.worker import verify
from data_generator.generated.kinds import KINDS

PAGE = Path(__file__).parents[3] / "docs" / "data.md"

ALL = [Target("pandas", strings, nulls) for strings in ("str", "object") for nulls in ("masked", "numpy")]


def documented() -> list[tuple[str, str, str]]:
    """Return (kind, dtype without nulls, dtype with nulls) for each kind in the table of dtypes in docs/data.md.

    A row may list several kinds. If it has only one dtype, the dtype applies to all of them. "the same" repeats the
    dtype of the column before.
    """
    _, _, table = PAGE.read_text().partition("| kind of column | Arrow type | pandas dtype | with nulls |\n")
    found = []
    for line in table.partition("\n\n")[0].splitlines()[1:]:
        kinds, _, plain, with_nulls = (re.findall(r"`([^`]+)`", cell) for cell in line.strip("|").split("|"))
        plain = plain * len(kinds) if len(plain) == 1 else plain
        found += zip(kinds, plain, with_nulls or plain, strict=True)
    return found


def value_dtype(kind: str, nulls: bool, target: Target) -> str:
    targets.apply_strings(target)
    dtype = targets.make(KINDS[kind].table(nulls), target)["value"].dtype
    return str(dtype)


def test_the_page_names_the_kinds() -> None:
    assert len(documented()) >= 20
    assert {kind for kind, _, _ in documented()} <= KINDS.keys()


@pytest.mark.parametrize(("kind", "plain", "with_nulls"), documented())
@pytest.mark.rule(8)
def test_the_page_lists_the_demanded_dtypes(kind: str, plain: str, with_nulls: str) -> None:
    assert value_dtype(kind, False, Target()) == plain
    assert value_dtype(kind, True, Target()) == with_nulls


def test_text_as_objects() -> None:
    assert value_dtype("string", True, Target(strings="object")) == "object"
    assert value_dtype("string", True, Target(strings="str")) == "str"


def test_numpy_has_no_nulls_in_integers() -> None:
    assert value_dtype("int16", True, Target(nulls="numpy")) == "float64"
    assert value_dtype("bool", True, Target(nulls="numpy")) == "object"


def test_frames_are_as_users_have_them() -> None:
    table = pa.table({"a": [1, 2], "s": ["x", "y"], "b": [3, 4], "t": ["z", "z"], "n": [1, None]})
    for target in ALL:
        targets.apply_strings(target)
        frame = targets.make(table, target)
        assert list(frame.columns) == ["a", "s", "b", "t", "n"]
        assert isinstance(frame.index, pd.RangeIndex)
        block = frame["a"].to_numpy(copy=False).base
        assert frame["b"].to_numpy(copy=False).base is block or np.shares_memory(
            block, frame["b"].to_numpy(copy=False).base
        )


def test_metadata_of_pandas_is_not_followed() -> None:
    """An int64 column stays int64, although the schema's pandas metadata say Int64."""
    targets.apply_strings(Target())
    table = pa.Table.from_pandas(pd.DataFrame({"a": pd.array([1, 2], "Int64")}))
    assert b"Int64" in table.schema.metadata[b"pandas"]
    assert targets.from_native(table, Target(), Native.ARROW)["a"].dtype == np.dtype("int64")


def exchanged(table: pa.Table, target: Target, native: Native) -> Any:
    held = targets.make(table, target)
    return targets.from_native(targets.to_native(held, target, native), target, native)


@pytest.mark.parametrize("target", [*ALL, Target("arrow")], ids=str)
@pytest.mark.parametrize("native", list(Native))
@pytest.mark.rule(8)
def test_conversions_keep_ordinary_columns(target: Target, native: Native) -> None:
    targets.apply_strings(target)
    kinds = ["int64", "float64", "bool", "string", "date", "timestamp-us", "timestamp-us-zone", "binary"]
    if native is not Native.POLARS:
        kinds.append("time")  # polars has times in ns only
    for kind in kinds:
        for nulls in (False, True):
            table = KINDS[kind].table(nulls)
            got = exchanged(table, target, native)
            assert verify.compare(table, got, target).problems == (), (kind, nulls)


def test_records_know_which_columns_have_nulls() -> None:
    table = pa.table({"a": [1, 2], "b": [1, None]})
    records = targets.to_native(table, Target("arrow"), Native.RECORDS)
    assert [field.nullable for field in records.schema] == [False, True]
    assert list(records.rows) == [{"a": 1, "b": 1}, {"a": 2, "b": None}]


def test_records_come_back_in_order_over_batches() -> None:
    rows = targets.RECORDS_PER_BATCH + 10
    table = pa.table({"a": range(rows)})
    assert exchanged(table, Target("arrow"), Native.RECORDS)["a"].equals(table["a"])


def test_records_without_a_schema_have_the_types_that_their_values_suggest() -> None:
    # No batch contains both the first and the last row.
    rows = [{"a": 1, "b": None}] * targets.RECORDS_PER_BATCH + [{"a": 0.5, "b": "x"}]
    for result in (Records(None, iter(rows)), targets.select(Records(None, rows), Native.RECORDS, ["b", "a"])):
        table = targets.from_native(result, Target("arrow"), Native.RECORDS)
        assert (table["a"].type, table["b"].type) == (pa.float64(), pa.string())
        assert table.slice(len(rows) - 2).to_pylist() == [{"a": 1.0, "b": None}, rows[-1]]
    assert table.column_names == ["b", "a"]
    assert targets.from_native(Records(None, []), Target("arrow"), Native.RECORDS).column_names == []


# --- buffers -------------------------------------------------------------------------------------------------------


def frame_of(column: Any) -> pd.DataFrame:
    return pd.DataFrame({"c": column})


ROWS = 100_000
COLUMNS = {
    "int64": (np.zeros(ROWS, np.int64), 8 * ROWS),
    "float32": (np.zeros(ROWS, np.float32), 4 * ROWS),
    "objects": (pd.Series(["x"] * ROWS, dtype=object), 8 * ROWS),
    "masked": (pd.array([1, None] * (ROWS // 2), "Int32"), 5 * ROWS),
    "categories": (pd.Categorical.from_codes(np.zeros(ROWS, np.int8), ["a", "b"]), ROWS),
    "datetimes": (pd.date_range("2024", periods=ROWS, freq="s", unit="us"), 8 * ROWS),
    "zoned": (pd.date_range("2024", periods=ROWS, freq="s", unit="us", tz="UTC"), 8 * ROWS),
    "durations": (pd.to_timedelta(np.zeros(ROWS), unit="s"), 8 * ROWS),
    "text": (pd.array(["xy"] * ROWS, pd.StringDtype("pyarrow", na_value=np.nan)), 10 * ROWS),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.rule(7)
def test_every_buffer_of_a_frame_is_seen(name: str) -> None:
    targets.apply_strings(Target())
    column, at_least = COLUMNS[name]
    seen = sum(size_bytes for _, size_bytes in targets.buffers(frame_of(column)))
    assert at_least <= seen <= at_least * 1.02 + 64


def test_a_block_is_seen_once() -> None:
    frame = pd.DataFrame(np.zeros((1_000, 50)))
    assert [size_bytes for _, size_bytes in targets.buffers(frame)] == [50 * 1_000 * 8]


@pytest.mark.rule(7)
def test_every_buffer_of_a_table_is_seen() -> None:
    dictionary = pa.array(["a", "b"] * 50).dictionary_encode()
    nested = pa.array([[1, 2]] * 100)
    table = pa.table({"d": dictionary, "n": nested})
    seen = {address for address, _ in targets.buffers(table)}
    assert dictionary.dictionary.buffers()[2].address in seen
    assert nested.values.buffers()[1].address in seen


def test_the_buffers_of_a_table_of_documents_are_seen() -> None:
    """Otherwise a result in a mapped file would pass for one in private memory."""
    table = pa.table({"n": [1, 2, 3]})
    found = list(targets.buffers(targets.DocumentTable([], table)))
    assert found == list(targets.buffers(table)) != []


def _inside(words: pa.Array) -> list[pa.Array]:
    """The text values in each kind of nested array. The list has two."""
    offsets = pa.array([0, 2, 4], pa.int32())
    return [
        pa.ListArray.from_arrays(offsets, words),
        pa.LargeListArray.from_arrays(offsets.cast(pa.int64()), words),
        pa.FixedSizeListArray.from_arrays(words, 2),
        pa.ListViewArray.from_arrays(offsets[:2], pa.array([2, 2], pa.int32()), words),
        pa.StructArray.from_arrays([pa.array(range(4)), words], ["i", "w"]),
        pa.MapArray.from_arrays(offsets, pa.array(list("abcd")), words),
        pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays([words], ["w"])),
    ]


@pytest.mark.parametrize(
    "array", _inside(pa.array(["x", "y", "z", "x"]).dictionary_encode()), ids=lambda a: str(a.type)
)
def test_dictionaries_inside_are_seen_and_touched(array: pa.Array) -> None:
    words = array
    while not pa.types.is_dictionary(words.type):
        if pa.types.is_map(words.type):
            words = words.items
        else:
            words = words.field(words.type.num_fields - 1) if pa.types.is_struct(words.type) else words.values
    seen = {address for address, _ in targets.buffers(pa.table({"n": array}))}
    assert words.dictionary.buffers()[2].address in seen


@pytest.mark.rule(7)
def test_touching_reads_one_byte_of_each_page() -> None:
    array = np.zeros(10 * targets.PAGE_BYTES, np.uint8)
    first_page = -array.ctypes.data % targets.PAGE_BYTES
    array[0] = 7
    array[first_page :: targets.PAGE_BYTES] = 1
    pages = len(range(first_page, len(array), targets.PAGE_BYTES))
    expected = pages + (array[0] if first_page else 0)
    assert targets.touch(pa.table({"c": pa.array(array)})) == expected
    assert targets.touch_pages(array.ctypes.data, array.nbytes) == expected


def test_dates_stay_python_dates() -> None:
    targets.apply_strings(Target())
    frame = targets.make(KINDS["date-early"].table(False), Target())
    assert type(frame["value"][0]) is dt.date


def test_fields_of_records_are_nullable_by_all_pieces_of_a_column() -> None:
    pieces = pa.chunked_array([[1, 2], [None]], pa.int64())
    whole = pa.table({"some": pieces, "none": pa.chunked_array([[1, 2], [3]])})
    records = targets.to_native(whole, Target(kind="arrow"), Native.RECORDS)
    assert [field.nullable for field in records.schema] == [True, False]


@pytest.mark.parametrize("native", [Native.ARROW, Native.PANDAS, Native.RECORDS])
def test_columns_are_selected_in_the_order_that_is_asked_for(native: Native) -> None:
    whole = pa.table({"a": [1], "b": [2], "c": [3]})
    selected = targets.select(targets.to_native(whole, Target(kind="arrow"), native), native, ["c", "a"])
    table = targets.from_native(selected, Target(kind="arrow"), native)
    assert list(table.to_pydict().items()) == [("c", [3]), ("a", [1])]
