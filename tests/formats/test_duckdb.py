"""DuckDB's own files keep the contract."""

from tests.contracts.tabular import TabularFormatContract


class TestDuckdb(TabularFormatContract):
    variant = "duckdb-table[engine=duckdb]"
