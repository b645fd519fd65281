"""Parquet with a VARIANT column, which holds documents of any structure. DuckDB writes and reads the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import msgspec

from adapters.contract import Can, Maturity, Setting, Stage, Stored
from adapters.document_store import Batch, DocumentLoss, DocumentOffers, DocumentStoreAdapter
from adapters.errors import AdapterError, RefusedData
from adapters.losses import Cause
from document_stores.shared import duckdb_session as session
from document_stores.shared.duckdb_documents import OPERATORS, DocumentRelation, DuckDocuments
from document_stores.shared.json_losses import JSON_TEXT, refused
from document_stores.shared.parquet_files import CODECS, codec_of, from_file
from document_stores.shared.structure import MOST_ARRAY_LEVELS, NESTED_ARRAYS, array_levels
from document_stores.sql.duckdb_values import JsonValue, VariantValue
from document_stores.sql.values import Quoted

if TYPE_CHECKING:
    import pyarrow as pa


def _nothing() -> None:
    return


class ParquetVariant(DocumentStoreAdapter):
    """Stores documents in a Parquet file with two columns, the key and the document. Later writes are not supported,
    because Parquet files cannot be changed."""

    format = "parquet-variant"
    engine = "duckdb"
    title = "Parquet VARIANT"
    distributions: ClassVar[tuple[str, ...]] = ("duckdb", "pyarrow", "msgspec")
    suffix = ".parquet"
    settings: ClassVar = {"codec": Setting(CODECS, "snappy", "compression of each page")}
    plain: ClassVar = {"codec": "none"}
    library_default: ClassVar = {"codec": "snappy"}
    equal: ClassVar = {"codec": "zstd"}
    capabilities = frozenset({Can.PROJECTION, Can.NESTED, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE})
    maturity = Maturity(Stage.YOUNG, "in Parquet's specification since 2025; few libraries read it shredded")
    offers = DocumentOffers(project=True, operators=OPERATORS)

    @property
    def losses(self) -> tuple[DocumentLoss, ...]:
        """Changes of values that JSON cannot express. Documents that DuckDB cannot write or read are refused."""
        return (
            *JSON_TEXT,
            refused("a field without a name: DuckDB cannot write it", Cause.CALL, "empty name"),
            refused("deeply nested arrays: each level doubles the time to read", Cause.CALL, "deep arrays"),
        )

    def load_library(self) -> None:
        """Import duckdb, and the modules that exchange documents with it."""
        import duckdb
        import pyarrow.compute
        import pyarrow.parquet

        self._duckdb, self._arrow = duckdb, pyarrow

    def ingest(
        self, batches: Iterable[Batch], location: Path, key: str = "id", accepted: Callable[[], None] = _nothing
    ) -> None:
        """Write all documents by one COPY."""
        source = session.BatchStream(_checked(session.lines_of(batches)))
        type_ = session.key_type(source.first[0] if source.first is not None else None, key)
        connection = session.connect(self._duckdb, None, self.threads)
        try:
            strict = session.strict_key(JsonValue("line").step(key), type_)
            documents = "(SELECT CAST(line AS JSON) AS line FROM arriving)"
            selected = f"SELECT {strict} AS key, CAST(line AS VARIANT) AS document FROM {documents}"
            with session.refusals(self._duckdb, source):
                connection.register("arriving", source.reader())
                codec = str(self.values["codec"]).replace("none", "uncompressed")
                options = f"FORMAT parquet, COMPRESSION {codec}"
                connection.execute(f"COPY ({selected}) TO {Quoted.text(str(location))} ({options})")
            accepted()
        finally:
            connection.close()

    def open(self, location: Path, key: str = "id") -> DuckDocuments:
        """Connect to an in-memory database. Each query reads the file."""
        connection = session.connect(self._duckdb, None, self.threads)
        relation, described = from_file(self._duckdb, connection, location)
        types = {name: str(type_) for name, type_, *_ in described}
        if types.get("document") != "VARIANT":
            connection.close()
            raise AdapterError(f"{location}: has no column 'document' of the type VARIANT")
        text = "CAST(to_json(document) AS VARCHAR)"
        documents = DocumentRelation(relation, text, VariantValue("document"), "key", types["key"])
        return DuckDocuments(self._duckdb, connection, documents, key)

    def stored(self, location: Path) -> Stored:
        """Return the codec that the file's footer states."""
        return Stored(codec_of(self._arrow.parquet, location))


def _checked(arrays: Iterator[pa.Array]) -> Iterator[pa.Array]:
    """Yield the arrays of JSON texts unchanged. Raises RefusedData for a document that DuckDB would write, but could
    not read."""
    import pyarrow.compute as pc

    for array in arrays:
        suspect = array.filter(pc.match_substring_regex(array, f'{NESTED_ARRAYS}|""\\s*:'))
        for line in suspect.to_pylist():
            document = msgspec.json.decode(line)
            if array_levels(document) > MOST_ARRAY_LEVELS:
                raise RefusedData(f"arrays are nested more than {MOST_ARRAY_LEVELS} levels deep")
            if _has_unnamed(document):
                raise RefusedData("a field has an empty name")
        yield array


def _has_unnamed(value: object) -> bool:
    if isinstance(value, dict):
        return "" in value or any(map(_has_unnamed, value.values()))
    return isinstance(value, list) and any(map(_has_unnamed, value))


ENGINES = (ParquetVariant,)
