"""dbm: a file of Python's dbm module. The keys and values are the documents' keys and the documents, both as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from adapters.contract import Can, Maturity, Stage
from adapters.document_store import (
    Batch,
    Document,
    DocumentHandle,
    DocumentOffers,
    DocumentStoreAdapter,
    FieldPath,
    Key,
    parts,
)
from adapters.errors import AdapterError
from document_stores.shared import document_encoding
from document_stores.shared.json_losses import JSON_TEXT


class DbmStore(DocumentStoreAdapter):
    """Uses dbm.dumb: a file of values, and an index in a text file."""

    format = "dbm-documents"
    engine = "dbm"
    title = "dbm"
    distributions: ClassVar = ("msgspec",)
    suffix = ".dbm"
    capabilities = frozenset({Can.APPEND, Can.NESTED, Can.NO_PICKLE})
    maturity = Maturity(Stage.YOUNG, "part of Python; no other language reads it")
    offers = DocumentOffers(get=True, upsert=True, delete=True)
    losses = JSON_TEXT

    def load_library(self) -> None:
        """Import dbm and the text encoding of its index.

        Python would otherwise load the encoding with the first file.
        """
        import codecs
        import dbm.dumb

        codecs.lookup("latin-1")
        self._dbm = dbm.dumb

    def ingest(
        self, batches: Iterable[Batch], location: Path, key: str = "id", accepted: Callable[[], None] = lambda: None
    ) -> None:
        """Write one document after the other."""
        location.mkdir()
        with self._dbm.open(str(location / "documents"), "n") as file:
            first = 0
            for batch in batches:
                rows = document_encoding.keyed_texts(batch, key, first)
                for name, text in rows:
                    file[document_encoding.encoded([{"key": name}])] = text
                first += len(rows)
        accepted()

    def open(self, location: Path, key: str = "id") -> DbmHandle:
        """Open the file, which stays open until `close`."""
        if not location.is_dir():
            raise AdapterError(f"{location}: no such folder")
        return DbmHandle(self._dbm.open(str(location / "documents"), "w"), key)


class DbmHandle(DocumentHandle):
    """An open dbm file."""

    def __init__(self, file: Any, key: str) -> None:
        """Take over the open file."""
        self._file, self._key = file, key

    def count(self) -> int:
        """Return the length of the index."""
        return len(self._file)

    def scan(self, paths: Sequence[FieldPath] | None = None) -> Iterator[list[Document]]:
        """Yield batches of one document."""
        for name in self._file:
            document = document_encoding.parsed(self._file[name])[0]
            yield [document if paths is None else parts(document, paths)]

    def get(self, keys: Sequence[Key]) -> list[Document | None]:
        """Look up the keys in the index."""
        found = {
            key: self._file.get(document_encoding.encoded([{"key": key}])) for key in document_encoding.possible(keys)
        }
        return [None if (text := found.get(key)) is None else document_encoding.parsed(text)[0] for key in keys]

    def upsert(self, batch: Batch) -> None:
        """Check all documents, then write them."""
        for name, text in document_encoding.keyed_texts(batch, self._key):
            self._file[document_encoding.encoded([{"key": name}])] = text

    def delete(self, keys: Sequence[Key]) -> None:
        """Delete the documents of these keys; ignore missing ones."""
        for key in document_encoding.possible(keys):
            if (name := document_encoding.encoded([{"key": key}])) in self._file:
                del self._file[name]

    def close(self) -> None:
        """Write the index and close the file."""
        self._file.close()


ENGINES = (DbmStore,)
