"""SQLite's JSON keeps the contract."""

from pathlib import Path

from document_stores.sqlite_json import SqliteJson
from tests.contracts.documents import DocumentStoreContract


class TestSqlite(DocumentStoreContract):
    variant = "sqlite-json[engine=sqlite3]"

    def test_groups_are_kept_in_memory(self, adapter: SqliteJson, location: Path) -> None:
        """A worker may write at its location alone: with files of its own SQLite cannot answer there."""
        adapter.ingest([b'{"id": 1}\n'], location)
        handle = adapter.open(location)
        assert list(handle._rows("PRAGMA temp_store")) == [(2,)]
        handle.close()
