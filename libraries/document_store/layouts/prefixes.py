"""Eight-byte codes that keep the order of values. The lowest and highest code of a column let queries skip leaves that
cannot match.

Codes are monotonic, so `code(a) > code(b)` proves a > b. Equal codes prove nothing, because texts may share their first
eight bytes. Codes are unsigned, so codes of numbers, texts and bytes are compared in the same way.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from libraries.document_store.values import ValueKind

LOWEST, HIGHEST = 0, (1 << 64) - 1
NO_VALUES = (HIGHEST, LOWEST)
"""The codes of a column without comparable values. No range matches these codes."""

_SIGN = 1 << 63
_U64, _F64 = struct.Struct(">Q"), struct.Struct(">d")


def code_of(kind: ValueKind, value: Any) -> int | None:
    """Return the code of a value of this kind. Return None for NaN and for values of another kind."""
    if kind is ValueKind.INTEGER and type(value) is int and -_SIGN <= value < _SIGN:
        return value + _SIGN
    if kind is ValueKind.DOUBLE and type(value) is float and not math.isnan(value):
        # Adding 0.0 turns -0.0 into 0.0. Both are equal, so they must have the same code.
        bits: int = _U64.unpack(_F64.pack(value + 0.0))[0]
        return bits | _SIGN if bits < _SIGN else bits ^ HIGHEST
    if kind is ValueKind.TEXT and type(value) is str:
        return _prefix(value[:8].encode(errors="surrogatepass"))
    if kind is ValueKind.BINARY and type(value) is bytes:
        return _prefix(value)
    if kind is ValueKind.BOOLEAN and type(value) is bool:
        return int(value)
    return None


def _prefix(data: bytes) -> int:
    code: int = _U64.unpack(data[:8].ljust(8, b"\0"))[0]
    return code


def codes_of_numbers(kind: ValueKind, values: np.ndarray) -> tuple[int, int]:
    """Return the lowest and highest code of integers, doubles or booleans. Skip NaN, which no range contains."""
    if kind is ValueKind.DOUBLE:
        values = values[~np.isnan(values)]
    if not len(values):
        return NO_VALUES
    convert = {ValueKind.INTEGER: int, ValueKind.DOUBLE: float, ValueKind.BOOLEAN: bool}[kind]
    low, high = code_of(kind, convert(values.min())), code_of(kind, convert(values.max()))
    assert low is not None
    assert high is not None
    return low, high


def codes_of_texts(offsets: np.ndarray, data: bytes | memoryview | np.ndarray) -> tuple[int, int]:
    """Return the lowest and highest code of texts or bytes. Text i is `data[offsets[i] : offsets[i + 1]]`."""
    lengths = np.diff(offsets)
    if not len(lengths):
        return NO_VALUES
    padded = np.concatenate((np.frombuffer(data, np.uint8), np.zeros(8, np.uint8)))
    # Row i of this view is the eight bytes that start at position i, so rows overlap.
    windows = np.ndarray((len(padded) - 7, 8), np.uint8, padded, strides=(1, 1))[offsets[:-1]]
    codes = windows.view(">u8").ravel().astype(np.uint64)
    # Bytes after the end of a short text count as zero, which sorts "a" before "a\0...".
    is_short = lengths < 8
    behind = (64 - 8 * lengths[is_short]).astype(np.uint64)
    codes[is_short] = np.where(behind == 64, np.uint64(0), codes[is_short] >> (behind % 64) << (behind % 64))
    return int(codes.min()), int(codes.max())


def may_hold(codes: Sequence[int], kind: ValueKind, low: Any, high: Any) -> bool:
    """Return whether a column with these lowest and highest codes may hold a value from low to high (None: unbounded).

    Integers and doubles are compared by value. Returns True if a bound is NaN or of another kind than the column.
    """
    lowest, highest = codes
    low_code = LOWEST if low is None else code_of(kind, _converted(kind, low, math.ceil))
    high_code = HIGHEST if high is None else code_of(kind, _converted(kind, high, math.floor))
    if low_code is None or high_code is None:
        return True
    return lowest <= highest and lowest <= high_code and low_code <= highest


def _converted(kind: ValueKind, bound: Any, rounded: Callable[[float], int]) -> Any:
    """Convert a bound to the column's kind, so that every value of that kind stays on the same side of the bound.
    `rounded` rounds a double bound to an integer."""
    if kind is ValueKind.INTEGER and type(bound) is float and abs(bound) < _SIGN:
        return rounded(bound)
    if kind is ValueKind.DOUBLE and type(bound) is int and -_SIGN <= bound < _SIGN:
        # No double is between an integer and its nearest double, so rounding in either direction is safe.
        return float(bound)
    return bound
