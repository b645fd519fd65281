"""DataFusion keeps the contract and the order of rows, and reads only the pages that a condition needs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from adapters.contract import TabularFormat
from adapters.predicate import Kind, Predicate
from formats.registry import FORMATS
from tests.contracts.projection import rchar
from tests.contracts.tabular import TabularFormatContract

ROWS = 200_000


class TestParquetByDatafusion(TabularFormatContract):
    variant = "parquet[engine=datafusion,codec=none]"


def saved(variant: str, table: pa.Table, place: Path) -> TabularFormat:
    adapter = FORMATS.build(variant)
    adapter.load_library()
    adapter.save(table, place)
    return adapter


def numbers(rows: int = ROWS) -> pa.Table:
    random = np.random.default_rng(7)
    return pa.table({"row": np.arange(rows), "value": random.random(rows), "other": random.random(rows)})


def test_rows_keep_their_order_whoever_reads_which_part(tmp_path: Path) -> None:
    table = numbers()
    adapter = saved("parquet[engine=datafusion,codec=none,row_group_rows=7000]", table, tmp_path / "t.parquet")
    # Threads finish in a different order each time. When they took ranges over from each other, one read in some dozens
    # was in another order.
    for _ in range(60):
        assert adapter.read(tmp_path / "t.parquet").column("row").equals(table.column("row"))
    handle = adapter.open(tmp_path / "t.parquet")
    assert handle.scan is not None
    found = handle.scan(Predicate("value", Kind.RANGE, (0.25, 0.75)), ["row"]).column("row").to_numpy()
    handle.close()
    assert 0 < len(found) < ROWS
    assert (np.diff(found) > 0).all()


def test_a_scan_of_a_sorted_column_reads_few_pages(tmp_path: Path) -> None:
    # One row group, so only the page index can exclude rows.
    adapter = saved(
        "parquet[engine=datafusion,codec=none,page_rows=1000,dictionary=false]", numbers(), tmp_path / "t.parquet"
    )
    assert adapter.stored(tmp_path / "t.parquet").details["row groups"] == "1"
    handle = adapter.open(tmp_path / "t.parquet")
    assert handle.scan is not None
    before = rchar()
    found = handle.scan(Predicate("row", Kind.RANGE, (100_000, 100_050)), ["row", "value", "other"])
    read = rchar() - before
    handle.close()
    assert found.column("row").to_pylist() == list(range(100_000, 100_050))
    # This includes half a megabyte at the end, where DataFusion looks for the footer.
    assert read < (tmp_path / "t.parquet").stat().st_size / 5


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "lz4", "zstd", "zstd,level=3", "gzip,level=2"])
def test_the_codec_is_the_one_that_was_asked_for(tmp_path: Path, codec: str) -> None:
    adapter = saved(f"parquet[engine=datafusion,codec={codec}]", numbers(2_000), tmp_path / "t.parquet")
    assert adapter.stored(tmp_path / "t.parquet").codec == codec.partition(",")[0]
    assert adapter.read(tmp_path / "t.parquet").equals(numbers(2_000))
