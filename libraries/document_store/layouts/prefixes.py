"""Eight bytes that keep the order of values: the smallest and largest of each column, for skipping what cannot match.

A code never rises where the value falls, so `code(a) > code(b)` proves a > b; equal codes prove nothing, for texts
share their first eight bytes. The codes are unsigned, so that numbers, texts and bytes compare in one way.
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
"""The codes of a column without one comparable value: no range meets them."""

_SIGN = 1 << 63
_U64, _F64 = struct.Struct(">Q"), struct.Struct(">d")


def code_of(kind: ValueKind, value: Any) -> int | None:
    """The code of a value of that kind; None for a value that has no order there (NaN, another kind)."""
    if kind is ValueKind.INTEGER and type(value) is int and -_SIGN <= value < _SIGN:
        return value + _SIGN
    if kind is ValueKind.DOUBLE and type(value) is float and not math.isnan(value):
        # Adding 0.0 makes 0.0 of -0.0: they compare as equal, so one may not prune the other.
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
    """The lowest and highest code of integers, doubles or booleans; NaN, which no range holds, is left out."""
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
    """The lowest and highest code of texts or bytes, `data[offsets[i] : offsets[i + 1]]` each."""
    lengths = np.diff(offsets)
    if not len(lengths):
        return NO_VALUES
    padded = np.concatenate((np.frombuffer(data, np.uint8), np.zeros(8, np.uint8)))
    # The eight bytes from each place on, as one view of overlapping rows.
    windows = np.ndarray((len(padded) - 7, 8), np.uint8, padded, strides=(1, 1))[offsets[:-1]]
    codes = windows.view(">u8").ravel().astype(np.uint64)
    # What lies behind the end of a short text counts as zero, which keeps "a" before "a\0...".
    is_short = lengths < 8
    behind = (64 - 8 * lengths[is_short]).astype(np.uint64)
    codes[is_short] = np.where(behind == 64, np.uint64(0), codes[is_short] >> (behind % 64) << (behind % 64))
    return int(codes.min()), int(codes.max())


def may_hold(codes: Sequence[int], kind: ValueKind, low: Any, high: Any) -> bool:
    """Whether a column with these lowest and highest codes may hold a value from low to high, None for an open end.

    Integers and doubles bound each other as numbers. A bound of any other kind than the column's, or NaN, proves
    nothing.
    """
    lowest, highest = codes
    low_code = LOWEST if low is None else code_of(kind, _converted(kind, low, math.ceil))
    high_code = HIGHEST if high is None else code_of(kind, _converted(kind, high, math.floor))
    if low_code is None or high_code is None:
        return True
    return lowest <= highest and lowest <= high_code and low_code <= highest


def _converted(kind: ValueKind, bound: Any, rounded: Callable[[float], int]) -> Any:
    """A number as one of the column's kind, on the same side of all of that kind."""
    if kind is ValueKind.INTEGER and type(bound) is float and abs(bound) < _SIGN:
        return rounded(bound)
    if kind is ValueKind.DOUBLE and type(bound) is int and -_SIGN <= bound < _SIGN:
        # No double lies between an integer and the double next to it, so rounding either way proves nothing wrong.
        return float(bound)
    return bound
