"""Parquet with one nested column for each field, the usual way to store documents in Parquet.

The file is written by pyarrow, which refuses fields of mixed types, or by DuckDB, which stores such fields as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import Can, Maturity, Setting, Stage, Stored
from adapters.document_store import (
    Batch,
    Document,
    DocumentHandle,
    DocumentLoss,
    DocumentOffers,
    DocumentStoreAdapter,
    FieldPath,
    Key,
    TypedField,
    parts,
)
from adapters.errors import AdapterError, RefusedData
from document_stores.shared import arrow_documents, document_encoding
from document_stores.shared import duckdb_session as session
from document_stores.shared.duckdb_documents import OPERATORS, DuckDocuments, in_columns
from document_stores.shared.json_losses import JSON_TEXT
from document_stores.shared.nested_losses import DUCKDB_LOSSES, DUCKDB_PARQUET_LOSSES, PYARROW_LOSSES
from document_stores.shared.parquet_files import CODECS, codec_of, from_file, said_of
from document_stores.shared.structure import MOST_ARRAY_LEVELS, array_levels, bigint_structure
from document_stores.sql.values import Quoted

if TYPE_CHECKING:
    import pyarrow as pa

NULLS = "documents_hold_nulls"
"""Key of an entry in the file's footer. If the entry's value is not 'false', a NULL can mean a null or a missing
field."""

SCAN_DOCUMENTS = 4_096
"""Number of documents that pyarrow returns at a time."""


def _nothing() -> None:
    return


class NestedParquet(DocumentStoreAdapter):
    """Base class of the stores that write one Parquet file. Later writes are not supported, because Parquet files
    cannot be changed."""

    format = "parquet-nested"
    suffix = ".parquet"
    settings: ClassVar = {"codec": Setting(CODECS, "snappy", "compression of each page")}
    plain: ClassVar = {"codec": "none"}
    library_default: ClassVar = {"codec": "snappy"}
    equal: ClassVar = {"codec": "zstd"}
    capabilities = frozenset(
        {Can.PROJECTION, Can.TYPES, Can.NESTED, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE}
    )
    maturity = Maturity(Stage.ESTABLISHED, "a stable specification since 2013; many independent implementations")

    def load_library(self) -> None:
        """Import the JSON and Parquet modules of pyarrow, and also duckdb if DuckDB writes the file."""
        import msgspec
        import pyarrow.compute
        import pyarrow.json
        import pyarrow.parquet

        self._arrow, self._msgspec = pyarrow, msgspec
        # The first conversion of Python values makes pyarrow look for pandas. Do it here, where it is not measured.
        pyarrow.array([0])

    def stored(self, location: Path) -> Stored:
        """Return the codec that the file's footer states."""
        return Stored(codec_of(self._arrow.parquet, location))


class PyarrowNested(NestedParquet):
    """Reads all lines by pyarrow.json.read_json, then writes the table by pyarrow.parquet.write_table.

    If read_json converts texts that look like times to timestamps, all lines are read again with an explicit type.
    """

    engine = "pyarrow"
    title = "Parquet columns"
    distributions: ClassVar[tuple[str, ...]] = ("pyarrow", "msgspec")
    offers = DocumentOffers(project=True)

    @property
    def losses(self) -> tuple[DocumentLoss, ...]:
        """Losses that occur because all documents get the same schema, and because pyarrow refuses some documents."""
        return (*JSON_TEXT, *PYARROW_LOSSES)

    def ingest(
        self, batches: Iterable[Batch], location: Path, key: str = "id", accepted: Callable[[], None] = _nothing
    ) -> None:
        """Convert all documents to one table in memory, and write the table to a file."""
        text = b"".join(document_encoding.lines(batches))
        table = arrow_documents.table_of(text, key, threads=self.threads != 1)
        try:
            self._arrow.parquet.write_table(table, location, compression=str(self.values["codec"]))
        except (self._arrow.ArrowNotImplementedError, self._arrow.ArrowInvalid) as error:
            raise RefusedData(str(error)) from None
        accepted()

    def open(self, location: Path, key: str = "id") -> PyarrowHandle:
        """Open the file and read its footer."""
        if not location.is_file():
            raise AdapterError(f"{location}: the file does not exist")
        try:
            file = self._arrow.parquet.ParquetFile(location, pre_buffer=False)
        except (self._arrow.ArrowInvalid, OSError) as error:
            raise AdapterError(f"{location}: cannot be read as Parquet ({error})") from None
        return PyarrowHandle(self._arrow, file, location, key, threads=self.threads != 1)


class PyarrowHandle(DocumentHandle):
    """An open Parquet file, whose documents are read by pyarrow."""

    def __init__(self, arrow: Any, file: Any, location: Path, key: str, threads: bool) -> None:
        """Take ownership of the open file, which `close` closes."""
        self._arrow, self._file, self._location, self._key, self._threads = arrow, file, location, key, threads

    def count(self) -> int:
        """Return the number of documents that the file's footer states."""
        found: int = self._file.metadata.num_rows
        return found

    def scan(self, paths: Sequence[FieldPath] | None = None) -> Iterator[list[Document]]:
        """Yield all documents batch by batch. With `paths`, read only the columns at and below these paths."""
        for batch in self._batches(paths):
            documents: list[Document] = batch.to_pylist()
            yield documents if paths is None else [parts(document, paths) for document in documents]

    def _batches(self, paths: Sequence[FieldPath] | None) -> Iterator[pa.RecordBatch]:
        # If names contain dots, this may read additional columns: 'a.b' means field b of a and also a field 'a.b'.
        columns = None if paths is None else sorted({".".join(path) for path in paths})
        try:
            yield from self._file.iter_batches(SCAN_DOCUMENTS, columns=columns, use_threads=self._threads)
        except (self._arrow.ArrowInvalid, OSError) as error:
            raise AdapterError(f"{self._location}: is damaged ({error})") from None

    def read_table(self, fields: Sequence[TypedField]) -> pa.Table:
        """Read the columns at the fields' paths, and extract the columns that are nested in structs."""
        columns = sorted({".".join(field.path) for field in fields})
        try:
            table = self._file.read(columns, use_threads=self._threads)
        except (self._arrow.ArrowInvalid, OSError) as error:
            raise AdapterError(f"{self._location}: is damaged ({error})") from None
        found = []
        for field in fields:
            column = table.column(field.path[0])
            found.append(self._arrow.compute.struct_field(column, field.path[1:]) if field.path[1:] else column)
        return self._arrow.Table.from_arrays(found, names=[".".join(field.path) for field in fields])

    def get(self, keys: Sequence[Key]) -> list[Document | None]:
        """Return the documents with these keys. The whole file is read, but only the documents found are converted to
        Python objects."""
        wanted = set(keys)
        found: dict[Key, Document] = {}
        for batch in self._batches(None):
            column = batch.column(self._key)
            places = [place for place, value in enumerate(column.to_pylist()) if value in wanted]
            if places:
                found.update((document[self._key], document) for document in batch.take(places).to_pylist())
        return [found.get(key) for key in keys]

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class DuckdbNested(NestedParquet):
    """Writes and reads with DuckDB, which determines the types of all fields and converts documents to columns."""

    engine = "duckdb"
    title = "Parquet columns"
    distributions: ClassVar[tuple[str, ...]] = ("duckdb", "pyarrow", "msgspec")
    offers = DocumentOffers(project=True, operators=OPERATORS)

    @property
    def losses(self) -> tuple[DocumentLoss, ...]:
        """Losses that occur because all documents get the same schema."""
        return (*JSON_TEXT, *DUCKDB_LOSSES, *DUCKDB_PARQUET_LOSSES)

    def load_library(self) -> None:
        """Import duckdb, pyarrow and msgspec."""
        super().load_library()
        import duckdb

        self._duckdb = duckdb

    def ingest(
        self, batches: Iterable[Batch], location: Path, key: str = "id", accepted: Callable[[], None] = _nothing
    ) -> None:
        """Find a type for each field of all documents, then write the file."""
        connection = session.connect(self._duckdb, None, self.threads)
        try:
            with session.refusals(self._duckdb):
                structure, holds_nulls = bigint_structure(connection, session.lines_of(batches), key)
                if array_levels(self._msgspec.json.decode(structure)) > MOST_ARRAY_LEVELS:
                    raise RefusedData(f"arrays are nested more than {MOST_ARRAY_LEVELS} levels deep")
                arriving = f"SELECT unnest(from_json(CAST(line AS JSON), {Quoted.text(structure)})) FROM arriving"
                codec = str(self.values["codec"]).replace("none", "uncompressed")
                options = f"FORMAT parquet, COMPRESSION {codec}, KV_METADATA {{{NULLS}: '{str(holds_nulls).lower()}'}}"
                connection.execute(f"COPY ({arriving}) TO {Quoted.text(str(location))} ({options})")
            accepted()
        finally:
            connection.close()

    def open(self, location: Path, key: str = "id") -> DuckDocuments:
        """Connect to an in-memory database. Each query reads the file."""
        connection = session.connect(self._duckdb, None, self.threads)
        relation, described = from_file(self._duckdb, connection, location)
        holds_nulls = said_of(connection, location, NULLS) != "false"
        return DuckDocuments(self._duckdb, connection, in_columns(relation, described, key, holds_nulls), key)


ENGINES = (PyarrowNested, DuckdbNested)
