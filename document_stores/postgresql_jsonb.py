"""PostgreSQL: a table with a column for the key and a JSONB column for the document. The stored copy is the data
directory of a server that is started for this copy alone."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import Can, Maturity, Program, Stage, Stored
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
from document_stores.shared import postgresql_server as servers
from document_stores.shared.json_losses import JSON_TEXT, LARGE_WHOLE_AS_INTEGER, MINUS_ZERO_AS_ZERO, NUL_REFUSED
from document_stores.sql.answer import answer
from document_stores.sql.postgresql_dialect import PostgresqlDialect, as_psycopg_takes_it
from document_stores.sql.postgresql_values import JsonbValue, literal
from document_stores.sql.statements import StatementHandle
from document_stores.sql.translation import Known, Translation
from libraries.document_queries import plan as plans

if TYPE_CHECKING:
    import pyarrow as pa

_TYPES = {"boolean": "BOOLEAN", "integer": "BIGINT", "double": "DOUBLE", "text": "VARCHAR"}
SCAN_DOCUMENTS = 1_024
"""Number of documents that a scan yields at a time."""

_LIMITS = "54"
"""First digits of PostgreSQL's error codes for statements or documents that are too large."""

_SPACE = "documents"
"""Name of the tablespace of the table. The folder of the tablespace contains only the documents and their indexes."""


def _nothing() -> None:
    return


class PostgresqlJsonb(DocumentStoreAdapter):
    """Writes and reads with psycopg. A server with PostgreSQL's default settings is started only for the stored copy.

    Every commit is synced. Autovacuum is off; VACUUM runs after documents were stored and in `settle`.
    """

    format = "postgresql-jsonb"
    engine = "psycopg"
    title = "PostgreSQL JSONB"
    distributions: ClassVar[tuple[str, ...]] = ("psycopg", "psycopg-binary", "msgspec")
    programs: ClassVar[tuple[Program, ...]] = (Program("postgresql", servers.version, servers.INSTALL),)
    suffix = ".postgresql"
    is_folder = True
    capabilities = frozenset({Can.PROJECTION, Can.APPEND, Can.NESTED, Can.OTHER_LANGUAGES, Can.NO_PICKLE})
    maturity = Maturity(
        Stage.ESTABLISHED, "JSONB since 2014, in use everywhere; a release reads its own files, others need a dump"
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
    server_cache_bytes = servers.BUFFERS_BYTES

    @property
    def losses(self) -> tuple[DocumentLoss, ...]:
        """Losses of values that JSON, decimal numbers or PostgreSQL's texts cannot express."""
        return (*JSON_TEXT, MINUS_ZERO_AS_ZERO, LARGE_WHOLE_AS_INTEGER, NUL_REFUSED)

    @property
    def reads_unseen(self) -> bool:
        """True, because another process, the server, reads the files. Counts of this process's reads do not include
        these reads."""
        return True

    def load_library(self) -> None:
        """Import psycopg."""
        import psycopg

        self._psycopg = psycopg
        self._begun: dict[Path, servers.Server] = {}

    def begin(self, location: Path) -> None:
        """Start a server for this location. If there is no data directory, create an empty one."""
        if location not in self._begun:
            self._begun[location] = self._started(location)

    def end(self, location: Path) -> None:
        """Stop the server."""
        if location in self._begun:
            self._begun.pop(location).stop()

    def _started(self, location: Path) -> servers.Server:
        fresh = not location.exists()
        if fresh:
            servers.make(location)
        server = servers.start(location, self._psycopg, self.threads)
        if fresh:
            try:
                with server.connect(self._psycopg) as connection:
                    connection.execute(f"CREATE TABLESPACE {_SPACE} LOCATION ''")
            except BaseException:
                server.stop()
                raise
        return server

    @contextmanager
    def _served(self, location: Path) -> Iterator[servers.Server]:
        """Yield the running server of this location, or start a server that stops at the end of the `with` block."""
        if location in self._begun:
            yield self._begun[location]
            return
        server = self._started(location)
        try:
            yield server
        finally:
            server.stop()

    def ingest(
        self, batches: Iterable[Batch], location: Path, key: str = "id", accepted: Callable[[], None] = _nothing
    ) -> None:
        """Store all documents by one COPY and create the index of keys, in one transaction. Then update statistics and
        make a checkpoint."""
        with self._served(location) as server, server.connect(self._psycopg) as connection:
            with self.refusals(), connection.transaction():
                self._copy(connection, batches, key)
                connection.execute(f"ALTER TABLE documents ADD PRIMARY KEY (key) USING INDEX TABLESPACE {_SPACE}")
            accepted()
            with self.refusals():
                settled(connection)

    def _copy(self, connection: Any, batches: Iterable[Batch], key: str) -> None:
        arriving = _keyed(batches, key)
        rows = next(arriving, [])
        type_ = key_type(rows)
        connection.execute(
            f"CREATE TABLE documents (key {type_} NOT NULL, document jsonb NOT NULL) TABLESPACE {_SPACE}"
        )
        # With FREEZE, COPY marks the rows as visible to all transactions, so that VACUUM need not do this later.
        with connection.cursor().copy("COPY documents FROM STDIN (FREEZE)") as copy:
            while rows:
                _check_keys(rows, type_)
                for row in rows:
                    copy.write_row(row)
                rows = next(arriving, [])

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """Convert the server's errors about documents to RefusedData, and all other errors to AdapterError."""
        try:
            yield
        except UnicodeEncodeError as error:
            raise RefusedData(f"a key is not UTF-8: {error}") from None
        except self._psycopg.Error as error:
            message, of_data = _first_line(error), (self._psycopg.DataError, self._psycopg.IntegrityError)
            if isinstance(error, of_data) or (error.sqlstate or "").startswith(_LIMITS):
                raise RefusedData(f"PostgreSQL refuses a document ({message})") from None
            raise AdapterError(f"PostgreSQL failed ({message})") from None

    def open(self, location: Path, key: str = "id") -> PostgresqlHandle:
        """Open a connection to the running server. If none is running, start a server, which stops when the handle is
        closed."""
        if not (location / "PG_VERSION").is_file():
            raise AdapterError(f"{location}: the data directory of PostgreSQL does not exist")
        begun = self._begun.get(location)
        server = begun or self._started(location)
        try:
            return PostgresqlHandle(self, server, location, key, stops=begun is None)
        except BaseException:
            if begun is None:
                server.stop()
            raise

    def data_of(self, location: Path) -> Path:
        """Return the folder of the table and its indexes. The rest of the data directory has 40 MB even without
        documents."""
        spaces = location / "pg_tblspc"
        return next(spaces.iterdir(), location) if spaces.is_dir() else location

    def sized_at(self, location: Path) -> Path:
        """Return the folder of the table and its indexes."""
        return self.data_of(location)

    def stored(self, location: Path) -> Stored:
        """Return the server's version and no codec. (PostgreSQL compresses values of more than 2 kB on its own.)"""
        return Stored(details={"PostgreSQL": servers.version() or ""})


class PostgresqlHandle(StatementHandle):
    """Open connections to a server, which the handle also stops if the server was started for it."""

    def __init__(
        self, store: PostgresqlJsonb, server: servers.Server, location: Path, key: str, *, stops: bool
    ) -> None:
        """If `stops` is true, closing the handle stops the server. Raises AdapterError if the table of documents is
        missing."""
        super().__init__()
        self._store, self._server, self._location, self._key, self._stops = store, server, location, key, stops
        self._psycopg = store._psycopg
        self._connections = [server.connect(self._psycopg)]
        self._idle = list(self._connections)
        self._unsettled = False
        try:
            ((self._key_type,),) = self._rows(
                "SELECT format_type(atttypid, NULL) FROM pg_attribute"
                " WHERE attrelid = CAST('documents' AS regclass) AND attname = 'key'"
            )
            self._indexed = self._paths_with_an_index()
        except BaseException:
            self._connections[0].close()
            raise

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """Yield a connection that is not in use. A connection that an unfinished scan uses is not yielded, because a
        write must not be part of the scan's transaction."""
        if not self._idle:
            self._connections.append(self._server.connect(self._psycopg))
            self._idle.append(self._connections[-1])
        connection = self._idle.pop()
        try:
            yield connection
        finally:
            self._idle.append(connection)

    def _paths_with_an_index(self) -> frozenset[FieldPath]:
        rows = self._rows(
            "SELECT obj_description(indexrelid, 'pg_class') FROM pg_index"
            " WHERE indrelid = CAST('documents' AS regclass) AND NOT indisprimary"
        )
        return frozenset(tuple(json.loads(path)) for (path,) in rows)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except self._psycopg.Error as error:
            message = _first_line(error)
            if isinstance(error, self._psycopg.DataError) or (error.sqlstate or "").startswith(_LIMITS):
                raise RefusedQuery(f"PostgreSQL: {message}") from None
            raise AdapterError(f"{self._location}: PostgreSQL cannot read the documents ({message})") from None

    def _rows(self, text: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        with self._reading(), self._connection() as connection:
            found: list[tuple[Any, ...]] = connection.execute(text, parameters).fetchall()
        return found

    def count(self) -> int:
        """Return the number of documents."""
        ((found,),) = self._rows("SELECT count(*) FROM documents")
        return int(found)

    def scan(self, paths: Sequence[FieldPath] | None = None) -> Iterator[list[Document]]:
        """Yield all documents, or their fields at `paths`. PostgreSQL returns each document or field as JSON text."""
        if paths is None or not paths or any("\0" in name for path in paths for name in path):
            for rows in self._some_at_a_time("SELECT CAST(document AS TEXT) FROM documents"):
                documents = document_decoding.whole(rows)
                yield documents if paths is None else [parts(document, paths) for document in documents]
            return
        selected = ", ".join(_at(path).canonical() for path in paths)
        for rows in self._some_at_a_time(f"SELECT {selected} FROM documents"):
            yield document_decoding.assembled(rows, paths)

    def read_table(self, fields: Sequence[TypedField]) -> pa.Table:
        """Select each field as a column of the field's type, and convert the rows to an Arrow table."""
        if any("\0" in name for field in fields for name in field.path):
            return super().read_table(fields)
        selected = ", ".join(_at(field.path).unguarded(_TYPES[field.kind]) for field in fields)
        columns: list[list[Any]] = [[] for _ in fields]
        for rows in self._some_at_a_time(f"SELECT {selected} FROM documents"):
            for column, values in zip(columns, zip(*rows, strict=True), strict=True):
                column.extend(values)
        return table_of_values(fields, columns)

    def _some_at_a_time(self, text: str) -> Iterator[list[Any]]:
        """Yield the rows of a SELECT, SCAN_DOCUMENTS at a time, by a cursor on the server."""
        with (
            self._reading(),
            self._connection() as connection,
            connection.transaction(),
            connection.cursor(name="scanned") as cursor,
        ):
            cursor.execute(text)
            while rows := cursor.fetchmany(SCAN_DOCUMENTS):
                yield rows

    def get(self, keys: Sequence[Key]) -> list[Document | None]:
        """Find the documents with these keys in the index of keys, and return the documents."""
        wanted = self._fitting(keys)
        found: dict[Key, Document] = {}
        if wanted:
            query = "SELECT key, CAST(document AS TEXT) FROM documents WHERE key = ANY(CAST(%s AS {}[]))"
            rows = self._rows(query.format(self._key_type), (wanted,))
            documents = document_decoding.whole([(text,) for _, text in rows])
            found = {key: document for (key, _), document in zip(rows, documents, strict=True)}
        return [found.get(key) if self._fits(key) else None for key in keys]

    def _fits(self, key: Key) -> bool:
        if self._key_type == "bigint":
            return type(key) is int and key in document_encoding.INTEGERS
        return type(key) is str and "\0" not in key and document_encoding.is_utf8(key)

    def _fitting(self, keys: Sequence[Key]) -> list[Key]:
        return list(dict.fromkeys(filter(self._fits, keys)))

    def selected(self, text: str) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT."""
        return self._rows(text)

    def translation(self, plan: plans.Plan, known: Known) -> Translation:
        """Return the translation of a plan to SQL for JSONB, which uses existing indexes."""
        document = JsonbValue("documents.document", self._indexed)
        return Translation(plan, PostgresqlDialect(), "documents", document, "documents.key", known)

    def query(self, plan: Plan) -> list[dict[str, Any]]:
        """Return the rows of a plan, computed by SQL. Raises RefusedQuery if SQL would give another result than the
        plan defines."""
        selection = self.statement(plan)
        return answer(selection, self._rows(as_psycopg_takes_it(selection.text), selection.parameters))

    def upsert(self, batch: Batch) -> None:
        """Store the documents by one synced INSERT ... ON CONFLICT. If several documents of a batch have the same key,
        the last one is kept."""
        rows = document_encoding.keyed_texts(batch, self._key)
        if not rows:
            return
        type_ = key_type(rows)
        _check_keys(rows, type_)
        if type_ != self._key_type:
            self._take_type(type_)
        last = dict(rows)
        self._write(
            "INSERT INTO documents SELECT key, CAST(document AS jsonb)"
            f" FROM unnest(CAST(%b AS {type_}[]), CAST(%b AS text[])) AS arriving(key, document)"
            " ON CONFLICT (key) DO UPDATE SET document = excluded.document",
            (list(last), list(last.values())),
        )

    def _take_type(self, type_: str) -> None:
        # The type of keys can still be changed while the store is empty.
        if self.count():
            raise RefusedData(f"a key is {_KEYS[type_]}, but each key in the store is {_KEYS[self._key_type]}")
        self._write(f"ALTER TABLE documents ALTER COLUMN key TYPE {type_} USING CAST(key AS {type_})")
        self._key_type = type_

    def delete(self, keys: Sequence[Key]) -> None:
        """Delete the documents with these keys by one DELETE."""
        if wanted := self._fitting(keys):
            self._write(f"DELETE FROM documents WHERE key = ANY(CAST(%s AS {self._key_type}[]))", (wanted,))

    def _write(self, text: str, parameters: Any = None) -> None:
        self.forget()
        self._unsettled = True
        with self._store.refusals(), self._connection() as connection:
            connection.execute(text, parameters)

    def index(self, path: FieldPath) -> None:
        """Create a B-tree index of the field's JSONB values, because JSONB orders values of all types. The field's path
        is stored as the comment of the index."""
        if path in self._indexed or any("\0" in name for name in path):
            return
        text = json.dumps(path)
        name = f"{_INDEX}{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"
        with self._reading(), self._connection() as connection, connection.transaction():
            connection.execute(f"CREATE INDEX {name} ON documents ({_at(path).indexed()}) TABLESPACE {_SPACE}")
            connection.execute(f"COMMENT ON INDEX {name} IS {literal(text)}")
            # The planner needs statistics of the indexed expression to know when the index pays.
            connection.execute("ANALYZE documents")
        self._indexed |= {path}
        self.write_anew()

    def has_index(self, path: FieldPath) -> bool:
        """Return whether PostgreSQL's catalogue contains an index of the path."""
        return path in self._paths_with_an_index()

    def uses_index(self, plan: Plan) -> bool:
        """Return whether PostgreSQL uses an index for the plan, according to EXPLAIN. PostgreSQL scans small tables
        without the index, because a scan is faster."""
        selection = self.statement(plan)
        lines = self._rows(f"EXPLAIN {as_psycopg_takes_it(selection.text)}", selection.parameters)
        return any(_TAKES_INDEX.search(line) for (line,) in lines)

    def settle(self) -> None:
        """Remove old versions of replaced documents, update statistics, and make a checkpoint."""
        if self._unsettled:
            with self._reading(), self._connection() as connection:
                settled(connection)
            self._unsettled = False

    def close(self) -> None:
        """Close the connections, and stop the server if it was started for this handle."""
        for connection in self._connections:
            connection.close()
        if self._stops:
            self._server.stop()


_INDEX = "by_"
"""Prefix of the names of indexes."""

_TAKES_INDEX = re.compile(rf"Index (?:Only )?Scan (?:Backward )?(?:using|on) {_INDEX}")
"""Pattern for lines of EXPLAIN that report the use of an index, including bitmap scans."""

_KEYS = {"bigint": "a number", "text": "a text"}
"""PostgreSQL's types of keys, with their names in error messages."""


def key_type(rows: Sequence[tuple[Key, str]]) -> str:
    """Return PostgreSQL's type for the keys, which the first key determines, or 'bigint' if there are no keys."""
    return "text" if rows and isinstance(rows[0][0], str) else "bigint"


def settled(connection: Any) -> None:
    """Do now the maintenance that PostgreSQL's background processes would do later: VACUUM and a checkpoint."""
    connection.execute("VACUUM (ANALYZE) documents")
    connection.execute("CHECKPOINT")


def _keyed(batches: Iterable[Batch], key: str) -> Iterator[list[tuple[Key, str]]]:
    first = 0
    for batch in batches:
        rows = document_encoding.keyed_texts(batch, key, first)
        first += len(rows)
        if rows:
            yield rows


def _check_keys(rows: Sequence[tuple[Key, str]], type_: str) -> None:
    kind = str if type_ == "text" else int
    for key, _ in rows:
        if type(key) is not kind:
            raise RefusedData(f"the first key is {_KEYS[type_]}, but the key {key!r} is not")


def _at(path: FieldPath) -> JsonbValue:
    value = JsonbValue("document")
    for name in path:
        value = value.step(name)
    return value


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


ENGINES = (PostgresqlJsonb,)
