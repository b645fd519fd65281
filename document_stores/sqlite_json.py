"""SQLite: a table with columns for key and JSON text, queried with SQLite's JSON functions and expression indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import Can, Maturity, Stage, Stored
from adapters.document_store import (
    Batch,
    Document,
    DocumentLoss,
    DocumentOffers,
    DocumentStoreAdapter,
    FieldPath,
    Key,
    Plan,
    RefusedQuery,
    TypedField,
    parts,
    table_of_values,
)
from adapters.errors import AdapterError, RefusedData
from document_stores.shared import document_decoding, document_encoding
from document_stores.shared.json_losses import JSON_TEXT
from document_stores.sql.answer import Selection, answer
from document_stores.sql.sqlite_dialect import SqliteDialect
from document_stores.sql.sqlite_values import SqliteValue, can_name
from document_stores.sql.statements import StatementHandle
from document_stores.sql.translation import Known, Translation
from libraries.document_queries import plan as plans

if TYPE_CHECKING:
    import sqlite3

    import pyarrow as pa

SCAN_DOCUMENTS = 1_024
"""Number of documents that a scan yields at a time."""

KEYS_AT_A_TIME = 500
"""Number of keys in one query. SQLite accepts at least 999 parameters."""

# The key column has no type, so that SQLite stores integers as integers and texts as texts.
_CREATE = "CREATE TABLE documents (key PRIMARY KEY NOT NULL, document TEXT NOT NULL)"
_PUT = "INSERT INTO documents VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET document = excluded.document"
_ADD = "INSERT INTO documents VALUES (?, ?)"
_OF_DOCUMENTS = " ON documents ("
"""Part of the SQL of an index, between the name of the index and its expression."""
_INDEX = "field_"
"""Prefix of the names of indexes."""

_TOO_MUCH = (
    "parser stack overflow",
    "Expression tree is too large",
    "query string is too large",
    "too many",
    "at most",
)
"""Parts of SQLite's error messages that mean that a query is too large, not that stored data are damaged."""


def _nothing() -> None:
    return


class SqliteJson(DocumentStoreAdapter):
    """Writes and reads with Python's sqlite3. Each document is a row. SQLite is used with its default settings, so
    every commit is synced.

    `ingest` stores all documents in one transaction. Each later upsert is a transaction.
    """

    format = "sqlite-json"
    engine = "sqlite3"
    title = "SQLite JSON"
    distributions: ClassVar[tuple[str, ...]] = ("msgspec",)
    suffix = ".sqlite"
    capabilities = frozenset(
        {Can.PROJECTION, Can.APPEND, Can.NESTED, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE}
    )
    maturity = Maturity(
        Stage.ESTABLISHED, "a published format, readable since 2004 and pledged until 2050; in use everywhere"
    )
    offers = DocumentOffers(
        get=True,
        project=True,
        upsert=True,
        delete=True,
        index=True,
        operators=frozenset({"filter", "unnest", "project", "group_by", "count", "compute", "top_k", "limit"}),
    )
    syncs_on_save = True

    @property
    def losses(self) -> tuple[DocumentLoss, ...]:
        """Losses of values that JSON cannot express."""
        return JSON_TEXT

    def load_library(self) -> None:
        """Import sqlite3."""
        import sqlite3

        self._sqlite3 = sqlite3

    def ingest(
        self, batches: Iterable[Batch], location: Path, key: str = "id", accepted: Callable[[], None] = _nothing
    ) -> None:
        """Insert all documents in one transaction."""
        first = 0
        with closing(self._sqlite3.connect(location, isolation_level=None)) as connection:
            connection.execute("BEGIN")
            connection.execute(_CREATE)
            for batch in batches:
                rows = document_encoding.keyed_texts(batch, key, first)
                self._put(connection, _ADD, rows)
                first += len(rows)
            connection.execute("COMMIT")
        accepted()

    def _put(self, connection: sqlite3.Connection, statement: str, rows: list[tuple[Key, str]]) -> None:
        try:
            connection.executemany(statement, rows)
        except (self._sqlite3.Error, UnicodeEncodeError, OverflowError) as error:
            raise RefusedData(f"SQLite refuses a document ({error})") from None
        if any("\\u0000" in text for _, text in rows):
            connection.execute("PRAGMA user_version = 1")

    def open(self, location: Path, key: str = "id") -> SqliteHandle:
        """Open a connection to the file."""
        if not location.is_file():
            raise AdapterError(f"{location}: the file does not exist")
        connection = self._sqlite3.connect(location, isolation_level=None)
        # Otherwise SQLite writes temporary results that exceed the cache to files next to the store.
        connection.execute("PRAGMA temp_store = MEMORY")
        try:
            connection.execute("SELECT key, document FROM documents LIMIT 1").fetchone()
        except self._sqlite3.Error as error:
            connection.close()
            raise AdapterError(f"{location}: cannot be read as a table of documents ({error})") from None
        return SqliteHandle(self, connection, location, key)

    def stored(self, location: Path) -> Stored:
        """Return SQLite's version and no codec."""
        return Stored(details={"SQLite": self._sqlite3.sqlite_version})


class SqliteHandle(StatementHandle):
    """An open connection to the file."""

    def __init__(self, store: SqliteJson, connection: sqlite3.Connection, location: Path, key: str) -> None:
        """Take ownership of the connection, which `close` closes."""
        super().__init__()
        self._store, self._connection, self._location, self._key = store, connection, location, key
        self._errors = store._sqlite3.Error
        self._indexed = self._expressions_with_an_index()

    def _expressions_with_an_index(self) -> frozenset[str]:
        rows = self._rows("SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
        return frozenset(text.partition(_OF_DOCUMENTS)[2].removesuffix(")") for (text,) in rows)

    def _rows(self, query: str, parameters: Any = ()) -> Iterator[tuple[Any, ...]]:
        cursor = self._connection.cursor()
        try:
            yield from cursor.execute(query, parameters)
        except self._errors as error:
            if any(words in str(error) for words in _TOO_MUCH):
                raise RefusedQuery(f"SQLite: {error}") from None
            raise AdapterError(f"{self._location}: SQLite cannot read the documents ({error})") from None
        finally:
            cursor.close()

    def count(self) -> int:
        """Return the number of documents."""
        ((found,),) = self._rows("SELECT count(*) FROM documents")
        return int(found)

    def scan(self, paths: Sequence[FieldPath] | None = None) -> Iterator[list[Document]]:
        """Yield all documents, or their fields at `paths`. SQLite extracts the fields if it can express all paths;
        otherwise they are taken from whole documents."""
        if paths is None or not paths or not all(can_name(name) for path in paths for name in path):
            for rows in _grouped(self._rows("SELECT document FROM documents")):
                documents = document_decoding.whole(rows)
                yield documents if paths is None else [parts(document, paths) for document in documents]
            return
        selected = ", ".join(_at(path).canonical() for path in paths)
        for rows in _grouped(self._rows(f"SELECT {selected} FROM documents")):
            yield document_decoding.assembled(rows, paths)

    def read_table(self, fields: Sequence[TypedField]) -> pa.Table:
        """Select all fields, and make columns of the rows. Read whole documents instead in two cases: a text of any
        document contains a NUL, at which SQLite would end the text, or SQLite cannot express a field's name."""
        ((flags,),) = self._rows("PRAGMA user_version")
        if flags or not all(can_name(name) for field in fields for name in field.path):
            return super().read_table(fields)
        selected = ", ".join(_at(field.path).unguarded("") for field in fields)
        rows = list(self._rows(f"SELECT {selected} FROM documents"))
        return table_of_values(fields, list(zip(*rows, strict=True)) or [[] for _ in fields])

    def get(self, keys: Sequence[Key]) -> list[Document | None]:
        """Find the documents with these keys by the primary key, and return the documents."""
        wanted = document_encoding.possible(keys)
        found: dict[tuple[type, Key], Document] = {}
        for first in range(0, len(wanted), KEYS_AT_A_TIME):
            some = wanted[first : first + KEYS_AT_A_TIME]
            places = ", ".join("?" for _ in some)
            for key, text in self._rows(f"SELECT key, document FROM documents WHERE key IN ({places})", some):
                found[type(key), key] = document_encoding.values_of(text.encode())[0]
        return [found.get((type(key), key)) for key in keys]

    def selected(self, text: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a SELECT."""
        return self._rows(text)

    def check(self, selection: Selection) -> None:
        """Raise RefusedQuery if a document has a text with a NUL and the SELECT reads texts, because SQLite would end
        the text at the NUL."""
        ((flags,),) = self._rows("PRAGMA user_version")
        # Items are read by `value`, which also ends at a NUL.
        if flags and ("json_extract" in selection.text or ".value" in selection.text):
            raise RefusedQuery("a text contains a NUL, and SQLite would end the text there")

    def translation(self, plan: plans.Plan, known: Known) -> Translation:
        """Return the translation of a plan to SQL for JSON texts, which uses existing indexes."""
        document = SqliteValue("document", indexed=self._indexed)
        return Translation(plan, SqliteDialect(), "documents", document, "key", known)

    def query(self, plan: Plan) -> list[dict[str, Any]]:
        """Return the rows of a plan, computed by SQL. Raises RefusedQuery if SQL would give another result than the
        plan defines."""
        selection = self.statement(plan)
        return answer(selection, self._rows(selection.text, selection.parameters))

    def upsert(self, batch: Batch) -> None:
        """Store the documents of a batch in one synced transaction."""
        rows = document_encoding.keyed_texts(batch, self._key)
        if not rows:
            return
        with self._transaction():
            self._store._put(self._connection, _PUT, rows)

    def delete(self, keys: Sequence[Key]) -> None:
        """Delete the documents with these keys in one transaction."""
        wanted = document_encoding.possible(keys)
        if wanted:
            with self._transaction():
                self._connection.executemany("DELETE FROM documents WHERE key = ?", [(key,) for key in wanted])

    def _transaction(self) -> sqlite3.Connection:
        # As a context manager, the connection commits, or rolls back after an error.
        self.forget()
        self._connection.execute("BEGIN")
        return self._connection

    def index(self, path: FieldPath) -> None:
        """Create an index of the expression that queries use for this field. Do nothing if a path in SQLite cannot
        express the field's name."""
        if not all(map(can_name, path)):
            return
        expression = _at(path).indexed()
        if expression not in self._indexed:
            # Name the index by a number, not after the field, because SQLite ignores case in the names of indexes.
            self._connection.execute(f"CREATE INDEX {_INDEX}{len(self._indexed)}{_OF_DOCUMENTS}{expression})")
            self._indexed = self._expressions_with_an_index()
            self.write_anew()

    def has_index(self, path: FieldPath) -> bool:
        """Return whether SQLite's catalogue contains an index of the path."""
        return all(map(can_name, path)) and _at(path).indexed() in self._expressions_with_an_index()

    def uses_index(self, plan: Plan) -> bool:
        """Return whether SQLite uses an index of a field for the plan, according to EXPLAIN QUERY PLAN."""
        selection = self.statement(plan)
        steps = self._rows(f"EXPLAIN QUERY PLAN {selection.text}", selection.parameters)
        return any(f" USING INDEX {_INDEX}" in step[-1] for step in steps)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _at(path: FieldPath) -> SqliteValue:
    value = SqliteValue("document")
    for name in path:
        value = value.step(name)
    return value


def _grouped(rows: Iterator[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    group: list[tuple[Any, ...]] = []
    for row in rows:
        group.append(row)
        if len(group) == SCAN_DOCUMENTS:
            yield group
            group = []
    if group:
        yield group


ENGINES = (SqliteJson,)
