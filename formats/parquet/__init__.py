"""Parquet by pyarrow, pandas, polars, DuckDB, fastparquet and DataFusion, and by this project's service near storage.

The module `engines` lists the adapters for Parquet. The module `near_storage_process` runs the services of near
storage, and does not import these adapters.
"""
