"""JSON Lines: a text file with one document per line, a common format for events and dumps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, ClassVar

from adapters.contract import Calls, Maturity, Stage
from adapters.document_store import Batch, Document, DocumentLoss
from adapters.errors import AdapterError, RefusedData
from document_stores.shared import document_encoding
from document_stores.shared.json_losses import JSON_TEXT
from document_stores.shared.streams import READ_BYTES, ZSTD_LEVEL, StreamStore


class JsonLines(StreamStore):
    """Encodes dicts by msgspec's encode_lines and reads by its decode_lines. Input that already is JSON Lines is stored
    unchanged."""

    format = "json-lines"
    engine = "msgspec"
    title = "JSON Lines"
    suffix = ".jsonl"
    checks_lines: ClassVar[bool] = False
    maturity = Maturity(Stage.ESTABLISHED, "RFC 8259, one object per line; every language reads it")

    @property
    def calls(self) -> Calls:
        """Return code with which users can write the lines, compressed with the variant's codec, and read them."""
        imports: tuple[str, ...] = ("import msgspec", "from pathlib import Path")
        save, read = "{held}", "Path({path}).read_bytes()"
        if self.values["codec"] == "zstd":
            imports = (*imports, "import zstandard")
            save = f"zstandard.ZstdCompressor(level={self.values['level'] or ZSTD_LEVEL}).compress({save})"
            read = f"zstandard.ZstdDecompressor().decompressobj().decompress({read})"
        read = f"documents = msgspec.json.Decoder().decode_lines({read})"
        return Calls(imports, f"Path({{path}}).write_bytes({save})", read)

    @property
    def losses(self) -> tuple[DocumentLoss, ...]:
        """Losses of values that JSON cannot express."""
        return JSON_TEXT

    def encoded(self, batches: Iterable[Batch]) -> Iterator[bytes]:
        """Yield each batch as JSON Lines. Batches that are JSON Lines already are not changed."""
        return document_encoding.lines(batches)

    def decoded(self, file: BinaryIO, location: Path) -> Iterator[list[Document]]:
        """Yield the documents in batches. A batch has the documents of about READ_BYTES bytes of lines."""
        first = 0
        for text in _whole_lines(file):
            try:
                batch = document_encoding.parsed(text, first)
            except RefusedData as error:
                raise AdapterError(f"{location}: {error}") from None
            if batch:
                yield batch
            first += len(batch)

    def counted(self, file: BinaryIO, location: Path) -> int:
        """Return the number of lines that are not empty."""
        return sum(1 for text in _whole_lines(file) for line in text.split(b"\n") if line.strip())


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield pieces of about READ_BYTES bytes, each of which consists of whole lines."""
    rest = b""
    while piece := file.read(READ_BYTES):
        before, newline, after = piece.rpartition(b"\n")
        if newline:
            yield rest + before + newline
            rest = after
        else:
            rest += piece
    if rest:
        yield rest


ENGINES = (JsonLines,)
