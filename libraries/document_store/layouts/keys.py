"""Encode sorted keys as plain bytes.

Integers take 8 bytes each. Texts are stored as all lengths (4 bytes each), followed by the texts in UTF-8. Numbers are
little endian.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from libraries.document_store.errors import CorruptError
from libraries.document_store.layouts.layout import Key, KeyKind, Keys


def kind_of_keys(keys: Keys) -> KeyKind:
    """Return the kind of keys by the array's dtype: int64, or object holding str."""
    return "integer" if keys.dtype == np.int64 else "text"


def empty_keys(kind: KeyKind) -> Keys:
    """Return an empty array of that kind."""
    return np.empty(0, np.int64 if kind == "integer" else object)


def keys_of(kind: KeyKind, keys: Sequence[Key]) -> Keys:
    """Return keys as an array of the kind's dtype."""
    array = np.empty(len(keys), np.int64 if kind == "integer" else object)
    array[:] = keys
    return array


def encoded_sizes(keys: Keys) -> np.ndarray:
    """Return the bytes that `encode_keys` uses for each key."""
    if kind_of_keys(keys) == "integer":
        return np.full(len(keys), 8, np.int64)
    return np.fromiter((4 + len(key.encode()) for key in keys), np.int64, len(keys))


def encode_keys(keys: Keys) -> bytes:
    """Encode keys as described in the module's docstring."""
    if kind_of_keys(keys) == "integer":
        return keys.astype("<i8").tobytes()
    texts = [key.encode() for key in keys]
    return np.fromiter(map(len, texts), "<u4", len(texts)).tobytes() + b"".join(texts)


def decode_keys(kind: KeyKind, count: int, data: memoryview) -> Keys:
    """Decode all of `data` to `count` keys. Raises CorruptError if the size does not fit or keys do not ascend."""
    keys = _integers(count, data) if kind == "integer" else _texts(count, data)
    if not bool(np.all(keys[1:] > keys[:-1])):
        raise CorruptError(f"{count} keys are not in ascending order")
    return keys


def _integers(count: int, data: memoryview) -> Keys:
    if len(data) != 8 * count:
        raise CorruptError(f"{count} integer keys take {8 * count} bytes, not {len(data)}")
    return np.frombuffer(data, "<i8").astype(np.int64, copy=False)


def _texts(count: int, data: memoryview) -> Keys:
    if len(data) < 4 * count:
        raise CorruptError(f"{count} text keys need {4 * count} bytes for their lengths, there are {len(data)}")
    ends = np.cumsum(np.frombuffer(data[: 4 * count], "<u4"), dtype=np.int64).tolist()
    body = bytes(data[4 * count :])
    if (ends[-1] if ends else 0) != len(body):
        raise CorruptError(f"the lengths of {count} text keys do not add up to {len(body)} bytes")
    starts = [0, *ends[:-1]]
    try:
        texts = [body[start:end].decode() for start, end in zip(starts, ends, strict=True)]
    except UnicodeDecodeError as error:
        raise CorruptError(f"a text key is not valid UTF-8: {error}") from None
    return keys_of("text", texts)
