"""Raw I/O: what the machine can do without any store, for every figure to be set against.

JSON Lines go to a file by plain writes and come back by one read, and nothing is parsed. It is a yardstick, not a store
to use: documents are made of the text only for whoever asks for them.
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
    """The text as it comes, by plain write and read."""

    format = "documents-raw-io"
    engine = "read"
    title = "Raw I/O"
    distributions: ClassVar[tuple[str, ...]] = ("msgspec",)
    suffix = ".raw"
    checks_lines: ClassVar[bool] = False
    maturity = Maturity(Stage.EXPERIMENTAL, "a yardstick and no format: nothing is looked at", ours=True)
    capabilities = frozenset({Can.SINGLE_FILE, Can.NO_PICKLE})

    @property
    def losses(self) -> tuple[DocumentLoss, ...]:
        """What JSON has no notation for."""
        return JSON_TEXT

    def load_library(self) -> None:
        """Import msgspec, which makes text of dicts."""
        import msgspec

        self._msgspec = msgspec

    def ingest(
        self, batches: Iterable[Batch], location: Path, key: str = "id", accepted: Callable[[], None] = lambda: None
    ) -> None:
        """Write the lines."""
        with location.open("wb", buffering=0) as file:
            for piece in document_encoding.lines(batches):
                rest = memoryview(piece)
                while rest:
                    rest = rest[file.write(rest) :]
        accepted()

    def text(self, location: Path) -> bytes:
        """All of it, as it lies there."""
        return location.read_bytes()

    def open(self, location: Path, key: str = "id") -> RawHandle:
        """Nothing stays open."""
        return RawHandle(self.text(location), key)

    def stored(self, location: Path) -> Stored:
        """No codec, and nothing that says what it is."""
        return Stored(details={"bytes": str(location.stat().st_size)})


class RawHandle(DocumentHandle):
    """The whole text, of which documents are made when somebody asks."""

    def __init__(self, text: bytes, key: str) -> None:
        """`text` is JSON Lines."""
        self._text, self._key = text, key

    def count(self) -> int:
        """How many lines hold something."""
        return sum(1 for line in self._text.split(b"\n") if line.strip())

    def scan(self, paths: Sequence[FieldPath] | None = None) -> Iterator[list[Document]]:
        """All at once."""
        found = document_encoding.parsed(self._text)
        if found:
            yield found if paths is None else [parts(document, paths) for document in found]

    def get(self, keys: Sequence[Key]) -> list[Document | None]:
        """By making all documents."""
        by_key = {document[self._key]: document for batch in self.scan() for document in batch}
        return [by_key.get(key) for key in keys]

    def close(self) -> None:
        """Let the text go."""
        self._text = b""


ENGINES = (RawIO,)
