"""Parquet keeps the contract."""

from collections.abc import Iterator

import pytest

from libraries.near_storage.parquet.footer import read_footer
from libraries.near_storage.storing import partition_metadata
from tests.contracts.tabular import SettingContract, TabularFormatContract, WholeTableContract


class TestParquet(TabularFormatContract):
    variant = "parquet[engine=pyarrow,codec=none]"


class TestParquetSnappy(SettingContract):
    variant = "parquet[engine=pyarrow,codec=snappy]"


class TestParquetZstd(SettingContract):
    variant = "parquet[engine=pyarrow,codec=zstd,level=3]"


class TestParquetWithoutDictionaries(WholeTableContract):
    variant = "parquet[engine=pyarrow,codec=none,dictionary=false]"


class TestParquetByPandas(TabularFormatContract):
    variant = "parquet[engine=pandas,codec=none]"


class TestParquetByPolars(TabularFormatContract):
    variant = "parquet[engine=polars,codec=none]"


class TestParquetByDuckdb(TabularFormatContract):
    variant = "parquet[engine=duckdb,codec=none]"


class TestParquetByFastparquet(TabularFormatContract):
    variant = "parquet[engine=fastparquet,codec=none]"


class TestParquetByDask(TabularFormatContract):
    variant = "parquet[engine=dask,codec=none]"


class TestParquetByPolarsZstd(SettingContract):
    variant = "parquet[engine=polars,codec=zstd,level=1]"


@pytest.fixture(scope="class")
def footers_here() -> Iterator[None]:
    """Read footers in this process: separate processes for hundreds of copies would take two thirds of the time.

    The library's tests check that footers are read in a separate process.
    """

    def read(path):
        with path.open("rb") as file:
            return read_footer(file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_metadata, "read_footer_apart", read)
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("footers_here")
class TestParquetByNearStorage(TabularFormatContract):
    variant = "parquet[engine=near-storage,codec=snappy,reader=ranges,row_group_rows=500]"


@pytest.mark.slow
@pytest.mark.usefixtures("footers_here")
class TestParquetByNearStorageReadByDuckdb(WholeTableContract):
    """It has DuckDB's losses, which the other readers do not have."""

    variant = "parquet[engine=near-storage,codec=snappy,reader=duckdb,row_group_rows=500]"
