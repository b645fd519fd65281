"""Encode documents as MessagePack rows, and check that a row is a valid document.

Rows may be hostile, so they are checked on entry. Errors name the document and the path. C code checks rows if it was
built. Python code then explains what is wrong with a row that was refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from libraries.document_queries.paths import ITEMS, Path
from libraries.document_queries.values import INTEGER_HIGHEST, INTEGER_LOWEST, MAX_DEPTH
from libraries.document_store import kernels
from libraries.document_store.errors import DocumentError
from libraries.document_store.values import ValueKind, kind_of

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(dict[str, Any])

_DOCUMENT = Path()

TOO_LARGE = f"an integer of more than 64 bits ({INTEGER_LOWEST} to {INTEGER_HIGHEST}); store it as text or as a double"
TOO_DEEP = f"is nested more than {MAX_DEPTH} steps deep"
NOT_TEXT = "a text that is not valid UTF-8; store it as bytes"
ZONED = "a date and time with a time zone; store it as text, in one zone"


def encode(document: dict[str, Any], number: int | None = None) -> bytes:
    """Encode a document as a checked row. Raises DocumentError, which names the path and, if given, the document's
    `number`."""
    (row,) = encode_all([document], first=number)
    return row


def encode_all(documents: Iterable[dict[str, Any]], first: int | None = 0) -> list[bytes]:
    """Encode documents as checked rows. Errors number the documents from `first` on.

    Types that msgspec converts are accepted, because refusing them would at least double the time. Tuples and sets
    become arrays, dataclasses become objects, enums become their values. UUIDs, decimals, dates, and times without a
    time zone become texts.
    """
    rows = []
    for number, document in enumerate(documents, start=first or 0):
        try:
            rows.append(_encoder.encode(document))
        except (OverflowError, TypeError, ValueError, RecursionError) as error:
            called = None if first is None else number
            _explain_value(document, called)
            raise DocumentError(str(error), called) from error
    check_rows(rows, first=first)
    return rows


def decode(row: bytes | memoryview) -> dict[str, Any]:
    """Decode a checked row."""
    return _decoder.decode(row)


def check(row: bytes, document: int | None = None) -> None:
    """Raise DocumentError unless the row is exactly one valid document (see `values`)."""
    check_rows([row], first=document)


def check_rows(
    rows: Sequence[bytes], key: str | None = None, kind: ValueKind | None = None, *, first: int | None = 0
) -> None:
    """Raise DocumentError for the first row that is not a valid document. Errors number the rows from `first` on.

    With `key`, the name of the key field, also raise DocumentError for a key of another kind than `kind`.
    """
    faulty = kernels.first_faulty_row(rows) if kernels.NATIVE else 0
    if faulty is not None:
        for number, row in enumerate(rows[faulty:], start=faulty):
            _Walk(row, None if first is None else first + number).document()
    if key is not None and rows:
        found = kind_of(keys_of(rows, key)[0])
        if kind is not None and found is not kind:
            words = f"the key is of the kind {found.name.lower()}, the store's keys are {kind.name.lower()}"
            raise DocumentError(words, first, str(_DOCUMENT / key))


def keys_of(rows: Sequence[bytes], key: str) -> list[Any]:
    """Return the keys of checked rows, all int or all str. Raises DocumentError for missing keys and other types."""
    keys = kernels.keys_of(rows, key.encode()) if kernels.NATIVE else None
    # The code below explains what C refused.
    return _keys(rows, key) if keys is None else keys


def _keys(rows: Sequence[bytes], key: str) -> list[Any]:
    where = str(_DOCUMENT / key)
    keys: list[Any] = []
    for number, row in enumerate(rows):
        value = decode(row).get(key)
        if type(value) not in (int, str):
            words = "missing or null" if value is None else f"a {type(value).__name__}"
            raise DocumentError(f"the key must be an integer of 64 bits or a text, not {words}", number, where)
        if keys and type(value) is not type(keys[0]):
            kinds = ("a text", "an integer") if isinstance(value, str) else ("an integer", "a text")
            raise DocumentError(f"the key is {kinds[0]}, but the first key of the batch is {kinds[1]}", number, where)
        keys.append(value)
    return keys


def _explain_value(value: Any, number: int | None, path: Path = _DOCUMENT) -> None:
    """Raise DocumentError with the path of the value that the encoder refuses."""
    if len(path) > MAX_DEPTH:
        raise DocumentError(TOO_DEEP, number, str(path))
    if isinstance(value, (list, tuple)):
        for item in value:
            _explain_value(item, number, path / ITEMS)
    elif isinstance(value, dict):
        for name, item in value.items():
            if not isinstance(name, str):
                raise DocumentError(f"has a field named {name!r}; names must be texts", number, str(path))
            _explain_value(name, number, path)
            _explain_value(item, number, path / name)
    elif isinstance(value, int) and not INTEGER_LOWEST <= value <= INTEGER_HIGHEST:
        raise DocumentError(TOO_LARGE, number, str(path))
    else:
        try:
            _encoder.encode(value)
        except UnicodeEncodeError as error:
            raise DocumentError(NOT_TEXT, number, str(path).encode(errors="replace").decode()) from error
        except (OverflowError, TypeError, ValueError, RecursionError) as error:
            raise DocumentError(_refused(value) or str(error), number, str(path)) from error


def _refused(value: Any) -> str:
    """Return the reason why a document cannot hold the value; '' if the value's type is allowed."""
    try:
        kind_of(value)
    except TypeError as error:
        return str(error)
    return ""


_SIZED: dict[int, tuple[str, str]] = {
    0xC4: ("binary", ">B"), 0xC5: ("binary", ">H"), 0xC6: ("binary", ">I"),
    0xD9: ("text", ">B"), 0xDA: ("text", ">H"), 0xDB: ("text", ">I"),
    0xDC: ("array", ">H"), 0xDD: ("array", ">I"),
    0xDE: ("object", ">H"), 0xDF: ("object", ">I"),
}  # fmt: skip
"""Leading byte of a value -> type of the value, and format of the length that follows."""
_SCALARS = {0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8}
_SCALARS |= {0xCC + power: 1 << power for power in range(4)} | {0xD0 + power: 1 << power for power in range(4)}
"""Leading byte of a value -> number of bytes that follow it."""
_UNSIGNED_64 = 0xCF
_MOMENTS = (b"\xd6\xff", b"\xd7\xff", b"\xc7\x0c\xff")
"""First bytes of the three timestamp forms of MessagePack. msgspec writes these forms for a datetime with a time
zone."""


class _Walk:
    """Walks over one row, from its first byte to its last."""

    def __init__(self, row: bytes, number: int | None) -> None:
        self._row, self._number, self._place, self._path = row, number, 0, Path()

    def document(self) -> None:
        what, size = self._head()
        if what != "object":
            raise self._fault("is not an object of named fields")
        self._object(size)
        if self._place != len(self._row):
            raise self._fault(f"is followed by {len(self._row) - self._place} bytes that do not belong to it")

    def _fault(self, words: str) -> DocumentError:
        return DocumentError(words, self._number, str(self._path))

    def _take(self, size: int) -> bytes:
        piece = self._row[self._place : self._place + size]
        if len(piece) != size:
            raise self._fault("is truncated")
        self._place += size
        return piece

    def _head(self) -> tuple[str, int]:
        """Read the next header. Return the kind of the value, and the number of its bytes, items or fields."""
        (first,) = self._take(1)
        if first <= 0x7F or first >= 0xE0:
            return "scalar", 0
        if first <= 0x8F:
            return "object", first & 0x0F
        if first <= 0x9F:
            return "array", first & 0x0F
        if first <= 0xBF:
            return "text", first & 0x1F
        if first in _SIZED:
            what, form = _SIZED[first]
            return what, struct.unpack(form, self._take(struct.calcsize(form)))[0]
        if first not in _SCALARS:
            if self._row[self._place - 1 :].startswith(_MOMENTS):
                raise self._fault(ZONED)
            raise self._fault(f"has a type that documents do not support (MessagePack's 0x{first:02x})")
        if first == _UNSIGNED_64 and self._row[self._place : self._place + 1] >= b"\x80":
            raise self._fault(TOO_LARGE)
        return "scalar", _SCALARS[first]

    def _text(self, size: int) -> str:
        try:
            return self._take(size).decode()
        except UnicodeDecodeError as error:
            raise self._fault(NOT_TEXT) from error

    def _object(self, fields: int) -> None:
        names = set()
        above = self._path
        for _ in range(fields):
            what, size = self._head()
            if what != "text":
                raise self._fault(f"has a field whose name is of the type {what}; names must be texts")
            name = self._text(size)
            self._path = above / name
            if name in names:
                raise self._fault("occurs twice in one object; name each field once")
            names.add(name)
            self._value()
        self._path = above

    def _value(self) -> None:
        if len(self._path) > MAX_DEPTH:
            raise self._fault(TOO_DEEP)
        what, size = self._head()
        if what == "object":
            self._object(size)
        elif what == "array":
            above, self._path = self._path, self._path / ITEMS
            for _ in range(size):
                self._value()
            self._path = above
        elif what == "text":
            self._text(size)
        else:
            self._take(size)
