"""Reading documents by DuckDB's SQL, whatever they lie in: a table or a Parquet file, as JSON, VARIANT or columns.

A store says from what to select, and what a document is there; counting, scanning and finding keys are alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from adapters.document_store import Document, FieldPath, Key, Plan, RefusedQuery, parts
from adapters.errors import AdapterError
from document_stores.shared import document_encoding
from document_stores.shared import duckdb_session as session
from document_stores.sql.answer import answer
from document_stores.sql.duckdb_dialect import DuckdbDialect
from document_stores.sql.duckdb_values import Row
from document_stores.sql.statements import StatementHandle
from document_stores.sql.translation import Known, Translation
from document_stores.sql.values import Quoted, Value
from libraries.document_queries import plan as plans

OPERATORS = frozenset({"filter", "unnest", "project", "group_by", "count", "compute", "top_k", "limit"})
"""What queries in SQL are made of; a projection of unnested items is refused, and so are other details."""

KEYS_AT_A_TIME = 1_000
"""Keys that one query asks for."""


@dataclass(frozen=True)
class Lies:
    """Where documents lie: `relation` after FROM, a document's JSON text, the document as a value, its key and type."""

    relation: str
    text: str
    document: Value
    key: str
    key_type: str
    taken: frozenset[str] = frozenset()
    """The names of the relation's columns, in small letters, where users gave them."""


class DuckDocuments(StatementHandle):
    """Documents behind a connection of DuckDB's."""

    def __init__(self, duckdb: Any, connection: Any, lies: Lies, key_field: str) -> None:
        """Takes the connection over."""
        super().__init__()
        self._duckdb, self._connection, self._lies, self._key_field = duckdb, connection, lies, key_field
        self.asks_for_kinds = lies.document.tells_null
        self._errors = (
            duckdb.IOException,
            duckdb.FatalException,
            duckdb.InvalidInputException,
            duckdb.InternalException,
        )

    def _execute(self, text: str, parameters: Any = None) -> Any:
        """A result of its own. Raises AdapterError for what DuckDB cannot read."""
        try:
            return self._connection.cursor().execute(text, parameters)
        except self._errors as error:
            raise AdapterError(f"DuckDB cannot read the documents ({error})") from None

    def count(self) -> int:
        """By SQL."""
        found: int = self._execute(f"SELECT count(*) FROM {self._lies.relation}").fetchone()[0]
        return found

    def scan(self, paths: Sequence[FieldPath] | None = None) -> Iterator[list[Document]]:
        """Whole documents as JSON text, or each part as one."""
        if paths is not None and (not paths or session.names_with_nul(paths)):
            for batch in self.scan():
                yield [parts(document, paths) for document in batch]
            return
        if paths is None:
            query = f"SELECT {self._lies.text} || chr(10) FROM {self._lies.relation}"
            with self._relation(query) as relation:
                for text in session.json_lines(relation):
                    yield document_encoding.values_of(text)
            return
        selected = ", ".join(f"{self._at(path).stored()} AS p{place}" for place, path in enumerate(paths))
        with self._relation(f"SELECT {selected} FROM {self._lies.relation}") as relation:
            for batch in relation.to_arrow_reader(session.SCAN_DOCUMENTS):
                if batch.num_rows:
                    yield session.assembled(batch, paths)

    @contextmanager
    def _relation(self, text: str) -> Iterator[Any]:
        """A query that has not run yet, on a cursor of its own. Raises AdapterError for what DuckDB cannot read."""
        cursor = self._connection.cursor()
        try:
            yield cursor.sql(text)
        except self._errors as error:
            raise AdapterError(f"DuckDB cannot read the documents ({error})") from None
        finally:
            cursor.close()

    def _at(self, path: FieldPath) -> Value:
        value = self._lies.document
        for name in path:
            value = value.step(name)
        return value

    def get(self, keys: Sequence[Key]) -> list[Document | None]:
        """By key, some at a time."""
        wanted = session.fitting(keys, self._lies.key_type)
        found: dict[Key, Document] = {}
        for first in range(0, len(wanted), KEYS_AT_A_TIME):
            some = wanted[first : first + KEYS_AT_A_TIME]
            places = ", ".join("?" for _ in some)
            query = (
                f"SELECT {self._lies.key}, {self._lies.text} FROM {self._lies.relation}"
                f" WHERE {self._lies.key} IN ({places})"
            )
            found.update(
                (key, document_encoding.values_of(text.encode())[0])
                for key, text in self._execute(query, some).fetchall()
            )
        return [found.get(key) if _is_kind(key, self._lies.key_type) else None for key in keys]

    def selected(self, text: str) -> list[Any]:
        """By a cursor."""
        found: list[Any] = self._execute(text).fetchall()
        return found

    def translation(self, plan: plans.Plan, known: Known) -> Translation:
        """Of what the documents lie in."""
        lies = self._lies
        return Translation(plan, DuckdbDialect(lies.taken), lies.relation, lies.document, lies.key, known)

    def query(self, plan: Plan) -> list[dict[str, Any]]:
        """By SQL. Raises RefusedQuery for what DuckDB would answer otherwise than the plan means."""
        told = self.statement(plan)
        try:
            return answer(told, self._execute(told.text, told.parameters).fetchall())
        except self._duckdb.OutOfRangeException as error:
            raise RefusedQuery(f"DuckDB: {error}") from None

    def close(self) -> None:
        """Close the connection, and with it the file."""
        self._connection.close()


def _is_kind(key: Key, type_: str) -> bool:
    return type(key) is (int if type_ == "BIGINT" else str)


def in_columns(relation: str, described: Any, key: str, holds_nulls: bool) -> Lies:
    """Documents each of whose fields is a column of a described relation; it goes by the name `documents`."""
    columns = {name: (f"documents.{Quoted.name(name)}", type_) for name, type_, *_ in described}
    taken = frozenset(name.lower() for name in columns)
    text = "CAST(to_json(documents) AS VARCHAR)"
    if "documents" in taken:
        # That would be the column.
        packed = ", ".join(f"{Quoted.name(name)} := {column}" for name, (column, _) in columns.items())
        text = f"CAST(to_json(struct_pack({packed})) AS VARCHAR)"
    type_ = str(columns[key][1]) if key in columns else "BIGINT"
    return Lies(relation, text, Row(columns, text, holds_nulls), f"documents.{Quoted.name(key)}", type_, taken)
