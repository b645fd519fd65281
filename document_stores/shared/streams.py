"""The base class of stores that write a file of consecutive documents, with or without zstd. Such a file has no index,
so every search reads the whole file.

A subclass encodes batches to bytes and decodes documents from open files. Any program that supports the encoding can
read the files.
"""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, cast

from adapters.contract import Can, Setting, Stored
from adapters.document_store import (
    Batch,
    Document,
    DocumentHandle,
    DocumentStoreAdapter,
    FieldPath,
    Key,
    parts,
)
from adapters.errors import AdapterError

BATCH_DOCUMENTS = 1_024
"""Number of documents that a scan yields at a time."""

READ_BYTES = 1 << 20
"""Number of bytes that are read at a time."""

ZSTD_LEVEL = 3
"""zstandard's default level."""

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


class StreamStore(DocumentStoreAdapter):
    """Stores documents in one file, in the order in which they arrive. To change a document, a user must write the file
    again."""

    distributions: ClassVar[tuple[str, ...]] = ("msgspec",)
    settings: ClassVar = {
        "codec": Setting(("none", "zstd"), "none", "compression of the whole file"),
        "level": Setting(range(1, 23), None, "level of zstd"),
    }
    levels: ClassVar = {"zstd": range(1, 23)}
    plain: ClassVar = {"codec": "none"}
    library_default: ClassVar = {"codec": "none"}
    equal: ClassVar = {"codec": "zstd", "level": "1"}
    codec_distributions: ClassVar = {"zstd": "zstandard"}
    capabilities = frozenset({Can.NESTED, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE})

    @abstractmethod
    def encoded(self, batches: Iterable[Batch]) -> Iterator[bytes]:
        """Yield the content of the file in pieces. Raises RefusedData for a document that cannot be encoded."""

    @abstractmethod
    def decoded(self, file: BinaryIO, location: Path) -> Iterator[list[Document]]:
        """Yield the documents of an open file, from its beginning, in non-empty batches. Raises AdapterError if the
        file is damaged."""

    @abstractmethod
    def counted(self, file: BinaryIO, location: Path) -> int:
        """Return the number of documents in an open file, without decoding them."""

    def load_library(self) -> None:
        """Import msgspec, and zstandard if it is used."""
        import msgspec

        self._msgspec = msgspec
        if self.values["codec"] == "zstd":
            import zstandard

            self._zstandard = zstandard

    def ingest(
        self, batches: Iterable[Batch], location: Path, key: str = "id", accepted: Callable[[], None] = lambda: None
    ) -> None:
        """Write all documents to one file. The key has no effect."""
        with location.open("wb") as file, self._compressed(file) as sink:
            for piece in self.encoded(batches):
                sink.write(piece)
        accepted()

    @contextmanager
    def _compressed(self, file: BinaryIO) -> Iterator[BinaryIO]:
        if self.values["codec"] == "none":
            yield file
            return
        compressor = self._zstandard.ZstdCompressor(level=int(self.values["level"] or ZSTD_LEVEL))
        with compressor.stream_writer(file, closefd=False) as writer:
            yield cast("BinaryIO", writer)

    @contextmanager
    def reading(self, location: Path) -> Iterator[BinaryIO]:
        """Yield the open file, from which decompressed bytes are read. Errors of zstd are raised as AdapterError."""
        with location.open("rb") as file:
            if self.values["codec"] == "none":
                yield file
                return
            reader = self._zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
            try:
                yield cast("BinaryIO", io.BufferedReader(reader, READ_BYTES))
            except self._zstandard.ZstdError as error:
                raise AdapterError(f"{location}: its zstd frame is damaged ({error})") from None

    def open(self, location: Path, key: str = "id") -> StreamHandle:
        """Check that the file exists. Nothing stays open: each call reads the file from its beginning."""
        if not location.is_file():
            raise AdapterError(f"{location}: the file does not exist")
        return StreamHandle(self, location, key)

    def stored(self, location: Path) -> Stored:
        """Return the codec, found by the file's first bytes. Raises AdapterError if the variant has another codec."""
        with location.open("rb") as file:
            found = "zstd" if file.read(4) == _ZSTD_MAGIC else "none"
        if found != self.values["codec"]:
            raise AdapterError(
                f"{location}: the file's codec is {found}, but {self.variant} has the codec {self.values['codec']}"
            )
        return Stored(found)


class StreamHandle(DocumentHandle):
    """A handle that reads the whole file in every call."""

    def __init__(self, store: StreamStore, location: Path, key: str) -> None:
        """`location` is a file in the format of `store`."""
        self._store, self._location, self._key = store, location, key

    def count(self) -> int:
        """Return the number of documents, without decoding them."""
        with self._store.reading(self._location) as file:
            return self._store.counted(file, self._location)

    def scan(self, paths: Sequence[FieldPath] | None = None) -> Iterator[list[Document]]:
        """Yield all documents, or their fields at `paths`, in stored order."""
        with self._store.reading(self._location) as file:
            for batch in self._store.decoded(file, self._location):
                yield batch if paths is None else [parts(document, paths) for document in batch]

    def get(self, keys: Sequence[Key]) -> list[Document | None]:
        """Return the documents with these keys. All documents are read to find them."""
        wanted = set(keys)
        found: dict[Any, Document] = {}
        for batch in self.scan():
            found.update((document[self._key], document) for document in batch if document.get(self._key) in wanted)
        return [found.get(key) for key in keys]

    def close(self) -> None:
        """Do nothing: no file stays open."""


def in_batches(documents: Iterator[Document]) -> Iterator[list[Document]]:
    """Yield the documents in lists of BATCH_DOCUMENTS; the last list may be shorter."""
    batch: list[Document] = []
    for document in documents:
        batch.append(document)
        if len(batch) == BATCH_DOCUMENTS:
            yield batch
            batch = []
    if batch:
        yield batch


def length_of(header: bytes, location: Path, limit: int) -> int:
    """Return the length that four little-endian bytes contain.

    Raises AdapterError if the header is incomplete or the length exceeds `limit`, so that a damaged length does not
    cause a large allocation.
    """
    length = int.from_bytes(header, "little")
    if len(header) != 4:
        raise AdapterError(f"{location}: ends within the length field of a document ({len(header)} of 4 bytes)")
    if length > limit:
        raise AdapterError(f"{location}: the length of a document is damaged ({length:,} bytes; allowed: {limit:,})")
    return length


def whole(piece: bytes, length: int, location: Path) -> bytes:
    """Return `piece` if it has the expected length. Otherwise the file is truncated, and AdapterError is raised."""
    if len(piece) != length:
        raise AdapterError(f"{location}: ends within a document ({len(piece):,} of {length:,} bytes)")
    return piece
