"""PostgreSQL: a table of keys and JSONB behind a server of one's own, whose data directory is the stored copy."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

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
    parts,
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

SCAN_DOCUMENTS = 1_024
"""Documents that a scan gives at a time."""

_LIMITS = "54"
"""How the codes of errors begin that are about a statement's size, or a document's, and not about what is stored."""

_SPACE = "documents"
"""A tablespace of the table's own: its folder holds the documents and nothing else."""


def _nothing() -> None:
    return


class PostgresqlJsonb(DocumentStoreAdapter):
    """psycopg and a server that is started for the stored copy alone. Its settings are PostgreSQL's own: every commit
    is synced. Nothing is vacuumed behind its back, but at the end of an ingestion and where it is told to settle."""

    format = "postgresql-jsonb"
    engine = "psycopg"
    title = "PostgreSQL JSONB"
    distributions: ClassVar[tuple[str, ...]] = ("psycopg", "psycopg-binary", "msgspec")
    programs: ClassVar[tuple[Program, ...]] = (Program("postgresql", servers.version, servers.INSTALL),)
    suffix = ".postgresql"
    is_folder = True
    capabilities = frozenset({Can.PROJECTION, Can.APPEND, Can.NESTED, Can.OTHER_LANGUAGES, Can.NO_PICKLE})
    maturity = Maturity(
        Stage.ESTABLISHED, "JSONB since 2014, in use everywhere; a release reads its own files, others take a dump"
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
        """What JSON has no notation for, and what decimal numbers and PostgreSQL's texts are not."""
        return (*JSON_TEXT, MINUS_ZERO_AS_ZERO, LARGE_WHOLE_AS_INTEGER, NUL_REFUSED)

    @property
    def reads_unseen(self) -> bool:
        """Its server reads."""
        return True

    def load_library(self) -> None:
        """Import psycopg."""
        import psycopg

        self._psycopg = psycopg
        self._begun: dict[Path, servers.Server] = {}

    def begin(self, location: Path) -> None:
        """A server for this place, with an empty data directory where there is none."""
        if location not in self._begun:
            self._begun[location] = self._started(location)

    def end(self, location: Path) -> None:
        """Stop it."""
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
        """The server of this place that runs already, or else one for as long as this lasts."""
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
        """One COPY and the index of the keys in one transaction; then statistics, and a checkpoint."""
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
        # Frozen: nobody else sees the table before it is whole, so that no later pass has to mark its rows.
        with connection.cursor().copy("COPY documents FROM STDIN (FREEZE)") as copy:
            while rows:
                _check_keys(rows, type_)
                for row in rows:
                    copy.write_row(row)
                rows = next(arriving, [])

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """What the server says against documents as RefusedData; all else that it says as AdapterError."""
        try:
            yield
        except UnicodeEncodeError as error:
            raise RefusedData(f"a key is no UTF-8: {error}") from None
        except self._psycopg.Error as error:
            told, of_data = _first_line(error), (self._psycopg.DataError, self._psycopg.IntegrityError)
            if isinstance(error, of_data) or (error.sqlstate or "").startswith(_LIMITS):
                raise RefusedData(f"PostgreSQL refuses a document ({told})") from None
            raise AdapterError(f"PostgreSQL cannot do it ({told})") from None

    def open(self, location: Path, key: str = "id") -> PostgresqlHandle:
        """One connection, to the server that runs already or to one that is started for it."""
        if not (location / "PG_VERSION").is_file():
            raise AdapterError(f"{location}: there is no such data directory of PostgreSQL's")
        begun = self._begun.get(location)
        server = begun or self._started(location)
        try:
            return PostgresqlHandle(self, server, location, key, stops=begun is None)
        except BaseException:
            if begun is None:
                server.stop()
            raise

    def data_of(self, location: Path) -> Path:
        """The table, its index and what PostgreSQL keeps beside them: not the 40 MB of an empty server."""
        spaces = location / "pg_tblspc"
        return next(spaces.iterdir(), location) if spaces.is_dir() else location

    def sized_at(self, location: Path) -> Path:
        """The same."""
        return self.data_of(location)

    def stored(self, location: Path) -> Stored:
        """No codec of ours: PostgreSQL compresses what is longer than 2 kB by itself. The release that is used."""
        return Stored(details={"PostgreSQL": servers.version() or ""})


class PostgresqlHandle(StatementHandle):
    """Connections that are open, and the server behind them where it was started for it."""

    def __init__(
        self, store: PostgresqlJsonb, server: servers.Server, location: Path, key: str, *, stops: bool
    ) -> None:
        """`stops`: the server is stopped with it. Raises AdapterError where there is no table of documents."""
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
        """One that nobody uses: a scan that is not at its end has one, and no write may be part of its transaction."""
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
            told = _first_line(error)
            if isinstance(error, self._psycopg.DataError) or (error.sqlstate or "").startswith(_LIMITS):
                raise RefusedQuery(f"PostgreSQL: {told}") from None
            raise AdapterError(f"{self._location}: PostgreSQL cannot read the documents ({told})") from None

    def _rows(self, text: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        with self._reading(), self._connection() as connection:
            found: list[tuple[Any, ...]] = connection.execute(text, parameters).fetchall()
        return found

    def count(self) -> int:
        """By SQL."""
        ((found,),) = self._rows("SELECT count(*) FROM documents")
        return int(found)

    def scan(self, paths: Sequence[FieldPath] | None = None) -> Iterator[list[Document]]:
        """Whole documents as JSON text, or each part as one; no field of JSONB has a NUL in its name."""
        if paths is None or not paths or any("\0" in name for path in paths for name in path):
            for rows in self._some_at_a_time("SELECT CAST(document AS TEXT) FROM documents"):
                documents = document_decoding.whole(rows)
                yield documents if paths is None else [parts(document, paths) for document in documents]
            return
        selected = ", ".join(_at(path).canonical() for path in paths)
        for rows in self._some_at_a_time(f"SELECT {selected} FROM documents"):
            yield document_decoding.assembled(rows, paths)

    def _some_at_a_time(self, text: str) -> Iterator[list[Any]]:
        """By a cursor on the server."""
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
        """By the index of the keys."""
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
        """By a connection that nobody uses."""
        return self._rows(text)

    def translation(self, plan: plans.Plan, known: Known) -> Translation:
        """Of JSONB, with the indexes that there are."""
        document = JsonbValue("documents.document", self._indexed)
        return Translation(plan, PostgresqlDialect(), "documents", document, "documents.key", known)

    def query(self, plan: Plan) -> list[dict[str, Any]]:
        """By SQL. Raises RefusedQuery for what PostgreSQL would answer otherwise than the plan means."""
        told = self.statement(plan)
        return answer(told, self._rows(as_psycopg_takes_it(told.text), told.parameters))

    def upsert(self, batch: Batch) -> None:
        """One INSERT ... ON CONFLICT, synced when this returns; of two documents of one key the last one stays."""
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
        # An empty store does not know yet what its keys are.
        if self.count():
            raise RefusedData(f"a key is {_KEYS[type_]}, those that are there are {_KEYS[self._key_type]}")
        self._write(f"ALTER TABLE documents ALTER COLUMN key TYPE {type_} USING CAST(key AS {type_})")
        self._key_type = type_

    def delete(self, keys: Sequence[Key]) -> None:
        """One DELETE."""
        if wanted := self._fitting(keys):
            self._write(f"DELETE FROM documents WHERE key = ANY(CAST(%s AS {self._key_type}[]))", (wanted,))

    def _write(self, text: str, parameters: Any = None) -> None:
        self.forget()
        self._unsettled = True
        with self._store.refusals(), self._connection() as connection:
            connection.execute(text, parameters)

    def index(self, path: FieldPath) -> None:
        """A B-tree of what lies there as JSONB, which has an order whatever the kinds; its comment is the path."""
        if path in self._indexed or any("\0" in name for name in path):
            return
        told = json.dumps(path)
        name = f"{_INDEX}{hashlib.blake2b(told.encode(), digest_size=8).hexdigest()}"
        with self._reading(), self._connection() as connection, connection.transaction():
            connection.execute(f"CREATE INDEX {name} ON documents ({_at(path).indexed()}) TABLESPACE {_SPACE}")
            connection.execute(f"COMMENT ON INDEX {name} IS {literal(told)}")
            # Without statistics of what is indexed it would not be known when the index pays.
            connection.execute("ANALYZE documents")
        self._indexed |= {path}
        self.write_anew()

    def has_index(self, path: FieldPath) -> bool:
        """By PostgreSQL's own catalogue."""
        return path in self._paths_with_an_index()

    def uses_index(self, plan: Plan) -> bool:
        """By EXPLAIN. A small table is read from end to end, which is quicker there."""
        told = self.statement(plan)
        lines = self._rows(f"EXPLAIN {as_psycopg_takes_it(told.text)}", told.parameters)
        return any(_TAKES_INDEX.search(line) for (line,) in lines)

    def settle(self) -> None:
        """What replaced documents have left behind, statistics, and a checkpoint."""
        if self._unsettled:
            with self._reading(), self._connection() as connection:
                settled(connection)
            self._unsettled = False

    def close(self) -> None:
        """Close the connections, and stop the server where it was started for it."""
        for connection in self._connections:
            connection.close()
        if self._stops:
            self._server.stop()


_INDEX = "by_"
"""What the names of indexes begin with."""

_TAKES_INDEX = re.compile(rf"Index (?:Only )?Scan (?:Backward )?(?:using|on) {_INDEX}")
"""In a line of EXPLAIN, a bitmap's too."""

_KEYS = {"bigint": "a number", "text": "a text"}
"""PostgreSQL's type -> what a key is, for people."""


def key_type(rows: Sequence[tuple[Key, str]]) -> str:
    """The type of the keys, by the first one; bigint where there is none."""
    return "text" if rows and isinstance(rows[0][0], str) else "bigint"


def settled(connection: Any) -> None:
    """Do what PostgreSQL's own daemons would do some time later."""
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
            raise RefusedData(f"the key {key!r} is not {_KEYS[type_]}, as others are")


def _at(path: FieldPath) -> JsonbValue:
    value = JsonbValue("document")
    for name in path:
        value = value.step(name)
    return value


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


ENGINES = (PostgresqlJsonb,)
