"""SQLite tables keep the contract."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from adapters.predicate import Kind, Predicate
from formats.sqlite import Sqlite
from tests.contracts.tabular import TabularFormatContract


class TestSqlite(TabularFormatContract):
    variant = "sqlite-table[engine=sqlite3]"


@pytest.fixture
def adapter() -> Sqlite:
    adapter = Sqlite()
    adapter.load_library()
    return adapter


def test_the_file_tells_its_types_to_any_reader(adapter: Sqlite, tmp_path: Path) -> None:
    table = pa.table({"flag": [True, None], "day": pa.array([0, 19_000], pa.date32()), "word": ["a", "b"]})
    adapter.save(table, tmp_path / "t")
    with closing(sqlite3.connect(tmp_path / "t")) as connection:
        declared = connection.execute("SELECT name, type FROM pragma_table_info('data')").fetchall()
        rows = connection.execute("SELECT * FROM data").fetchall()
    assert declared == [("flag", "BOOLEAN"), ("day", "DATE"), ("word", "TEXT")]
    assert rows == [(1, "1970-01-01", "a"), (None, "2022-01-08", "b")]
    assert adapter.read(tmp_path / "t").equals(table)


def test_decimals_are_no_floats(adapter: Sqlite, tmp_path: Path) -> None:
    table = pa.table({"price": pa.array([0, 10**17 + 1], pa.decimal128(18, 0)).cast(pa.decimal128(20, 2))})
    adapter.save(table, tmp_path / "t")
    assert adapter.read(tmp_path / "t").equals(table)


def test_a_column_may_have_the_name_of_the_row_number(adapter: Sqlite, tmp_path: Path) -> None:
    table = pa.table({"rowid": [30, 20, 10], "oid": [1, 2, 3]})
    adapter.save(table, tmp_path / "t")
    handle = adapter.open(tmp_path / "t")
    assert handle.take is not None
    assert handle.take(np.array([2, 0]), ["rowid"]).to_pydict() == {"rowid": [10, 30]}
    handle.close()


def test_names_that_differ_in_case_alone_are_refused(adapter: Sqlite) -> None:
    schema = pa.schema([("a", pa.int64()), ("A", pa.int64())])
    assert "'a' and 'A'" in str(adapter.refusal(schema, 1))


@pytest.mark.parametrize("prefix", ["a\0", "\ud7ff", "a\U0010ffff", "\U0010ffff"])
def test_a_prefix_may_end_in_any_letter(adapter: Sqlite, tmp_path: Path, prefix: str) -> None:
    words = ["a", "a\0", "a\0b", "a\x01", "\ud7ff", "\ud7ff\U0010ffff", "\ue000", "a\U0010ffffz", "b", "\U0010ffff"]
    adapter.save(pa.table({"word": words}), tmp_path / "t")
    handle = adapter.open(tmp_path / "t")
    assert handle.scan is not None
    found = handle.scan(Predicate("word", Kind.PREFIX, (prefix,)), ["word"]).column(0).to_pylist()
    handle.close()
    assert found == [word for word in words if word.startswith(prefix)]
