"""BSON: consecutive documents in MongoDB's binary encoding, as mongodump writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from adapters.contract import Maturity, Stage
from adapters.document_store import Batch, Document, DocumentLoss
from adapters.errors import AdapterError, RefusedData
from adapters.losses import Cause
from document_stores.shared import document_encoding
from document_stores.shared.json_losses import refused
from document_stores.shared.streams import StreamStore, in_batches, length_of, whole

MOST_DOCUMENT_BYTES = 1 << 30
"""Largest length of a document. A larger length field is treated as damage. (MongoDB's own limit is 16 MiB.)"""


class Bson(StreamStore):
    """Writes with pymongo's bson.encode and reads with bson.decode, configured so that integers are returned as int."""

    format = "bson"
    engine = "pymongo"
    title = "BSON"
    distributions: ClassVar[tuple[str, ...]] = ("pymongo",)
    suffix = ".bson"
    maturity = Maturity(Stage.ESTABLISHED, "a published specification, MongoDB's since 2009; its drivers read it")

    @property
    def losses(self) -> tuple[DocumentLoss, ...]:
        """Documents with a NUL character in a name are refused, because NUL ends a name in BSON. Objects in the form of
        a MongoDB reference ($ref and $id) lose a field $db that is null."""
        return (
            refused("a field's name that contains a NUL, which ends names in BSON", Cause.FORMAT, "NUL in a name"),
            DocumentLoss(
                "a reference ($ref and $id) loses a $db that is null: bson.decode makes its own object of it",
                "the same reference, without a database",
                Cause.CALL,
                frozenset({"references to no database"}),
                _without_null_database,
            ),
        )

    def load_library(self) -> None:
        """Import bson, and make it return 64-bit integers as int and references as dict, not as pymongo's classes."""
        super().load_library()
        import bson
        from bson.codec_options import CodecOptions, TypeDecoder, TypeRegistry
        from bson.dbref import DBRef
        from bson.int64 import Int64

        class PlainInteger(TypeDecoder):
            """Converts Int64 to int."""

            bson_type = Int64

            def transform_bson(self, value: int) -> int:
                """Return the same number."""
                return int(value)

        class PlainReference(TypeDecoder):
            """Converts DBRef to the object that was stored."""

            bson_type = DBRef

            def transform_bson(self, value: DBRef) -> dict[str, Any]:
                """Return the fields of the reference that have a value."""
                return dict(value.as_doc())

        self._bson = bson
        self._options: CodecOptions[dict[str, Any]] = CodecOptions(
            type_registry=TypeRegistry([PlainInteger(), PlainReference()])
        )

    def encoded(self, batches: Iterable[Batch]) -> Iterator[bytes]:
        """Yield the documents of each batch as consecutive BSON documents."""
        first = 0
        for batch in document_encoding.dicts(batches):
            yield b"".join(self._encode(document, number) for number, document in enumerate(batch, start=first))
            first += len(batch)

    def _encode(self, document: Document, number: int) -> bytes:
        try:
            return self._bson.encode(document)
        except (self._bson.errors.BSONError, OverflowError, TypeError, ValueError, RecursionError) as error:
            raise RefusedData(f"document {number}: {error}") from None

    def decoded(self, file: BinaryIO, location: Path) -> Iterator[list[Document]]:
        """Yield the documents in batches, decoded one by one."""
        options = self._options
        try:
            yield from in_batches(self._bson.decode(data, options) for data in _documents(file, location))
        except (self._bson.errors.BSONError, UnicodeDecodeError) as error:
            raise AdapterError(f"{location}: a document is damaged ({error})") from None

    def counted(self, file: BinaryIO, location: Path) -> int:
        """Return the number of documents, counted by their length fields. No document is decoded."""
        return sum(1 for _ in _documents(file, location))


def _without_null_database(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_null_database(item) for item in value]
    if not isinstance(value, dict):
        return value
    is_reference = isinstance(value.get("$ref"), str) and "$id" in value
    return {
        name: _without_null_database(inner)
        for name, inner in value.items()
        if not (is_reference and name == "$db" and inner is None)
    }


def _documents(file: BinaryIO, location: Path) -> Iterator[bytes]:
    # The length includes the four bytes of the length field.
    while header := file.read(4):
        length = length_of(header, location, MOST_DOCUMENT_BYTES)
        yield header + whole(file.read(max(length - 4, 0)), length - 4, location)


ENGINES = (Bson,)
