"""Convert a user's documents (JSON Lines or dicts) to the input of a library's call.

An invalid document raises RefusedData with the document's number.
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
"""Words that several readers accept as numbers although JSON does not. Valid texts may contain these words too."""

INTEGERS = range(-(2**63), 2**63)


def dicts(batches: Iterable[Batch]) -> Iterator[Sequence[Document]]:
    """Yield each non-empty batch as dicts. Raises RefusedData for lines that are not JSON objects."""
    first = 0
    for batch in batches:
        found = parsed(batch, first) if isinstance(batch, bytes) else batch
        if found:
            yield found
        first += len(found)


def parsed(lines: bytes, first: int = 0) -> list[Document]:
    """Parse JSON Lines. `first` is the number of the first document. Raises RefusedData for lines without an object."""
    try:
        found = _DECODER.decode_lines(lines)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise RefusedData(_first_wrong(lines, first)) from None
    for number, document in enumerate(found, start=first):
        if not isinstance(document, dict):
            raise RefusedData(f"document {number}: is not a JSON object")
    return found


def values_of(lines: bytes) -> list[Any]:
    """Parse values of any kind, one per line."""
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
    return f"documents from number {first} are not JSON Lines"


def lines(batches: Iterable[Batch]) -> Iterator[bytes]:
    """Yield each batch as JSON Lines with a final line break. Batches that are text stay unchanged.

    For dicts, bytes become Base64, and NaN and the infinities become null. Raises RefusedData for other values that
    JSON cannot express.
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
    """Encode dicts as JSON Lines. Raises RefusedData with the number of the first dict that cannot be encoded."""
    try:
        return _ENCODER.encode_lines(documents)
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass
    for number, document in enumerate(documents, start=first):
        try:
            _ENCODER.encode(document)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise RefusedData(f"document {number}: {error}") from None
    raise RefusedData(f"documents from number {first} cannot be written as JSON")


def strict(text: bytes, first: int = 0) -> bytes:
    """Return the JSON Lines after checking for NaN, Infinity and bytes that are not UTF-8.

    Readers accept these although they are not valid JSON; readers find other errors themselves. `first` is the number
    of the first document. Raises RefusedData.
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
    """Split JSON Lines in UTF-8, which end with an end of line, into a large_string array without empty lines."""
    import pyarrow as pa

    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")).astype(np.int64) + 1
    offsets = np.concatenate((np.zeros(1, np.int64), ends))
    array = pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(offsets.tobytes()), pa.py_buffer(text))
    # Objects end with a brace, so only other lines have to be examined.
    last = np.frombuffer(text, np.uint8)[np.maximum(ends - 2, 0)]
    blank = {int(place) for place in np.flatnonzero(last != ord("}")) if not array[int(place)].as_py().strip()}
    if not blank:
        return array
    return array.filter(pa.array([place not in blank for place in range(len(array))]))


def key_of(document: Any, key: str, number: int) -> Key:
    """Return the key of a document. Raises RefusedData if it is missing or neither an int nor a text."""
    found = document.get(key) if isinstance(document, dict) else None
    if (type(found) is int and found in INTEGERS) or type(found) is str:
        return found
    raise RefusedData(f"document {number}: its key {key!r} is {found!r}; it must be an int of 64 bits or a text")


def possible(keys: Iterable[Key]) -> list[Key]:
    """Return the distinct keys that a document can have: integers of 64 bits, and texts in UTF-8."""
    return list(dict.fromkeys(key for key in keys if (key in INTEGERS if isinstance(key, int) else is_utf8(key))))


def is_utf8(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8. Text with unpaired surrogates cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def keyed_texts(batch: Batch, key: str, first: int = 0) -> list[tuple[Key, str]]:
    """Return the key and the JSON text of each document.

    The text is encoded again without blanks or needless escapes, so that a name always has the same bytes. Raises
    RefusedData.
    """
    documents = parsed(batch, first) if isinstance(batch, bytes) else batch
    keys = [key_of(document, key, number) for number, document in enumerate(documents, start=first)]
    texts = encoded(documents, first).decode().split("\n")
    return list(zip(keys, texts, strict=False))
