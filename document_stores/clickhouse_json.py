"""ClickHouse's JSON type, by chdb, which runs ClickHouse within the Python process. A folder holds one MergeTree table.

ClickHouse locks the folder, so only one process at a time can open a store. A process can have only one store open at a
time.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar

from adapters.contract import Can, Maturity, Stage, Stored
from adapters.document_store import (
    Batch,
    Document,
    DocumentHandle,
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
from document_stores.shared import document_encoding
from document_stores.shared import duckdb_session as arrow_texts
from document_stores.shared.dropped_paths import DroppedPaths
from document_stores.shared.json_losses import (
    EMPTY_OBJECTS_DROPPED,
    ENCODED_DOT_REFUSED,
    JSON_TEXT,
    NULLS_DROPPED,
    WHOLE_AS_INTEGER,
)
from document_stores.sql.answer import answer
from document_stores.sql.clickhouse_dialect import ClickhouseDialect, bound
from document_stores.sql.clickhouse_values import ClickhouseValue, literal, quoted
from document_stores.sql.statements import StatementHandle
from document_stores.sql.translation import Known, Translation
from libraries.document_queries import plan as plans

SCAN_DOCUMENTS = 2_048
"""Number of documents that a scan yields at a time."""

KEYS_AT_A_TIME = 1_000
"""Number of keys in one query."""

_SETTINGS = {
    # Otherwise `{"a.b": 1}` and `{"a": {"b": 1}}` would be the same, texts could become times, and booleans in arrays
    # could become numbers or texts.
    "json_type_escape_dots_in_keys": "1",
    "input_format_try_infer_dates": "0",
    "input_format_try_infer_datetimes": "0",
    "input_format_json_read_bools_as_numbers": "0",
    "input_format_json_read_bools_as_strings": "0",
    "input_format_json_read_numbers_as_strings": "0",
    # As in standard SQL.
    "cast_keep_nullable": "1",
    "aggregate_functions_null_for_empty": "1",
    "max_query_size": str(1 << 24),
}

_TOO_MUCH = re.compile(r"^Code: (62|167|168|306|308)\.")
"""Pattern of ClickHouse's errors for queries that are too large or too deeply nested."""

_NOT_OF_DATA = re.compile(r"^Code: (7[3-6]|173|241|243)\.")
"""Pattern of ClickHouse's errors that are not about the documents: files cannot be written, or too little memory or
disk is free."""

_ENCODED_DOT = re.compile(rb"%2E|\\u00(?:25|32|45)")
"""Pattern of JSON text in which a name may contain '%2E', which ClickHouse writes instead of a dot in a name."""


def _nothing() -> None:
    return


class ClickhouseJson(DocumentStoreAdapter):
    """Stores documents in a column of type JSON, sorted by a column that is computed from the key field.

    Later writes are not supported: ClickHouse adds rows without looking for rows of the same key, and replaces and
    deletes rows in the background.
    """

    format = "clickhouse-json"
    engine = "chdb"
    title = "ClickHouse JSON"
    distributions: ClassVar[tuple[str, ...]] = ("chdb", "chdb-core", "msgspec")
    suffix = ".clickhouse"
    is_folder = True
    survives_fork: ClassVar[bool] = False
    capabilities = frozenset({Can.PROJECTION, Can.APPEND, Can.NESTED, Can.OTHER_LANGUAGES, Can.NO_PICKLE})
    maturity = Maturity(Stage.YOUNG, "ClickHouse's JSON type is stable since 25.3 of 2025; one implementation reads it")
    offers = DocumentOffers(
        get=True,
        project=True,
        operators=frozenset({"filter", "project", "group_by", "count", "compute", "top_k", "limit"}),
    )

    @property
    def losses(self) -> tuple[DocumentLoss, ...]:
        """Losses of values that JSON cannot express, and of nulls and empty objects: ClickHouse stores only paths that
        have a value."""
        return (*JSON_TEXT, WHOLE_AS_INTEGER, NULLS_DROPPED, EMPTY_OBJECTS_DROPPED, ENCODED_DOT_REFUSED)

    def load_library(self) -> None:
        """Import chdb, which starts ClickHouse's threads, and the modules that exchange data with it."""
        import chdb.session
        import msgspec
        import pandas
        import pyarrow

        self._session_type = chdb.session.Session
        self._others = msgspec, pandas, pyarrow

    def stored(self, location: Path) -> Stored:
        """Return no codec: the store leaves the codec to ClickHouse, whose default is LZ4."""
        return Stored()

    def ingest(
        self, batches: Iterable[Batch], location: Path, key: str = "id", accepted: Callable[[], None] = _nothing
    ) -> None:
        """Insert all documents by one statement, then merge the parts that ClickHouse has written."""
        dropped = DroppedPaths()
        texts = _checked(batches, dropped)
        first = next(texts, b"")
        with closing(self._connect(location)) as session:
            session.query(f"CREATE TABLE documents ({_columns(first, key)}) ENGINE = MergeTree ORDER BY key {_CLEANUP}")
            if first:
                self._insert(session, first, texts)
            session.query(f"ALTER TABLE documents MODIFY COMMENT {literal(dropped.json())}")
            accepted()
            _merge(session)

    def _insert(self, session: Any, first: bytes, texts: Iterator[bytes]) -> None:
        with _refusals(), session.send_insert("INSERT INTO documents (document)", "JSONAsObject") as insertion:
            number = 0
            for text in itertools.chain([first], texts):
                insertion.append(text)
                number += _lines(text)
            written = insertion.finish().rows_written
        if written != number:
            raise RefusedData(f"ClickHouse found {written} documents in {number} lines; a line must have one document")
        # On a full disk chdb reports success, and no document is stored.
        stored = int(_one_row(session, "SELECT count() FROM documents")[0])
        if stored != number:
            raise AdapterError(f"ClickHouse gave no error but stored {stored} of {number} documents; is the disk full?")

    def open(self, location: Path, key: str = "id") -> DocumentHandle:
        """Open a session. A process that has an open session for another folder must close that session first."""
        if not (location / "metadata").is_dir():
            raise AdapterError(f"{location}: is not a database folder of ClickHouse")
        session = self._connect(location)
        try:
            type_, comment, damaged = _one_row(session, _ABOUT)
        except (RuntimeError, ValueError) as error:
            session.close()
            raise AdapterError(f"{location}: has no table of documents ({_first_line(error)})") from None
        if damaged != "0":
            session.close()
            raise AdapterError(f"{location}: is damaged; ClickHouse has put aside {damaged} parts that it cannot read")
        return ClickhouseHandle(session, location, type_, DroppedPaths.of_json(comment))

    def _connect(self, location: Path) -> Any:
        if "?" in str(location):
            raise AdapterError(f"{location}: chdb cannot open paths with a question mark")
        try:
            session = self._session_type(str(location))
        except RuntimeError as error:
            raise AdapterError(f"{location}: chdb cannot open it ({_first_line(error)})") from None
        threads = {"max_threads": "1"} if self.threads == 1 else {}
        session.query("SET " + ", ".join(f"{name} = {value}" for name, value in {**_SETTINGS, **threads}.items()))
        return session


_ABOUT = (
    "SELECT type, (SELECT comment FROM system.tables WHERE database = 'default' AND name = 'documents'),"
    " (SELECT count() FROM system.detached_parts WHERE database = 'default' AND table = 'documents')"
    " FROM system.columns WHERE database = 'default' AND table = 'documents' AND name = 'key'"
)
"""SELECT of the type of keys, the table's comment, and the number of damaged parts. ClickHouse reports no error for
damaged parts, but omits their rows."""

_PARTS = (
    "SELECT countIf(active), countIf(NOT active) FROM system.parts WHERE database = 'default' AND table = 'documents'"
)

_CLEANUP = "SETTINGS old_parts_lifetime = 0, cleanup_delay_period = 1, cleanup_delay_period_random_add = 0"
"""Settings of the table. With these settings, ClickHouse removes merged parts at once instead of minutes later."""

CLEANUP_LOOK_S, CLEANUP_LOOKS = 0.05, 1_200
"""Interval in seconds between checks whether ClickHouse has removed merged parts, and the number of checks after which
waiting fails."""


def _one_row(session: Any, query: str) -> list[str]:
    """Execute a query that returns one row, and return the values of this row as texts."""
    found: str = session.query(query, "TSVRaw").bytes().decode()
    return found.rstrip("\n").split("\t")


def _merge(session: Any) -> None:
    """Merge the parts of the table if there are several, and wait until ClickHouse has removed the files of merged
    parts."""
    if int(_one_row(session, _PARTS)[0]) > 1:
        # A table of one part would be written again.
        session.query("OPTIMIZE TABLE documents FINAL")
    pause = threading.Event()
    for _ in range(CLEANUP_LOOKS):
        if int(_one_row(session, _PARTS)[1]) == 0:
            return
        pause.wait(CLEANUP_LOOK_S)
    raise AdapterError(f"ClickHouse has not removed merged parts within {CLEANUP_LOOKS * CLEANUP_LOOK_S:.0f} s")


def _columns(first: bytes, key: str) -> str:
    """Return SQL for the table's columns. The first document determines the type of keys."""
    type_ = "Int64"
    if first:
        line = next(line for line in first.split(b"\n") if line.strip())
        is_text = isinstance(document_encoding.key_of(document_encoding.parsed(line)[0], key, 0), str)
        type_ = "String" if is_text else "Int64"
    try:
        part = f"document.{quoted((key,))}.:{type_}"
    except ValueError as error:
        raise RefusedData(f"the name of the key cannot be used: {error}") from None
    wanted = "a text" if type_ == "String" else "an int of 64 bits"
    missing = f"throwIf(isNull({part}), {literal(f'a document has a key that is not {wanted}')})"
    return f"document JSON, key {type_} MATERIALIZED if({missing} = 0, assumeNotNull({part}), NULL)"


def _checked(batches: Iterable[Batch], dropped: DroppedPaths) -> Iterator[bytes]:
    """Yield each batch as JSON Lines, and record the paths of nulls and empty objects, which ClickHouse will drop.
    Raises RefusedData for invalid documents that ClickHouse would accept, and for names that ClickHouse would
    change."""
    first = 0
    for text in document_encoding.lines(batches):
        document_encoding.strict(text, first)
        # ClickHouse also accepts an array of documents.
        if not text.lstrip().startswith(b"{"):
            document_encoding.parsed(text, first)
        if _ENCODED_DOT.search(text):
            for number, document in enumerate(document_encoding.parsed(text, first), start=first):
                if _has_encoded_dot(document):
                    raise RefusedData(
                        f"document {number}: a field name has '%2E', which ClickHouse would change to '.'"
                    )
        dropped.add(text)
        yield text
        first += _lines(text)


def _has_encoded_dot(value: Any) -> bool:
    if isinstance(value, dict):
        return any("%2E" in name or _has_encoded_dot(inner) for name, inner in value.items())
    return isinstance(value, list) and any(map(_has_encoded_dot, value))


def _lines(text: bytes) -> int:
    """Return the number of lines that are not blank."""
    return sum(1 for line in text.split(b"\n") if line and not line.isspace())


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0][:300]


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        if _NOT_OF_DATA.match(str(error)):
            raise AdapterError(f"ClickHouse cannot store the documents ({_first_line(error)})") from None
        raise RefusedData(f"ClickHouse refuses a document ({_first_line(error)})") from None


class ClickhouseHandle(StatementHandle):
    """An open session, for reading."""

    def __init__(self, session: Any, location: Path, key_type: str, dropped: DroppedPaths) -> None:
        """Take ownership of the session, which `close` closes."""
        super().__init__()
        self._session, self._location, self._key_type = session, location, key_type
        self._document = ClickhouseValue("document", dropped=dropped)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            if _TOO_MUCH.match(str(error)):
                raise RefusedQuery(f"ClickHouse: {_first_line(error)}") from None
            raise AdapterError(
                f"{self._location}: ClickHouse cannot read the documents ({_first_line(error)})"
            ) from None

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        with self._errors():
            table = self._session.query(query, "ArrowTable")
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def count(self) -> int:
        """Return the number of documents."""
        ((found,),) = self._rows("SELECT count() FROM documents")
        return int(found)

    def scan(self, paths: Sequence[FieldPath] | None = None) -> Iterator[list[Document]]:
        """Yield all documents, or their fields at `paths`. ClickHouse returns each document or field as JSON text."""
        selected = None if paths is None else _selected(paths)
        if paths is not None and selected is None:
            for batch in self.scan():
                yield [parts(document, paths) for document in batch]
            return
        text = selected or "concat(toJSONString(document), '\\n')"
        with self._errors():
            stream = self._session.send_query(f"SELECT {text} FROM documents", "Arrow")
            reader = stream.record_batch(SCAN_DOCUMENTS)
            try:
                for batch in reader:
                    if batch.num_rows == 0:
                        continue
                    if paths is None:
                        yield document_encoding.values_of(arrow_texts.text_bytes(batch.column(0)))
                    else:
                        yield arrow_texts.assembled(batch, paths)
            finally:
                stream.close()

    def get(self, keys: Sequence[Key]) -> list[Document | None]:
        """Return the documents with these keys. ClickHouse finds documents fast, because the table is sorted by key."""
        wanted_type = str if self._key_type == "String" else int
        wanted = document_encoding.possible(key for key in keys if type(key) is wanted_type)
        found: dict[Key, Document] = {}
        for first in range(0, len(wanted), KEYS_AT_A_TIME):
            some = ", ".join(map(literal, wanted[first : first + KEYS_AT_A_TIME]))
            for key, text in self._rows(f"SELECT key, toJSONString(document) FROM documents WHERE key IN ({some})"):
                found[key] = document_encoding.values_of(text.encode())[0]
        return [found.get(key) if type(key) is wanted_type else None for key in keys]

    def selected(self, text: str) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT."""
        return self._rows(text)

    def translation(self, plan: plans.Plan, known: Known) -> Translation:
        """Return the translation of a plan to SQL for ClickHouse's JSON."""
        return Translation(plan, ClickhouseDialect(), "documents", self._document, "key", known)

    def query(self, plan: Plan) -> list[dict[str, Any]]:
        """Return the rows of a plan, computed by SQL. Raises RefusedQuery if SQL would give another result than the
        plan defines."""
        selection = self.statement(plan)
        return answer(selection, self._rows(bound(selection.text, selection.parameters)))

    def close(self) -> None:
        """Close the session. The process can then open another store."""
        self._session.close()


def _selected(paths: Sequence[FieldPath]) -> str | None:
    """Return SQL for the columns of a scan, or None if SQL cannot express the paths."""
    try:
        found = [f"{_at(path).canonical()} AS p{number}" for number, path in enumerate(paths)]
    except ValueError:
        return None
    return ", ".join(found) or None


def _at(path: FieldPath) -> ClickhouseValue:
    return ClickhouseValue("document", path)


ENGINES = (ClickhouseJson,)
