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
