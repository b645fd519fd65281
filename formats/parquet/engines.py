"""The adapters for Parquet. The default adapter, pyarrow, comes first."""

from formats.parquet.by_arrow import ParquetDask, ParquetPandas, ParquetPyarrow
from formats.parquet.by_near_storage import ParquetNearStorage
from formats.parquet.by_others import ParquetDatafusion, ParquetDuckdb, ParquetFastparquet, ParquetPolars

ENGINES = (
    *(ParquetPyarrow, ParquetPandas, ParquetPolars, ParquetDuckdb, ParquetFastparquet, ParquetDatafusion),
    *(ParquetNearStorage, ParquetDask),
)
