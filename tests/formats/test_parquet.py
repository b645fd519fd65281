"""Parquet keeps the contract."""

from tests.contracts.tabular import TabularFormatContract


class TestParquet(TabularFormatContract):
    variant = "parquet[engine=pyarrow,codec=none]"


class TestParquetSnappy(TabularFormatContract):
    variant = "parquet[engine=pyarrow,codec=snappy]"


class TestParquetZstd(TabularFormatContract):
    variant = "parquet[engine=pyarrow,codec=zstd,level=3]"
