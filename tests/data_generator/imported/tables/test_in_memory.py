"""Tables in memory are stored in a file while they are measured; invalid ones are refused."""

from __future__ import annotations

import datetime as dt
import uuid
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from data_generator.errors import DataError
from data_generator.imported.tables import in_memory
from tests.data_generator.imported.tables.table_files import take


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FORMAT_BENCH_CACHE", str(tmp_path))
    return tmp_path


def taken(data: Any) -> pa.Table:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with in_memory.held(data) as table:
            return take(table.path).table


FRAME = pd.DataFrame({"n": [1, 2, 3], "word": pd.Categorical(["a", None, "b"]), "h": np.array([1, 2, 3], np.float16)})
SCHEMA = pa.schema([("n", pa.int64()), ("word", pa.dictionary(pa.int8(), pa.string())), ("h", pa.float16())])


def _polars() -> Any:
    import polars

    return polars.DataFrame({"n": [1, 2], "word": polars.Series(["a", "b"], dtype=polars.Categorical)})


def _duckdb() -> Any:
    import duckdb

    return duckdb.sql("SELECT range AS n, 'a' AS word FROM range(3000)")


def test_a_dataframe_is_taken_with_its_types() -> None:
    made = taken(FRAME)
    assert made.schema == SCHEMA
    assert made.to_pydict() == {"n": [1, 2, 3], "word": ["a", None, "b"], "h": [1.0, 2.0, 3.0]}


@pytest.mark.parametrize(
    ("make", "title", "words"),
    [
        (lambda: pa.table({"n": [1, 2], "word": ["a", "b"]}), "pyarrow Table", pa.string()),
        (lambda: pa.record_batch({"n": [1, 2], "word": ["a", "b"]}), "pyarrow RecordBatch", pa.string()),
        (lambda: pa.table({"n": [1], "word": ["a"]}).to_reader(), "pyarrow RecordBatchReader", pa.string()),
        (_polars, "polars DataFrame", pa.dictionary(pa.int32(), pa.string())),
        (_duckdb, "duckdb DuckDBPyRelation", pa.string()),
    ],
    ids=["table", "batch", "reader", "polars", "duckdb"],
)
def test_tables_of_arrow_and_of_what_gives_them_are_taken(
    make: Callable[[], Any], title: str, words: pa.DataType
) -> None:
    with in_memory.held(make()) as table:
        assert table.title == f"{title} in memory"
        assert repr(table) == f"<{title} in memory>"
        made = take(table.path).table
    assert made.schema == pa.schema([("n", pa.int64()), ("word", words)])
    assert made["n"].to_pylist()[:1] in ([0], [1])


def test_chunks_may_have_dictionaries_of_their_own() -> None:
    chunks = pa.chunked_array([pa.array(["a", "b"]).dictionary_encode(), pa.array(["b", "c"]).dictionary_encode()])
    assert taken(pa.table({"word": chunks}))["word"].to_pylist() == ["a", "b", "b", "c"]


OBJECTS = [
    ([None, "a"], pa.string()),
    ([b"a", np.nan], pa.binary()),
    ([True, None], pa.bool_()),
    ([1, None], pa.int64()),
    ([np.int64(1), 2], pa.int64()),
    ([Decimal("0.10"), Decimal("2.5")], pa.decimal128(3, 2)),
    ([dt.date(2024, 2, 29), None], pa.date32()),
    ([dt.time(12, 30), None], pa.time64("us")),
    ([[1], np.array([2])], pa.list_(pa.int64())),
    ([{"a": 1}, None], pa.struct([("a", pa.int64())])),
    ([None, None], pa.float64()),
]


@pytest.mark.parametrize(("values", "kind"), OBJECTS, ids=[str(kind) for _, kind in OBJECTS])
def test_objects_of_one_type_are_taken(values: list[Any], kind: pa.DataType) -> None:
    assert taken(pd.DataFrame({"o": pd.Series(values, dtype=object)})).schema.field("o").type == kind


def objects(*values: Any) -> pd.DataFrame:
    return pd.DataFrame({"fine": range(len(values)), "odd": pd.Series(values, dtype=object)})


REFUSED = [
    (objects(1, "a", 2), "'odd' has values of several types, but must have one (given: 2 of int, 1 of str)"),
    (objects(dt.date(2024, 1, 1), dt.datetime(2024, 1, 1)), "1 of date, 1 of datetime"),
    (objects(1, True), "1 of int, 1 of bool"),
    (objects(uuid.UUID(int=1)), "column 'odd' has values of the type UUID"),
    (objects(2**70), "column 'odd' (object) cannot be converted"),
    (pd.DataFrame({"c": [1 + 2j]}), "column 'c' (complex128) cannot be converted"),
    (pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_product([["a"], ["x", "y"]])), "MultiIndex of 2 levels"),
    (pd.DataFrame([[1, 2]]), "column 1 has the name 0, which is int and not text"),
    (pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]), "2 columns have the name 'a'"),
    (pd.DataFrame({"index": [1]}, index=[7]), "its index would become the column 'index', which already exists"),
    ([1, 2], "data is not a table (got list).\n  Pass a path, or a pandas DataFrame, a pyarrow Table"),
    (pa.array([1, 2]), "is not a table"),
]


@pytest.mark.parametrize(("data", "said"), REFUSED, ids=[said[:40] for _, said in REFUSED])
def test_other_objects_than_tables_are_refused_by_name(data: Any, said: str, cache_folder: Path) -> None:
    with pytest.raises(DataError) as refused, in_memory.held(data):
        pass
    assert said in str(refused.value)
    assert str(refused.value).count("\n") <= 1
    assert list(cache_folder.rglob("*.*")) == []


def test_a_lazy_table_is_to_be_collected() -> None:
    with (
        pytest.raises(DataError, match=r"is not a table \(got LazyFrame\)\. Call \.collect\(\) first"),
        in_memory.held(_polars().lazy()),
    ):
        pass


@pytest.mark.parametrize(
    ("index", "names"),
    [
        (pd.Index([3, 1, 2]), ["index"]),
        (pd.Index(["x", "y", "z"], name="key"), ["key"]),
        (pd.RangeIndex(3, name="n0"), ["n0"]),
        (pd.RangeIndex(5, 8), ["index"]),
        (pd.RangeIndex(0, 6, 2), ["index"]),
        (pd.MultiIndex.from_tuples([(1, "a"), (1, "b"), (2, "a")], names=["one", None]), ["one", "level_1"]),
    ],
    ids=["numbers", "named", "named range", "later range", "range in steps", "levels"],
)
def test_an_index_becomes_columns_with_a_warning(index: pd.Index, names: list[str]) -> None:
    listed = ", ".join(map(repr, names))
    said = f"its index is measured as the columns? {listed}, because"
    with pytest.warns(UserWarning, match=said), in_memory.held(FRAME.set_axis(index)) as table:
        made = take(table.path).table
    assert made.column_names == [*names, *FRAME.columns]
    assert list(zip(*(made[name].to_pylist() for name in names), strict=True)) == [
        each if isinstance(each, tuple) else (each,) for each in index
    ]


def test_the_same_table_has_the_same_file_which_goes_with_its_last_user(cache_folder: Path) -> None:
    with in_memory.held(FRAME) as first:
        about = first.path.stat()
        with in_memory.held(FRAME.copy()) as second, in_memory.held(FRAME[["n"]]) as other:
            assert (second.path, second.path.stat().st_ino) == (first.path, about.st_ino)
            assert other.path != first.path
        assert first.path.exists()
        assert not other.path.exists()
    assert list(cache_folder.rglob("*.*")) == []
    with in_memory.held(FRAME) as again:
        now = again.path.stat()
        assert (again.path, now.st_size, now.st_mtime_ns) == (first.path, about.st_size, about.st_mtime_ns)


def test_files_of_calls_that_were_killed_are_removed(cache_folder: Path) -> None:
    left = cache_folder / "in-memory" / "pandas-DataFrame-in-memory-0123.arrows"
    left.parent.mkdir()
    left.write_bytes(b"left")
    with in_memory.held(FRAME):
        assert not left.exists()
