"""Converting a user's documents, which are JSON Lines or dicts, to the input that a library needs.

If a document is invalid, RefusedData is raised, with the number of the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from adapters.document_store import Batch, Document, Key
from adapters.errors import RefusedData

if TYPE_CHECKING:
    import pyarrow as pa

_DECODER = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder()

_NOT_JSON = re.compile(rb"NaN|nan|Inf|inf")
"""Pattern for words that some readers accept as numbers, although they are not valid JSON. A match does not mean that a
document is invalid, because strings may contain these words."""

INTEGERS = range(-(2**63), 2**63)


def dicts(batches: Iterable[Batch]) -> Iterator[Sequence[Document]]:
    """Yield the documents of each non-empty batch as dicts. Raises RefusedData for a line that is not a JSON object."""
    first = 0
    for batch in batches:
        found = parsed(batch, first) if isinstance(batch, bytes) else batch
        if found:
            yield found
        first += len(found)


def parsed(lines: bytes, first: int = 0) -> list[Document]:
    """Return the documents in JSON Lines. `first` is the number of the first document, for error messages. Raises
    RefusedData for a line that is not a JSON object."""
    try:
        found = _DECODER.decode_lines(lines)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise RefusedData(_first_wrong(lines, first)) from None
    for number, document in enumerate(found, start=first):
        if not isinstance(document, dict):
            raise RefusedData(f"document {number}: is not a JSON object")
    return found


def values_of(lines: bytes) -> list[Any]:
    """Return the JSON values in a text with one value per line."""
    return _DECODER.decode_lines(lines)


def _first_wrong(lines: bytes, first: int) -> str:
    number = first
    for line in lines.splitlines():
        if not line.strip():
            continue
        try:
            _DECODER.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return f"document {number}: is not valid JSON ({error})"
        number += 1
    return f"the documents from number {first} on are not JSON Lines"


def lines(batches: Iterable[Batch]) -> Iterator[bytes]:
    """Yield each non-empty batch as JSON Lines with a final line break. Batches that are JSON Lines are not changed.

    In batches of dicts, bytes are encoded as Base64, and NaN and infinities as null. Raises RefusedData for other
    values that JSON cannot express.
    """
    first = 0
    for batch in batches:
        if isinstance(batch, bytes):
            if batch.strip():
                yield batch if batch.endswith(b"\n") else batch + b"\n"
            continue
        yield encoded(batch, first)
        first += len(batch)


def encoded(documents: Sequence[Document], first: int = 0) -> bytes:
    """Return dicts encoded as JSON Lines. Raises RefusedData for a dict that cannot be encoded. The message has the
    number of this dict, counted from `first`, the number of the first dict."""
    try:
        return _ENCODER.encode_lines(documents)
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass
    for number, document in enumerate(documents, start=first):
        try:
            _ENCODER.encode(document)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise RefusedData(f"document {number}: {error}") from None
    raise RefusedData(
        f"documents {first} to {first + len(documents) - 1} cannot be written as JSON together, only one by one"
    )


def strict(text: bytes, first: int = 0) -> bytes:
    """Check JSON Lines and return them unchanged. Raises RefusedData if the lines contain NaN, Infinity or bytes that
    are not UTF-8, because some libraries accept these although they are not valid JSON.

    Other errors are left to the libraries. `first` is the number of the first document.
    """
    if _NOT_JSON.search(text):
        parsed(text, first)
    try:
        text.decode()
    except UnicodeDecodeError as error:
        number = first + sum(1 for line in text[: error.start].split(b"\n")[:-1] if line.strip())
        raise RefusedData(f"document {number}: is not UTF-8 ({error.reason})") from None
    return text


def texts_of(text: bytes) -> pa.Array:
    """Return the lines of a UTF-8 text as a large_string array, without empty lines. The text must end with a line
    break."""
    import pyarrow as pa

    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")).astype(np.int64) + 1
    offsets = np.concatenate((np.zeros(1, np.int64), ends))
    array = pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(offsets.tobytes()), pa.py_buffer(text))
    # A line that ends with a brace is not empty, so only other lines are examined.
    last = np.frombuffer(text, np.uint8)[np.maximum(ends - 2, 0)]
    blank = {int(place) for place in np.flatnonzero(last != ord("}")) if not array[int(place)].as_py().strip()}
    if not blank:
        return array
    return array.filter(pa.array([place not in blank for place in range(len(array))]))


def key_of(document: Any, key: str, number: int) -> Key:
    """Return the value of a document's field `key`. Raises RefusedData if the field is missing, or if its value is
    neither a 64-bit integer nor a text. The message has the document's `number`."""
    found = document.get(key) if isinstance(document, dict) else None
    if (type(found) is int and found in INTEGERS) or type(found) is str:
        return found
    raise RefusedData(f"document {number}: the key {key!r} must be an int of 64 bits or a text (got {found!r})")


def possible(keys: Iterable[Key]) -> list[Key]:
    """Return those keys that a document can have, without duplicates: 64-bit integers, and texts that are valid in
    UTF-8."""
    return list(dict.fromkeys(key for key in keys if (key in INTEGERS if isinstance(key, int) else is_utf8(key))))


def is_utf8(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8. A text with unpaired surrogates cannot be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def keyed_texts(batch: Batch, key: str, first: int = 0) -> list[tuple[Key, str]]:
    """Return a pair of key and JSON text for each document.

    Documents are parsed and encoded again, without blanks and unnecessary escapes, so that the same name always has the
    same bytes. Raises RefusedData for an invalid document. `first` is the number of the first document.
    """
    documents = parsed(batch, first) if isinstance(batch, bytes) else batch
    keys = [key_of(document, key, number) for number, document in enumerate(documents, start=first)]
    texts = encoded(documents, first).decode().split("\n")
    return list(zip(keys, texts, strict=False))
