"""Reading documents by DuckDB's SQL from a table or Parquet file. A document is a JSON value, a VARIANT value, or a row
with a column for each field.

A store provides the SQL expressions of the table and of a document. This module counts, scans and finds documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adapters.document_store import Document, FieldPath, Key, Plan, RefusedQuery, TypedField, parts
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

if TYPE_CHECKING:
    import pyarrow as pa

_TYPES = {"boolean": "BOOLEAN", "integer": "BIGINT", "double": "DOUBLE", "text": "VARCHAR"}
OPERATORS = frozenset({"filter", "unnest", "project", "group_by", "count", "compute", "top_k", "limit"})
"""Names of the steps of query plans that can be translated to SQL. Some steps are refused in certain cases, such as
projections of unnested items."""

KEYS_AT_A_TIME = 1_000
"""Number of keys in one query."""


@dataclass(frozen=True)
class DocumentRelation:
    """SQL expressions to read documents: the table for FROM (`relation`), a document's JSON text, the document as a
    value, the document's key, and the type of keys."""

    relation: str
    text: str
    document: Value
    key: str
    key_type: str
    taken: frozenset[str] = frozenset()
    """If the table's columns are fields of the documents, the names of these columns in lower case. Otherwise empty."""


class DuckDocuments(StatementHandle):
    """A handle that reads documents through a connection of DuckDB."""

    def __init__(self, duckdb: Any, connection: Any, documents: DocumentRelation, key_field: str) -> None:
        """Take ownership of the connection, which `close` closes."""
        super().__init__()
        self._duckdb, self._connection, self._documents, self._key_field = duckdb, connection, documents, key_field
        self.asks_for_kinds = documents.document.tells_null
        self._errors = (
            duckdb.IOException,
            duckdb.FatalException,
            duckdb.InvalidInputException,
            duckdb.InternalException,
        )

    def _execute(self, text: str, parameters: Any = None) -> Any:
        """Execute a statement on a separate cursor. Raises AdapterError for documents that DuckDB cannot read."""
        try:
            return self._connection.cursor().execute(text, parameters)
        except self._errors as error:
            raise AdapterError(f"DuckDB cannot read the documents ({error})") from None

    def count(self) -> int:
        """Return the number of documents."""
        found: int = self._execute(f"SELECT count(*) FROM {self._documents.relation}").fetchone()[0]
        return found

    def scan(self, paths: Sequence[FieldPath] | None = None) -> Iterator[list[Document]]:
        """Yield all documents, or their fields at `paths`. DuckDB returns each document or field as JSON text."""
        if paths is not None and (not paths or session.names_with_nul(paths)):
            for batch in self.scan():
                yield [parts(document, paths) for document in batch]
            return
        if paths is None:
            query = f"SELECT {self._documents.text} || chr(10) FROM {self._documents.relation}"
            with self._relation(query) as relation:
                for text in session.json_lines(relation):
                    yield document_encoding.values_of(text)
            return
        selected = ", ".join(f"{self._at(path).stored()} AS p{place}" for place, path in enumerate(paths))
        with self._relation(f"SELECT {selected} FROM {self._documents.relation}") as relation:
            for batch in relation.to_arrow_reader(session.SCAN_DOCUMENTS):
                if batch.num_rows:
                    yield session.assembled(batch, paths)

    def read_table(self, fields: Sequence[TypedField]) -> pa.Table:
        """Select each field as a column of the field's type, and return DuckDB's result as an Arrow table."""
        if session.names_with_nul([field.path for field in fields]):
            return super().read_table(fields)
        selected = ", ".join(
            f"{self._at(field.path).unguarded(_TYPES[field.kind])} AS c{place}" for place, field in enumerate(fields)
        )
        with self._relation(f"SELECT {selected} FROM {self._documents.relation}") as relation:
            return relation.to_arrow_table()

    @contextmanager
    def _relation(self, text: str) -> Iterator[Any]:
        """Yield a query as a DuckDB relation on a separate cursor. The query runs when the caller reads the result.
        Raises AdapterError if DuckDB cannot read the documents."""
        cursor = self._connection.cursor()
        try:
            yield cursor.sql(text)
        except self._errors as error:
            raise AdapterError(f"DuckDB cannot read the documents ({error})") from None
        finally:
            cursor.close()

    def _at(self, path: FieldPath) -> Value:
        value = self._documents.document
        for name in path:
            value = value.step(name)
        return value

    def get(self, keys: Sequence[Key]) -> list[Document | None]:
        """Return the documents with these keys, KEYS_AT_A_TIME in one query."""
        wanted = session.fitting(keys, self._documents.key_type)
        found: dict[Key, Document] = {}
        for first in range(0, len(wanted), KEYS_AT_A_TIME):
            some = wanted[first : first + KEYS_AT_A_TIME]
            places = ", ".join("?" for _ in some)
            query = (
                f"SELECT {self._documents.key}, {self._documents.text} FROM {self._documents.relation}"
                f" WHERE {self._documents.key} IN ({places})"
            )
            found.update(
                (key, document_encoding.values_of(text.encode())[0])
                for key, text in self._execute(query, some).fetchall()
            )
        return [found.get(key) if _is_kind(key, self._documents.key_type) else None for key in keys]

    def selected(self, text: str) -> list[Any]:
        """Return the rows of a SELECT."""
        found: list[Any] = self._execute(text).fetchall()
        return found

    def translation(self, plan: plans.Plan, known: Known) -> Translation:
        """Return the translation of a plan to SQL for these documents."""
        documents = self._documents
        return Translation(
            plan, DuckdbDialect(documents.taken), documents.relation, documents.document, documents.key, known
        )

    def query(self, plan: Plan) -> list[dict[str, Any]]:
        """Return the rows of a plan, computed by SQL. Raises RefusedQuery if SQL would give another result than the
        plan defines."""
        selection = self.statement(plan)
        try:
            return answer(selection, self._execute(selection.text, selection.parameters).fetchall())
        except self._duckdb.OutOfRangeException as error:
            raise RefusedQuery(f"DuckDB: {error}") from None

    def close(self) -> None:
        """Close the connection, which also closes the file."""
        self._connection.close()


def _is_kind(key: Key, type_: str) -> bool:
    return type(key) is (int if type_ == "BIGINT" else str)


def in_columns(relation: str, described: Any, key: str, holds_nulls: bool) -> DocumentRelation:
    """Return the SQL expressions to read documents from a table in which each column is a field. In SQL, the table has
    the name `documents`."""
    columns = {name: (f"documents.{Quoted.name(name)}", type_) for name, type_, *_ in described}
    taken = frozenset(name.lower() for name in columns)
    text = "CAST(to_json(documents) AS VARCHAR)"
    if "documents" in taken:
        # Here the name `documents` would refer to a column of that name, not to the relation.
        packed = ", ".join(f"{Quoted.name(name)} := {column}" for name, (column, _) in columns.items())
        text = f"CAST(to_json(struct_pack({packed})) AS VARCHAR)"
    type_ = str(columns[key][1]) if key in columns else "BIGINT"
    return DocumentRelation(
        relation, text, Row(columns, text, holds_nulls), f"documents.{Quoted.name(key)}", type_, taken
    )
