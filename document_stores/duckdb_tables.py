"""Tables in DuckDB's own file format. Documents are VARIANT values, JSON texts, or rows of a table with a column for
each field."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from adapters.contract import Can, Maturity, Stage, Stored
from adapters.document_store import Batch, DocumentLoss, DocumentOffers, DocumentStoreAdapter, Key
from adapters.errors import AdapterError
from document_stores.shared import duckdb_session as session
from document_stores.shared.duckdb_documents import OPERATORS, DocumentRelation, DuckDocuments, in_columns
from document_stores.shared.json_losses import JSON_TEXT
from document_stores.shared.nested_losses import DUCKDB_LOSSES
from document_stores.shared.structure import bigint_structure
from document_stores.sql.duckdb_values import JsonValue, VariantValue
from document_stores.sql.values import Quoted

NO_NULLS = "every NULL is a field that is missing"
"""Comment of the table if no document has a null. In a table without this comment, NULL can mean a null or a missing
field."""


def _nothing() -> None:
    return


class DuckStore(DocumentStoreAdapter):
    """Base class of the stores that write a DuckDB file with one table."""

    engine = "duckdb"
    distributions: ClassVar[tuple[str, ...]] = ("duckdb", "pyarrow", "msgspec")
    suffix = ".duckdb"
    capabilities = frozenset(
        {Can.PROJECTION, Can.APPEND, Can.NESTED, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE}
    )
    syncs_on_save = True

    @property
    def losses(self) -> tuple[DocumentLoss, ...]:
        """Losses of values that JSON cannot express."""
        return JSON_TEXT

    def load_library(self) -> None:
        """Import duckdb, and the modules that exchange documents with it."""
        import duckdb
        import msgspec
        import pyarrow.compute

        self._duckdb = duckdb
        self._msgspec, self._arrow = msgspec, pyarrow

    def stored(self, location: Path) -> Stored:
        """Return no codec, because DuckDB chooses a codec for each column."""
        return Stored()

    def _connect(self, location: Path) -> Any:
        if not location.is_file():
            raise AdapterError(f"{location}: the file does not exist")
        return session.connect(self._duckdb, location, self.threads)

    def _described(self, connection: Any, location: Path) -> Any:
        """Return DuckDB's description of the table's columns: a tuple for each column, which begins with the column's
        name and type."""
        try:
            return connection.execute("SELECT * FROM documents LIMIT 0").description
        except self._duckdb.Error as error:
            connection.close()
            raise AdapterError(f"{location}: has no table of documents ({error})") from None


class KeyedTable(DuckStore):
    """Base class of the stores whose table has two columns: the key and the document."""

    column_type: ClassVar[str]
    offers = DocumentOffers(get=True, project=True, upsert=True, delete=True, operators=OPERATORS)

    def ingest(
        self, batches: Iterable[Batch], location: Path, key: str = "id", accepted: Callable[[], None] = _nothing
    ) -> None:
        """Insert all documents by one statement, then close the file, which makes a checkpoint."""
        source = session.BatchStream(session.lines_of(batches))
        type_ = session.key_type(source.first[0] if source.first is not None else None, key)
        connection = session.connect(self._duckdb, location, self.threads)
        try:
            connection.execute(f"CREATE TABLE documents (key {type_} PRIMARY KEY, document {self.column_type})")
            with session.refusals(self._duckdb, source):
                connection.register("arriving", source.reader())
                connection.execute(f"INSERT INTO documents {self.arriving(key, type_)}")
            accepted()
        finally:
            connection.close()

    def arriving(self, key: str, key_type: str, more: str = "") -> str:
        """Return a SELECT of key and document from the table `arriving`, which has JSON texts in the column `line`.
        `more` names additional columns to select."""
        strict = session.strict_key(JsonValue("line").step(key), key_type)
        documents = f"(SELECT CAST(line AS JSON) AS line{more} FROM arriving)"
        return f"SELECT {strict}, CAST(line AS {self.column_type}){more} FROM {documents}"

    def open(self, location: Path, key: str = "id") -> KeyedHandle:
        """Open one connection."""
        connection = self._connect(location)
        types = {name: str(type_) for name, type_, *_ in self._described(connection, location)}
        return KeyedHandle(self, connection, self.documents(types.get("key", "BIGINT")), key)

    @abstractmethod
    def documents(self, key_type: str) -> DocumentRelation:
        """Return the SQL expressions to read documents from the table `documents`."""


class KeyedHandle(DuckDocuments):
    """A table of keys and documents, for reading and writing."""

    def __init__(self, store: KeyedTable, connection: Any, documents: DocumentRelation, key: str) -> None:
        """Take ownership of the connection, which `close` closes."""
        super().__init__(store._duckdb, connection, documents, key)
        self._store = store

    def upsert(self, batch: Batch) -> None:
        """Store documents by INSERT OR REPLACE. If several documents of a batch have the same key, the last one is
        kept."""
        source = session.BatchStream(session.lines_of([batch]))
        if source.first is None:
            return
        self.forget()
        with session.refusals(self._duckdb, source):
            if self.count() == 0:
                self._take_type(session.key_type(source.first[0], self._key_field))
            self._connection.register("streaming", source.reader())
            self._connection.execute(
                "CREATE OR REPLACE TEMP TABLE arriving AS SELECT line, row_number() OVER () AS place FROM streaming"
            )
            self._connection.unregister("streaming")
            arriving = self._store.arriving(self._key_field, self._documents.key_type, ", place")
            self._connection.execute(f"INSERT OR REPLACE INTO documents {_last_of_each(arriving)}")

    def _take_type(self, type_: str) -> None:
        # The type of keys can still be changed while the store is empty.
        if type_ != self._documents.key_type:
            self._connection.execute(
                f"CREATE OR REPLACE TABLE documents (key {type_} PRIMARY KEY, document {self._store.column_type})"
            )
            self._documents = self._store.documents(type_)

    def delete(self, keys: Sequence[Key]) -> None:
        """Delete the documents with these keys."""
        wanted = session.fitting(keys, self._documents.key_type)
        if wanted:
            self.forget()
            self._connection.execute("DELETE FROM documents WHERE key IN (SELECT unnest($keys))", {"keys": wanted})

    def settle(self) -> None:
        """Make a checkpoint, which moves the log into the table."""
        self._connection.execute("CHECKPOINT")


def _last_of_each(arriving: str) -> str:
    last = "QUALIFY row_number() OVER (PARTITION BY key ORDER BY place DESC) = 1"
    return f"SELECT key, document FROM ({arriving}) AS found(key, document, place) {last}"


class DuckVariant(KeyedTable):
    """Stores documents in a column of type VARIANT, which DuckDB shreds, that is divides into typed columns."""

    format = "duckdb-variant"
    title = "DuckDB VARIANT"
    column_type = "VARIANT"
    maturity = Maturity(Stage.YOUNG, "VARIANT came with DuckDB 1.4 in 2025; one implementation reads its tables")

    def documents(self, key_type: str) -> DocumentRelation:
        """Return the SQL expressions. Documents are read as JSON text, because reading them as Python objects is
        slower."""
        return DocumentRelation(
            "documents", "CAST(to_json(document) AS VARCHAR)", VariantValue("document"), "key", key_type
        )


class DuckJson(KeyedTable):
    """Stores documents in a column of type JSON, with their original text."""

    format = "duckdb-json"
    title = "DuckDB JSON"
    column_type = "JSON"
    maturity = Maturity(Stage.YOUNG, "DuckDB's file format is stable since 1.0 of 2024; one implementation reads it")

    def documents(self, key_type: str) -> DocumentRelation:
        """Return the SQL expressions. Documents are read as JSON text."""
        return DocumentRelation("documents", "CAST(document AS VARCHAR)", JsonValue("document"), "key", key_type)


class DuckNested(DuckStore):
    """Stores documents in a table with a column for each field. A field whose type differs between documents is stored
    as JSON.

    Later writes are not supported, because a new type would need a new column.
    """

    format = "duckdb-nested"
    title = "DuckDB columns"
    maturity = DuckJson.maturity
    offers = DocumentOffers(get=True, project=True, operators=OPERATORS)

    @property
    def losses(self) -> tuple[DocumentLoss, ...]:
        """Losses that occur because all documents get the same schema."""
        return (*JSON_TEXT, *DUCKDB_LOSSES)

    def ingest(
        self, batches: Iterable[Batch], location: Path, key: str = "id", accepted: Callable[[], None] = _nothing
    ) -> None:
        """Find a type for each field of all documents, then write the table."""
        connection = session.connect(self._duckdb, location, self.threads)
        try:
            with session.refusals(self._duckdb):
                structure, holds_nulls = bigint_structure(connection, session.lines_of(batches), key)
                arriving = f"SELECT unnest(from_json(CAST(line AS JSON), {Quoted.text(structure)})) FROM arriving"
                connection.execute(f"CREATE TABLE documents AS {arriving}")
                if not holds_nulls:
                    connection.execute(f"COMMENT ON TABLE documents IS {Quoted.text(NO_NULLS)}")
            accepted()
        finally:
            connection.close()

    def open(self, location: Path, key: str = "id") -> DuckDocuments:
        """Open a connection to the file."""
        connection = self._connect(location)
        described = self._described(connection, location)
        comments = connection.execute("SELECT comment FROM duckdb_tables() WHERE table_name = 'documents'").fetchall()
        return DuckDocuments(
            self._duckdb, connection, in_columns("documents", described, key, comments != [(NO_NULLS,)]), key
        )


VARIANT = (DuckVariant,)
JSON = (DuckJson,)
NESTED = (DuckNested,)
