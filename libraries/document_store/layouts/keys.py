"""Sorted keys as bytes: plain, so that a search needs no decoding.

Integers take 8 bytes each; texts are their lengths (4 bytes each), then their UTF-8. Little endian.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from libraries.document_store.errors import CorruptError
from libraries.document_store.layouts.layout import Key, KeyKind, Keys


def kind_of_keys(keys: Keys) -> KeyKind:
    """By the array's dtype: int64, or object holding str."""
    return "integer" if keys.dtype == np.int64 else "text"


def empty_keys(kind: KeyKind) -> Keys:
    """No key of that kind."""
    return np.empty(0, np.int64 if kind == "integer" else object)


def keys_of(kind: KeyKind, keys: Sequence[Key]) -> Keys:
    """An array of the kind's dtype."""
    array = np.empty(len(keys), np.int64 if kind == "integer" else object)
    array[:] = keys
    return array


def encoded_sizes(keys: Keys) -> np.ndarray:
    """How many bytes `encode_keys` takes for each key."""
    if kind_of_keys(keys) == "integer":
        return np.full(len(keys), 8, np.int64)
    return np.fromiter((4 + len(key.encode()) for key in keys), np.int64, len(keys))


def encode_keys(keys: Keys) -> bytes:
    """Keys as the module's docstring has them."""
    if kind_of_keys(keys) == "integer":
        return keys.astype("<i8").tobytes()
    texts = [key.encode() for key in keys]
    return np.fromiter(map(len, texts), "<u4", len(texts)).tobytes() + b"".join(texts)


def decode_keys(kind: KeyKind, count: int, data: memoryview) -> Keys:
    """The `count` keys that `data` are made of. Raises CorruptError if they are not, or do not rise."""
    keys = _integers(count, data) if kind == "integer" else _texts(count, data)
    if not bool(np.all(keys[1:] > keys[:-1])):
        raise CorruptError(f"{count} keys do not rise")
    return keys


def _integers(count: int, data: memoryview) -> Keys:
    if len(data) != 8 * count:
        raise CorruptError(f"{count} integer keys take {8 * count} bytes, not {len(data)}")
    return np.frombuffer(data, "<i8").astype(np.int64, copy=False)


def _texts(count: int, data: memoryview) -> Keys:
    if len(data) < 4 * count:
        raise CorruptError(f"{count} text keys need the {4 * count} bytes of their lengths, there are {len(data)}")
    ends = np.cumsum(np.frombuffer(data[: 4 * count], "<u4"), dtype=np.int64).tolist()
    body = bytes(data[4 * count :])
    if (ends[-1] if ends else 0) != len(body):
        raise CorruptError(f"the lengths of {count} text keys do not add up to {len(body)} bytes")
    starts = [0, *ends[:-1]]
    try:
        texts = [body[start:end].decode() for start, end in zip(starts, ends, strict=True)]
    except UnicodeDecodeError as error:
        raise CorruptError(f"a text key is no UTF-8: {error}") from None
    return keys_of("text", texts)
