"""Raw I/O: writing and reading documents as text, without any store, as a baseline for all figures.

JSON Lines are written to a file and read by one read, without parsing. Documents are decoded only if a caller requests
them. Users should not store documents in this way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from adapters.contract import Can, Maturity, Stage, Stored
from adapters.document_store import (
    Batch,
    Document,
    DocumentHandle,
    DocumentLoss,
    DocumentStoreAdapter,
    FieldPath,
    Key,
    parts,
)
from document_stores.shared import document_encoding
from document_stores.shared.json_losses import JSON_TEXT


class RawIO(DocumentStoreAdapter):
    """Writes and reads the original text by plain write and read."""

    format = "documents-raw-io"
    engine = "read"
    title = "Raw I/O"
    distributions: ClassVar[tuple[str, ...]] = ("msgspec",)
    suffix = ".raw"
    checks_lines: ClassVar[bool] = False
    maturity = Maturity(Stage.EXPERIMENTAL, "a yardstick, not a format: the text is not parsed", ours=True)
    capabilities = frozenset({Can.SINGLE_FILE, Can.NO_PICKLE})

    @property
    def losses(self) -> tuple[DocumentLoss, ...]:
        """The changes to values that JSON cannot express, such as NaN, which becomes null."""
        return JSON_TEXT

    def load_library(self) -> None:
        """Import msgspec, which encodes dicts."""
        import msgspec

        self._msgspec = msgspec

    def ingest(
        self, batches: Iterable[Batch], location: Path, key: str = "id", accepted: Callable[[], None] = lambda: None
    ) -> None:
        """Write the documents as JSON Lines. `key` has no effect, because raw I/O does not find documents by key."""
        with location.open("wb", buffering=0) as file:
            for piece in document_encoding.lines(batches):
                rest = memoryview(piece)
                while rest:
                    rest = rest[file.write(rest) :]
        accepted()

    def text(self, location: Path) -> bytes:
        """Return all stored bytes."""
        return location.read_bytes()

    def open(self, location: Path, key: str = "id") -> RawHandle:
        """Read the whole text. The file does not stay open."""
        return RawHandle(self.text(location), key)

    def stored(self, location: Path) -> Stored:
        """Return the size of the file and no codec."""
        return Stored(details={"bytes": str(location.stat().st_size)})


class RawHandle(DocumentHandle):
    """The whole text in memory. Documents are decoded when they are requested."""

    def __init__(self, text: bytes, key: str) -> None:
        """`text` is all documents as JSON Lines, and `key` is the name of the key field."""
        self._text, self._key = text, key

    def count(self) -> int:
        """Return the number of lines that are not empty."""
        return sum(1 for line in self._text.split(b"\n") if line.strip())

    def scan(self, paths: Sequence[FieldPath] | None = None) -> Iterator[list[Document]]:
        """Yield all documents, or their fields at `paths`, as one list."""
        found = document_encoding.parsed(self._text)
        if found:
            yield found if paths is None else [parts(document, paths) for document in found]

    def get(self, keys: Sequence[Key]) -> list[Document | None]:
        """Return the documents with these keys. All documents are decoded to find them."""
        by_key = {document[self._key]: document for batch in self.scan() for document in batch}
        return [by_key.get(key) for key in keys]

    def close(self) -> None:
        """Free the text."""
        self._text = b""


ENGINES = (RawIO,)
