"""Parquet keeps the contract."""

import pytest

from tests.contracts.tabular import TabularFormatContract


class TestParquet(TabularFormatContract):
    variant = "parquet[engine=pyarrow,codec=none]"


@pytest.mark.slow
class TestParquetSnappy(TabularFormatContract):
    variant = "parquet[engine=pyarrow,codec=snappy]"


@pytest.mark.slow
class TestParquetZstd(TabularFormatContract):
    variant = "parquet[engine=pyarrow,codec=zstd,level=3]"


class TestParquetByPandas(TabularFormatContract):
    variant = "parquet[engine=pandas,codec=none]"


class TestParquetByPolars(TabularFormatContract):
    variant = "parquet[engine=polars,codec=none]"


class TestParquetByDuckdb(TabularFormatContract):
    variant = "parquet[engine=duckdb,codec=none]"


class TestParquetByFastparquet(TabularFormatContract):
    variant = "parquet[engine=fastparquet,codec=none]"


@pytest.mark.slow
class TestParquetByPolarsZstd(TabularFormatContract):
    variant = "parquet[engine=polars,codec=zstd,level=1]"
