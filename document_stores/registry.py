"""The list of document stores: name, module, and the extra of this project that installs the required libraries.

The names differ from the names of table formats and image storages, because one run may measure all three kinds.
"""

from adapters.document_store import DocumentStoreAdapter
from adapters.registry import Entry, Registry

DOCUMENT_STORES: Registry[DocumentStoreAdapter] = Registry(
    {
        "bson": Entry("document_stores.bson:ENGINES", "documents"),
        "clickhouse-json": Entry("document_stores.clickhouse_json:ENGINES", "chdb"),
        "document-store": Entry("document_stores.document_store:ENGINES", "documents"),
        "documents-raw-io": Entry("document_stores.raw_io:ENGINES"),
        "duckdb-json": Entry("document_stores.duckdb_tables:JSON", "documents"),
        "duckdb-nested": Entry("document_stores.duckdb_tables:NESTED", "documents"),
        "duckdb-variant": Entry("document_stores.duckdb_tables:VARIANT", "documents"),
        "json-lines": Entry("document_stores.json_lines:ENGINES", "documents"),
        "lance-json": Entry("document_stores.lance_json:ENGINES", "documents"),
        "messagepack": Entry("document_stores.messagepack:ENGINES", "documents"),
        "parquet-nested": Entry("document_stores.parquet_nested:ENGINES", "documents"),
        "parquet-variant": Entry("document_stores.parquet_variant:ENGINES", "documents"),
        "postgresql-jsonb": Entry("document_stores.postgresql_jsonb:ENGINES", "documents"),
        "sqlite-json": Entry("document_stores.sqlite_json:ENGINES", "documents"),
    },
    entry_point_group="format_bench.document_stores",
    noun="store",
)
