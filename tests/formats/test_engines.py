"""Engines other than a format's first: threads, refusals, and facts that they read from their files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from adapters.contract import Native
from adapters.errors import RefusedData
from bench_runner.operations import targets
from bench_runner.operations.targets import Target
from bench_runner.thread_variables import ONE_THREAD
from formats.registry import FORMATS
from tests.contracts.adapters import run
from tests.contracts.tabular import ordinary_table

ARROW = Target("arrow")


@pytest.mark.parametrize("threads", [None, 1])
def test_duckdb_has_one_thread_where_that_is_the_condition(threads: int | None) -> None:
    adapter = FORMATS.build("csv[engine=duckdb]", threads=threads)
    adapter.load_library()
    with adapter.connection() as connection:  # type: ignore[attr-defined]
        settings = connection.execute("SELECT current_setting('threads'), current_setting('TimeZone')").fetchone()
    assert settings is not None
    assert (settings[0] == 1) == (threads == 1)
    assert settings[1] == "UTC", "otherwise the result depends on the machine"


def test_each_call_of_duckdb_has_a_database_of_its_own() -> None:
    adapter = FORMATS.build("csv[engine=duckdb]")
    adapter.load_library()
    with adapter.connection() as connection:  # type: ignore[attr-defined]
        connection.execute("CREATE TABLE left_behind (i INTEGER)")
    with adapter.connection() as connection:  # type: ignore[attr-defined]
        assert connection.execute("SHOW TABLES").fetchall() == []


def test_polars_heeds_the_number_of_threads_that_workers_are_started_with() -> None:
    variable = next(name for name in ONE_THREAD if name.startswith("POLARS"))
    done = run(f"import os; os.environ[{variable!r}] = '1'; import polars; print(polars.thread_pool_size())")
    assert done.stdout.strip() == "1", done.stderr


@pytest.mark.parametrize(
    ("spelled", "arrow_type", "reason"),
    [
        ("csv[engine=pyarrow]", pa.list_(pa.int64()), "nested columns to CSV (column odd"),
        ("json[engine=polars]", pa.binary(), "bytes to JSON (column odd"),
        ("json[engine=polars]", pa.large_binary(), "bytes to JSON (column odd"),
        ("parquet[engine=duckdb]", pa.duration("us"), "have no sign (column odd"),
        ("orc[engine=dask]", pa.struct([("a", pa.int64())]), "structs out when it reads ORC (column odd"),
        ("parquet[engine=fastparquet]", pa.timestamp("s"), "as if they were ms (column odd"),
        ("parquet[engine=fastparquet]", pa.timestamp("s", "UTC"), "as if they were ms (column odd"),
    ],
)
def test_what_a_call_does_not_take_is_refused_beforehand(spelled: str, arrow_type: pa.DataType, reason: str) -> None:
    adapter = FORMATS.build(spelled)
    assert adapter.refusal(pa.schema({"a": pa.int64()}), 1) is None
    assert reason in str(adapter.refusal(pa.schema({"a": pa.int64(), "odd": arrow_type}), 1))


@pytest.mark.parametrize(
    ("spelled", "values"),
    [
        ("csv[engine=polars]", pa.array([[1], [2]])),
        ("avro[engine=polars]", pa.array([1, 2], pa.int8())),
        ("parquet[engine=fastparquet]", pa.array([[1], [2]])),
    ],
)
def test_what_a_call_says_that_it_does_not_take_is_a_refusal_and_no_fault(
    spelled: str, values: pa.Array, tmp_path: Path
) -> None:
    adapter = FORMATS.build(spelled)
    adapter.load_library()
    native = targets.to_native(pa.table({"odd": values}), ARROW, adapter.native)
    with pytest.raises(RefusedData, match="refuses this data"):
        adapter.save(native, tmp_path / f"t{adapter.suffix}")


@pytest.mark.parametrize("engine", ["pyarrow", "pandas", "polars"])
@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_the_codec_of_feather_is_found_whoever_wrote_it_and_however_long_it_is(
    engine: str, codec: str, tmp_path: Path
) -> None:
    """polars pads its messages differently from pyarrow, which matters from some thousands of rows on."""
    adapter = FORMATS.build(f"feather[engine={engine},codec={codec}]")
    adapter.load_library()
    adapter.save(targets.to_native(ordinary_table(30_000), ARROW, adapter.native), tmp_path / "t.feather")
    assert adapter.stored(tmp_path / "t.feather").codec == codec


def test_who_saves_and_who_reads_may_be_two() -> None:
    by_polars = FORMATS.build("excel[save=openpyxl,read=polars]")
    assert (by_polars.native, by_polars.native_read) == (Native.PANDAS, Native.POLARS)
    by_pandas = FORMATS.build("excel[save=openpyxl,read=calamine]")
    assert (by_pandas.native, by_pandas.native_read) == (Native.PANDAS, Native.PANDAS)


@pytest.mark.parametrize("spelled", ["parquet[engine=polars]", "feather[engine=polars]", "csv[engine=polars]"])
def test_polars_takes_no_name_for_a_pattern(spelled: str, tmp_path: Path) -> None:
    adapter = FORMATS.build(spelled)
    adapter.load_library()
    location = tmp_path / f"t{adapter.suffix}"
    adapter.save(targets.to_native(pa.table({"a": [1], "*": [2], "^.$": [3]}), ARROW, adapter.native), location)
    project = adapter.open(location).project
    assert project is not None
    assert project(["*"]).columns == ["*"]
    assert project(["^.$", "a"]).columns == ["^.$", "a"]


@pytest.mark.parametrize("name", ["file_row_number", "filename", "I", "i AS j", "*"])
def test_duckdb_takes_nothing_for_a_column_that_is_none(name: str, tmp_path: Path) -> None:
    """Its Parquet reader adds columns and ignores case."""
    adapter = FORMATS.build("parquet[engine=duckdb]")
    adapter.load_library()
    adapter.save(pa.table({"i": [1]}), tmp_path / "t.parquet")
    handle = adapter.open(tmp_path / "t.parquet")
    assert handle.project is not None
    with pytest.raises(KeyError, match=r"the (table|file) has no columns"):
        handle.project([name])
    handle.close()
