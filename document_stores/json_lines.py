"""JSON Lines: one document per line, a common form of events and dumps."""

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
    """msgspec.json: encode_lines for dicts, decode_lines for reading. Lines of text are stored unchanged."""

    format = "json-lines"
    engine = "msgspec"
    title = "JSON Lines"
    suffix = ".jsonl"
    checks_lines: ClassVar[bool] = False
    maturity = Maturity(Stage.ESTABLISHED, "RFC 8259, one object per line; every language reads it")

    @property
    def calls(self) -> Calls:
        """Return code that writes the lines unchanged, compressed with the variant's codec."""
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
        """Yield the lines, or encode dicts."""
        return document_encoding.lines(batches)

    def decoded(self, file: BinaryIO, location: Path) -> Iterator[list[Document]]:
        """Decode lines in pieces of about READ_BYTES."""
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
        """Count the lines that are not empty."""
        return sum(1 for text in _whole_lines(file) for line in text.split(b"\n") if line.strip())


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield pieces of about READ_BYTES that end at the end of a line."""
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
