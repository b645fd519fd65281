"""DuckDB's tables of documents keep the contract."""

from tests.contracts.documents import DocumentStoreContract


class TestVariant(DocumentStoreContract):
    variant = "duckdb-variant[engine=duckdb]"


class TestJson(DocumentStoreContract):
    variant = "duckdb-json[engine=duckdb]"


class TestNested(DocumentStoreContract):
    variant = "duckdb-nested[engine=duckdb]"
