"""MessagePack: each document is one message. The message's length precedes it, so that readers can skip the message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from adapters.contract import Maturity, Stage
from adapters.document_store import Batch, Document
from adapters.errors import AdapterError, RefusedData
from document_stores.shared import document_encoding
from document_stores.shared.streams import StreamStore, in_batches, length_of, whole

MOST_DOCUMENT_BYTES = 1 << 30
"""Largest length of a message. A larger length field is treated as damage."""


class MessagePack(StreamStore):
    """Writes and reads with msgspec.msgpack. Each message is preceded by its length in four bytes, little-endian."""

    format = "messagepack"
    engine = "msgspec"
    title = "MessagePack"
    suffix = ".msgpack"
    maturity = Maturity(Stage.ESTABLISHED, "a published specification, stable since 2013; fifty languages read it")

    def encoded(self, batches: Iterable[Batch]) -> Iterator[bytes]:
        """Yield the documents of each batch as consecutive messages, each after its length in four bytes."""
        encoder = self._msgspec.msgpack.Encoder()
        first = 0
        for batch in document_encoding.dicts(batches):
            pieces: list[bytes] = []
            for document in batch:
                message = _message(encoder, document, first + len(pieces) // 2)
                pieces += (len(message).to_bytes(4, "little"), message)
            yield b"".join(pieces)
            first += len(batch)

    def decoded(self, file: BinaryIO, location: Path) -> Iterator[list[Document]]:
        """Yield the documents in batches, decoded one by one."""
        decoder = self._msgspec.msgpack.Decoder(dict)
        try:
            yield from in_batches(decoder.decode(message) for message in _messages(file, location))
        except (self._msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise AdapterError(f"{location}: a document is damaged ({error})") from None

    def counted(self, file: BinaryIO, location: Path) -> int:
        """Return the number of documents, counted by their length fields. No document is decoded."""
        return sum(1 for _ in _messages(file, location))


def _message(encoder: object, document: Document, number: int) -> bytes:
    try:
        message: bytes = encoder.encode(document)  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise RefusedData(f"document {number}: {error}") from None
    return message


def _messages(file: BinaryIO, location: Path) -> Iterator[bytes]:
    while header := file.read(4):
        length = length_of(header, location, MOST_DOCUMENT_BYTES)
        yield whole(file.read(length), length, location)


ENGINES = (MessagePack,)
