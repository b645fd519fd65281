"""Every call that is listed as giving a wrong answer still does; remove calls that have been fixed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path

import datafusion
import duckdb
import fastparquet
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from formats.shared.wrong_answers import WRONG_ANSWERS

FIVE_AND_NAN = [5.0, math.nan]


def fastparquet_flat_filters(folder: Path) -> tuple[int, int]:
    fastparquet.write(str(folder / "t.parquet"), pd.DataFrame({"r": range(10)}))
    asked = [("r", ">=", 1), ("r", "<", 2)]
    return len(fastparquet.ParquetFile(str(folder / "t.parquet")).to_pandas(filters=asked, row_filter=True)), 1


def fastparquet_categorical_bounds(folder: Path) -> tuple[int, int]:
    frame = pd.DataFrame({"c": pd.Categorical([5, 3, 9], categories=[5, 3, 9])})
    fastparquet.write(str(folder / "t.parquet"), frame, stats=True)
    with duckdb.connect(":memory:") as connection:
        (found,) = connection.sql(f"SELECT count(*) FROM '{folder / 't.parquet'}' WHERE c < 4").fetchall()
    return found[0], 1


def hdf5_null_test(folder: Path) -> tuple[int, int]:
    frame = pd.DataFrame({"word": ["a", None, "b"]})
    frame.to_hdf(folder / "t.h5", key="t", format="table", data_columns=True)
    return len(pd.read_hdf(folder / "t.h5", key="t", where="word != word")), int(frame["word"].isna().sum())


def pyarrow_nan_by_statistics(folder: Path) -> tuple[int, int]:
    pq.write_table(pa.table({"f": FIVE_AND_NAN}), folder / "t.parquet")
    asked = pc.field("f") != 5.0
    in_memory = pq.read_table(folder / "t.parquet").filter(asked)
    return pq.read_table(folder / "t.parquet", filters=asked).num_rows, in_memory.num_rows


def duckdb_nan_by_statistics(folder: Path) -> tuple[int, int]:
    table = pa.table({"f": FIVE_AND_NAN})
    pq.write_table(table, folder / "t.parquet")
    with duckdb.connect(":memory:") as connection:
        connection.register("in_memory", table)
        (stored,) = connection.sql(f"SELECT count(*) FROM '{folder / 't.parquet'}' WHERE f <> 5").fetchall()
        (held,) = connection.sql("SELECT count(*) FROM in_memory WHERE f <> 5").fetchall()
    return stored[0], held[0]


def duckdb_copy_append(folder: Path) -> tuple[int, int]:
    place = folder / "t.parquet"
    with duckdb.connect(":memory:") as connection:
        connection.sql(f"COPY (FROM range(1000)) TO '{place}' (FORMAT parquet)")
        connection.sql(f"COPY (FROM range(10)) TO '{place}' (FORMAT parquet, APPEND)")
    return pq.read_metadata(place).num_rows, 1_010


def datafusion_order_of_chunks(folder: Path) -> tuple[int, int]:
    """Return how many rows are followed by the next one, with as many threads as the machine has."""
    table, place = pa.table({"i": range(100_000)}), folder / "t.parquet"
    chunks = [table.slice(start, 12_500) for start in range(0, len(table), 12_500)]
    session = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(2))
    session.from_arrow(pa.concat_tables(chunks)).write_parquet(str(place))
    rows = pq.read_table(place)["i"].to_pylist()
    return sum(after == before + 1 for before, after in itertools.pairwise(rows)), 99_999


def dask_orc_structs(folder: Path) -> tuple[int, int]:
    """Return the number of columns."""
    import dask.dataframe as dd

    orc.write_table(pa.table({"i": [1], "struct": [{"a": 1}]}), folder / "t.orc")
    return len(dd.read_orc(str(folder / "t.orc")).columns), 2


SHOWN: dict[str, Callable[[Path], tuple[int, int]]] = {
    "fastparquet-flat-filters": fastparquet_flat_filters,
    "fastparquet-categorical-bounds": fastparquet_categorical_bounds,
    "hdf5-null-test": hdf5_null_test,
    "pyarrow-nan-by-statistics": pyarrow_nan_by_statistics,
    "duckdb-nan-by-statistics": duckdb_nan_by_statistics,
    "duckdb-copy-append": duckdb_copy_append,
    "datafusion-order-of-chunks": datafusion_order_of_chunks,
    "dask-orc-structs": dask_orc_structs,
}
"""Rows that the call returns, or returns in order, or columns, and the number that it should."""


def test_each_is_shown() -> None:
    assert [each.name for each in WRONG_ANSWERS] == list(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_the_answer_is_still_wrong(name: str, tmp_path: Path) -> None:
    given, right = SHOWN[name](tmp_path)
    assert given != right, "if it is fixed, remove it from the list"
