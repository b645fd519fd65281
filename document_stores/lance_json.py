"""Lance: a column of keys and a column of JSON, which Lance stores as JSONB."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

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
    parts,
)
from adapters.errors import AdapterError, RefusedData
from document_stores.shared import document_encoding
from document_stores.shared import duckdb_session as arrow_texts
from document_stores.shared.json_losses import JSON_TEXT
from document_stores.sql.values import Quoted

if TYPE_CHECKING:
    import pyarrow as pa

SCAN_DOCUMENTS = 2_048
"""Number of documents that a scan yields at a time."""

KEYS_AT_A_TIME = 500
"""Number of keys in one condition."""


def _nothing() -> None:
    return


class LanceJson(DocumentStoreAdapter):
    """Writes with lance.write_dataset, as a column of the type pyarrow.json_(). Each later merge_insert or delete makes
    a new version of the data set."""

    format = "lance-json"
    engine = "pylance"
    title = "Lance JSON"
    distributions: ClassVar[tuple[str, ...]] = ("pylance", "pyarrow", "msgspec")
    suffix = ".lance"
    capabilities = frozenset({Can.APPEND, Can.NESTED, Can.OTHER_LANGUAGES, Can.NO_PICKLE})
    maturity = Maturity(Stage.YOUNG, "one implementation; its JSON columns came in 2025")
    offers = DocumentOffers(get=True, upsert=True, delete=True)

    @property
    def losses(self) -> tuple[DocumentLoss, ...]:
        """Losses of values that JSON cannot express."""
        return JSON_TEXT

    def load_library(self) -> None:
        """Import lance."""
        import lance
        import pyarrow

        self._lance, self._arrow = lance, pyarrow
        # The first conversion of Python values makes pyarrow look for pandas. Do it here, where it is not measured.
        pyarrow.array([0])

    def table_of(self, rows: list[tuple[Key, str]], key_type: Any = None) -> pa.Table:
        """Return an Arrow table of keys and documents for Lance. Raises RefusedData if keys have different types."""
        arrow = self._arrow
        try:
            keys = arrow.array([key for key, _ in rows], key_type)
        except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
            raise RefusedData(f"the keys must be all ints or all texts ({error})") from None
        texts = arrow.array([text for _, text in rows], arrow.string())
        documents = arrow.ExtensionArray.from_storage(arrow.json_(), texts)
        return arrow.table({"key": keys, "document": documents})

    def ingest(
        self, batches: Iterable[Batch], location: Path, key: str = "id", accepted: Callable[[], None] = _nothing
    ) -> None:
        """Write all documents by one call, which receives them batch by batch."""
        tables = self._tables(batches, key)
        first = next(tables, None)
        if first is None:
            first = self.table_of([], self._arrow.int64())
        broken: list[RefusedData] = []
        reader = self._arrow.RecordBatchReader.from_batches(first.schema, _pieces(chain([first], tables), broken))
        try:
            self._lance.write_dataset(reader, location)
        except (OSError, ValueError, RuntimeError) as error:
            raise (broken[0] if broken else RefusedData(f"Lance refuses a document ({error})")) from None
        accepted()

    def _tables(self, batches: Iterable[Batch], key: str) -> Iterator[pa.Table]:
        first, type_ = 0, None
        for batch in batches:
            rows = document_encoding.keyed_texts(batch, key, first)
            if rows:
                table = self.table_of(rows, type_)
                type_ = table.schema.field("key").type
                yield table
            first += len(rows)

    def open(self, location: Path, key: str = "id") -> LanceHandle:
        """Open the newest version of the data set."""
        if not location.is_dir():
            raise AdapterError(f"{location}: the folder does not exist")
        try:
            return LanceHandle(self, self._lance.dataset(str(location)), key)
        except (OSError, ValueError) as error:
            raise AdapterError(f"{location}: Lance cannot open it ({error})") from None

    def stored(self, location: Path) -> Stored:
        """Return no codec, because Lance chooses a codec for each page."""
        return Stored()


def _pieces(tables: Iterator[pa.Table], broken: list[RefusedData]) -> Iterator[pa.RecordBatch]:
    try:
        for table in tables:
            yield from table.to_batches()
    except RefusedData as error:
        broken.append(error)
        raise


class LanceHandle(DocumentHandle):
    """An open version of a Lance data set."""

    def __init__(self, store: LanceJson, dataset: Any, key: str) -> None:
        """Read from and write to `dataset`, an open Lance data set."""
        self._store, self._dataset, self._key = store, dataset, key

    def _key_type(self) -> Any:
        return self._dataset.schema.field("key").type

    def count(self) -> int:
        """Return the number of documents that Lance's manifest states."""
        return int(self._dataset.count_rows())

    def scan(self, paths: Sequence[FieldPath] | None = None) -> Iterator[list[Document]]:
        """Yield all documents, or their fields at `paths`. The whole documents are read, and the fields are selected
        here."""
        try:
            for batch in self._dataset.to_batches(columns=["document"], batch_size=SCAN_DOCUMENTS):
                documents = _documents(batch.column(0))
                if documents:
                    yield documents if paths is None else [parts(document, paths) for document in documents]
        except (OSError, ValueError) as error:
            raise AdapterError(f"{self._dataset.uri}: Lance cannot read the documents ({error})") from None

    def get(self, keys: Sequence[Key]) -> list[Document | None]:
        """Find the documents with these keys by conditions on the column of keys, and return the documents."""
        wanted = self._fitting(keys)
        found: dict[Key, Document] = {}
        for first in range(0, len(wanted), KEYS_AT_A_TIME):
            table = self._dataset.to_table(filter=_among(wanted[first : first + KEYS_AT_A_TIME]))
            for key, text in zip(table["key"].to_pylist(), table["document"].to_pylist(), strict=True):
                found[key] = document_encoding.values_of(text.encode())[0]
        fitting = set(wanted)
        return [found.get(key) if key in fitting else None for key in keys]

    def _fitting(self, keys: Sequence[Key]) -> list[Key]:
        integers = self._store._arrow.types.is_integer(self._key_type())
        return arrow_texts.fitting(keys, "BIGINT" if integers else "VARCHAR")

    def upsert(self, batch: Batch) -> None:
        """Store documents by merge_insert on the key. If several documents of a batch have the same key, the last one
        is kept."""
        rows = list(dict(document_encoding.keyed_texts(batch, self._key)).items())
        if not rows:
            return
        if self.count() == 0:
            table = self._store.table_of(rows)
            self._dataset = self._store._lance.write_dataset(table, self._dataset.uri, mode="overwrite")
            return
        table = self._store.table_of(rows, self._key_type())
        merging = self._dataset.merge_insert("key").when_matched_update_all().when_not_matched_insert_all()
        merging.execute(table)

    def delete(self, keys: Sequence[Key]) -> None:
        """Delete the documents with these keys. Lance marks the rows as deleted, but the rows stay in the files."""
        wanted = self._fitting(keys)
        for first in range(0, len(wanted), KEYS_AT_A_TIME):
            self._dataset.delete(_among(wanted[first : first + KEYS_AT_A_TIME]))

    def settle(self) -> None:
        """Merge small files and delete older versions."""
        self._dataset.optimize.compact_files()
        self._dataset.cleanup_old_versions(older_than=timedelta(0))

    def close(self) -> None:
        """Do nothing: no file stays open."""


def _documents(column: Any) -> list[Document]:
    storage = column.storage if hasattr(column, "storage") else column
    return document_encoding.values_of("\n".join(storage.to_pylist()).encode())


def _among(keys: Sequence[Key]) -> str:
    listed = ", ".join(Quoted.text(key) if isinstance(key, str) else str(key) for key in keys)
    return f"key IN ({listed})"


ENGINES = (LanceJson,)
