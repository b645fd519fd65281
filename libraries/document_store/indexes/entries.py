"""Encode entries of a secondary index: a value and a key as bytes that sort by value, then by key.

Values of one kind are adjacent. Null, missing, NaN, arrays and objects have no entry, because no range contains them.
Long texts and binaries are truncated. A range lookup therefore returns every key whose value is in the range, and
possibly a few other keys. The caller must apply the filter again.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeAlias

from libraries.document_queries.errors import QueryError
from libraries.document_store.errors import CorruptError

Key: TypeAlias = int | str
Range: TypeAlias = tuple[bytes, bytes]

CUT_BYTES = 256
"""Maximum bytes of a text or binary that are stored and compared."""

_BOOLEAN, _INTEGER, _DOUBLE, _TEXT, _BINARY = (bytes([kind]) for kind in range(1, 6))
_END = b"\0\0"
"""The end of a text or binary. A zero byte within a text is encoded as zero and 255. A text therefore sorts before
every longer text that begins with it."""

_BIG = struct.Struct(">Q")
_BIG_DOUBLE = struct.Struct(">d")
_SIGN, _ALL = 1 << 63, (1 << 64) - 1
_AFTER_KIND = 1


def encode_value(value: object) -> bytes | None:
    """Encode the first part of an entry, the value. Return None for values that have no entry."""
    if isinstance(value, bool):
        return _BOOLEAN + bytes([value])
    if isinstance(value, int):
        return _INTEGER + _BIG.pack(value + _SIGN)
    if isinstance(value, float):
        return None if value != value else _DOUBLE + _double(value)
    if isinstance(value, str):
        return _TEXT + _text(value.encode()[:CUT_BYTES])
    if isinstance(value, bytes):
        return _BINARY + _text(value[:CUT_BYTES])
    return None


def encode_key(key: Key) -> bytes:
    """Encode the second part of an entry, the key."""
    return _BIG.pack(key + _SIGN) if isinstance(key, int) else _text(key.encode())


def entries(values: Sequence[object], key: Key) -> list[bytes]:
    """Return the unique entries of one document."""
    encoded = {part for value in values if (part := encode_value(value)) is not None}
    return [part + encode_key(key) for part in encoded]


def key_of(entry: bytes, text_keys: bool) -> Key:
    """Return the key of an entry. Raises CorruptError if the entry is malformed."""
    try:
        end = _end_of_value(entry)
        if not text_keys:
            return int(_BIG.unpack(entry[end:])[0]) - _SIGN
        if _end_of_text(entry, end) != len(entry):
            raise ValueError("bytes after the key")
        return entry[end:-2].replace(b"\0\xff", b"\0").decode()
    except (ValueError, IndexError, struct.error) as error:
        raise CorruptError(f"an entry of an index is malformed: {error}") from None


def ranges(low: object, high: object) -> list[Range]:
    """Return pairs of the first and the last entry prefix for values from low to high, inclusive. None means unbounded.

    Integers and doubles are compared by value, and each kind has its own pair. Raises QueryError for bounds that cannot
    be compared.
    """
    kinds = {_comparable(bound) for bound in (low, high) if bound is not None}
    if len(kinds) != 1:
        raise QueryError(
            "the bounds of an index lookup must be of the same kind, and at most one of them may be None "
            f"(got {type(low).__name__} and {type(high).__name__})"
        )
    (kind,) = kinds
    if kind == "number":
        return _integers(low, high) + _doubles(low, high)
    first, last = (None if bound is None else encode_value(bound) for bound in (low, high))
    prefix = (first or last or b"")[:_AFTER_KIND]
    return [(first or prefix, last + b"\xff" * 9 if last else bytes([prefix[0] + 1]))]


def _comparable(bound: object) -> str:
    if isinstance(bound, int | float) and not isinstance(bound, bool) and bound == bound:
        return "number"
    if isinstance(bound, bool | str | bytes):
        return type(bound).__name__
    raise QueryError(f"an index supports numbers (except NaN), texts, binaries and booleans as bounds, got {bound!r}")


def _integers(low: object, high: object) -> list[Range]:
    first = -_SIGN if low is None else _round(low, up=True)
    last = _SIGN - 1 if high is None else _round(high, up=False)
    if first > last or first >= _SIGN or last < -_SIGN:
        return []
    first, last = max(first, -_SIGN), min(last, _SIGN - 1)
    return [(_INTEGER + _BIG.pack(first + _SIGN), _INTEGER + _BIG.pack(last + _SIGN) + b"\xff" * 9)]


def _round(bound: object, up: bool) -> int:
    """Round a bound to the nearest integer inside the range. For an infinite bound, return an integer beyond 64
    bits."""
    assert isinstance(bound, int | float)
    if isinstance(bound, int):
        return bound
    if bound in (float("inf"), float("-inf")):
        return (_SIGN << 1) * (1 if bound > 0 else -1)
    return -int(-bound // 1) if up else int(bound // 1)


def _doubles(low: object, high: object) -> list[Range]:
    # An integer bound beyond 2**53 may round to a double outside the range, but the caller applies the filter again.
    first = float("-inf") if low is None else float(low)  # type: ignore[arg-type]
    last = float("inf") if high is None else float(high)  # type: ignore[arg-type]
    if first > last:
        return []
    return [(_DOUBLE + _double(first), _DOUBLE + _double(last) + b"\xff" * 9)]


def _double(value: float) -> bytes:
    """Encode a double. Set the sign bit of positive values, and invert all bits of negative values. -0.0 becomes
    0.0."""
    bits = _BIG.unpack(_BIG_DOUBLE.pack(value + 0.0))[0]
    return _BIG.pack(bits ^ (_ALL if bits & _SIGN else _SIGN))


def _text(data: bytes) -> bytes:
    return data.replace(b"\0", b"\0\xff") + _END


def _end_of_text(entry: bytes, start: int) -> int:
    while (start := entry.index(b"\0", start)) + 1 < len(entry):
        if entry[start + 1] == 0:
            return start + 2
        start += 2
    raise ValueError("a text without an end")


def _end_of_value(entry: bytes) -> int:
    kind = entry[:_AFTER_KIND]
    if kind in (_TEXT, _BINARY):
        return _end_of_text(entry, _AFTER_KIND)
    return _AFTER_KIND + (1 if kind == _BOOLEAN else 8)
