"""The inner loops of encoding. They run in the native library or, if it is not built, in numpy, with the same results.

Symbol tables, which give frequent short strings a code of one byte, are the exception. To train one, a loop visits
every byte, which is too slow with numpy. Without the library strings are therefore stored without symbols.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from libraries.f3.decoders import native

Numbers = NDArray[Any]
_BLOCK = 1024
_DECIMAL_MOST = {8: 1e15, 4: 2e9}
_TRIMS = (ctypes.c_double * 5)(0.0, 0.005, 0.02, 0.05, 0.1)
"""Shares of a sample that are tried as outliers at each end of the usual range."""


@dataclass(frozen=True)
class Statistics:
    """Statistics of signed integers: minimum and maximum, smallest and largest difference of neighbours (modulo 2 to
    the power of the bits of a value), and the number of runs of equal values."""

    least: int
    most: int
    least_step: int
    most_step: int
    runs: int


class _Statistics(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int64) for name in ("least", "most", "least_step", "most_step", "runs"))


def statistics(values: Numbers) -> Statistics:
    """Return the statistics of a non-empty array of integers of 1, 2, 4 or 8 bytes."""
    kernels = native.library()
    if kernels is None:
        return _statistics(values)
    found = _Statistics()
    kernels.f3_statistics(
        ctypes.c_void_p(values.ctypes.data), values.itemsize, ctypes.c_uint64(len(values)), ctypes.byref(found)
    )
    return Statistics(found.least, found.most, found.least_step, found.most_step, found.runs)


def _statistics(values: Numbers) -> Statistics:
    signed = values.view(f"i{values.itemsize}")
    if len(values) == 1:
        return Statistics(int(signed[0]), int(signed[0]), 0, 0, 1)
    unsigned = values.view(f"u{values.itemsize}")
    steps = (unsigned[1:] - unsigned[:-1]).view(signed.dtype)
    runs = int(np.count_nonzero(steps)) + 1
    return Statistics(int(signed.min()), int(signed.max()), int(steps.min()), int(steps.max()), runs)


@dataclass(frozen=True)
class UsualRange:
    """A range of integers, chosen so that the fewest bytes are needed if values in the range are packed and all other
    values are stored separately.

    `cost_bytes` is the estimated size of all values. `usual` is the most frequent value of the sample, and `times` is
    how often the sample has this value.
    """

    low: int
    high: int
    cost_bytes: float
    usual: int
    times: int


class _Range(ctypes.Structure):
    _fields_ = (
        ("low", ctypes.c_int64),
        ("high", ctypes.c_int64),
        ("cost", ctypes.c_double),
        ("usual", ctypes.c_int64),
        ("times", ctypes.c_uint64),
    )


def usual_range(sample: Numbers, count: int, *, signed: bool) -> UsualRange:
    """Estimate the usual range of `count` integers from a sample of 1 to 2,048 of them.

    The sample has an unsigned type. `signed` states whether its values represent signed integers.
    """
    kernels = native.library()
    if kernels is None:
        return _usual_range(sample, count, signed)
    sample, found = np.ascontiguousarray(sample), _Range()
    kernels.f3_usual_range(
        ctypes.c_void_p(sample.ctypes.data), sample.itemsize, int(signed), len(sample), ctypes.c_uint64(count), _TRIMS,
        ctypes.byref(found),
    )  # fmt: skip
    base = 0 if signed else 1 << 64
    low, high, usual = (number % base if base else number for number in (found.low, found.high, found.usual))
    return UsualRange(low, high, found.cost, usual, found.times)


def _usual_range(sample: Numbers, count: int, signed: bool) -> UsualRange:
    width, size = sample.itemsize, len(sample)
    ascending = np.sort(sample.view(f"i{width}") if signed else sample)
    best = (math.inf, 0, 0)
    for low_trim in _TRIMS:
        for high_trim in _TRIMS:
            low, high = int(ascending[int(low_trim * size)]), int(ascending[size - 1 - int(high_trim * size)])
            bits = (high - low).bit_length() if high > low else 0
            cost = count * bits / 8 + (low_trim + high_trim) * count * (width + 2)
            if low_trim + high_trim and cost < best[0]:
                best = (cost, low, high)
    ends = np.append(np.flatnonzero(ascending[1:] != ascending[:-1]), size - 1)
    times = np.diff(ends, prepend=-1)
    most = int(times.argmax())
    return UsualRange(best[1], best[2], best[0], int(ascending[ends[most]]), int(times[most]))


@dataclass(frozen=True)
class Repetitions:
    """How often values repeat: an estimate of the number of distinct values, and the number of runs of equal values."""

    distinct: int
    runs: int


class _Repetitions(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set_bits", "runs"))


def repetitions(values: Numbers, lengths: Numbers | None = None) -> Repetitions:
    """Count the distinct values and the runs in an array. Values have 2 or more bytes, or are strings of these lengths
    in bytes.

    numpy counts distinct values exactly. The native library estimates the number by linear counting, with an error of
    about 0.3 % (Whang, Vander-Zanden, Taylor; TODS 1990, section 3).
    """
    count = len(values) if lengths is None else len(lengths)
    kernels = native.library()
    if count == 0:
        return Repetitions(0, 0)
    if kernels is None:
        return _repetitions(values, lengths)
    bits = min(max(count.bit_length(), 12), 24)
    bitmap, found = np.zeros((1 << bits) // 64, np.uint64), _Repetitions()
    kernels.f3_repetitions(
        ctypes.c_void_p(values.ctypes.data), values.itemsize,
        ctypes.c_void_p(None if lengths is None else lengths.ctypes.data), ctypes.c_uint64(count), bits,
        ctypes.c_void_p(bitmap.ctypes.data), ctypes.byref(found),
    )  # fmt: skip
    unset = (1 << bits) - found.set_bits
    return Repetitions(min(count, round(math.log((1 << bits) / max(unset, 1)) * (1 << bits))), found.runs)


def _repetitions(values: Numbers, lengths: Numbers | None) -> Repetitions:
    if lengths is not None:
        count = len(lengths)
        ends = np.cumsum(lengths, dtype=np.int64)
        text = values.tobytes()
        texts = [text[end - length : end] for end, length in zip(ends, lengths, strict=True)]
        numbers = dict(zip(dict.fromkeys(texts), range(count), strict=False))
        values = np.array([numbers[each] for each in texts])
    return Repetitions(len(np.unique(values)), int(np.count_nonzero(values[1:] != values[:-1])) + 1)


def packed(values: Numbers, reference: int, bits: int) -> bytes:
    """Subtract the reference from unsigned values (modulo 2 to the power of the bits of a value), and pack the lowest
    `bits` (0 to 8 * width) of each."""
    if bits == 0:
        return b""
    kernels = native.library()
    if kernels is None:
        return _packed(values, reference, bits)
    out = np.empty(len(values) * bits // 8 + 16, np.uint8)
    size = kernels.f3_pack(
        ctypes.c_void_p(values.ctypes.data), values.itemsize, ctypes.c_uint64(len(values)), bits,
        ctypes.c_uint64(reference % (1 << 64)), ctypes.c_void_p(out.ctypes.data),
    )  # fmt: skip
    return out[:size].tobytes()


def _packed(values: Numbers, reference: int, bits: int) -> bytes:
    width_bits = 8 * values.itemsize
    less = values - values.dtype.type(reference % (1 << width_bits))
    word_bits = 32 if bits <= 32 else 64
    blocks = len(values) // _BLOCK
    whole = less[: blocks * _BLOCK].astype(f"u{word_bits // 8}").reshape(blocks, word_bits, _BLOCK // word_bits)
    words = np.zeros((blocks, bits, _BLOCK // word_bits), whole.dtype)
    for row in range(word_bits):
        word, shift = divmod(row * bits, word_bits)
        words[:, word] |= whole[:, row] << shift
        if shift + bits > word_bits:
            words[:, word + 1] |= whole[:, row] >> (word_bits - shift)
    rest = less[blocks * _BLOCK :].astype("<u8").view(np.uint8).reshape(-1, 8)
    rest_bits = np.unpackbits(rest, axis=1, bitorder="little")[:, :bits]
    return words.tobytes() + np.packbits(rest_bits, bitorder="little").tobytes()


def decimals(values: Numbers, exponent: int) -> tuple[Numbers, Numbers]:
    """Convert floats to integers, in units of 10^-exponent.

    Also return the positions of floats that the integers do not restore bit by bit. The integers at these positions are
    undefined.
    """
    kernels = native.library()
    if kernels is None:
        return _decimals(values, exponent)
    integers, misses = np.empty(len(values), f"i{values.itemsize}"), np.empty(len(values) + 1, np.uint32)
    function = kernels.f3_decimals_64 if values.itemsize == 8 else kernels.f3_decimals_32
    missed = function(
        ctypes.c_void_p(values.ctypes.data), ctypes.c_uint64(len(values)), exponent,
        ctypes.c_void_p(integers.ctypes.data), ctypes.c_void_p(misses.ctypes.data),
    )  # fmt: skip
    return integers, misses[:missed]


def _decimals(values: Numbers, exponent: int) -> tuple[Numbers, Numbers]:
    power = float(10**exponent)
    with np.errstate(all="ignore"):
        scaled = np.rint(values.astype(np.float64) * power)
        small = np.abs(scaled) < _DECIMAL_MOST[values.itemsize]
        integers = np.where(small, scaled, 0).astype(f"i{values.itemsize}")
        back = (integers.astype(np.float64) / power).astype(values.dtype)
    bits = f"u{values.itemsize}"
    exact = small & (back.view(bits) == values.view(bits))
    return np.where(exact, integers, integers[np.argmax(exact)]), np.flatnonzero(~exact).astype(np.uint32)


def decimal_exponent(values: Numbers, end: int, most_missed: int) -> int | None:
    """Return the least exponent below `end` with which `decimals` restores all floats but at most `most_missed`. Return
    None if there is no such exponent."""
    kernels = native.library()
    if kernels is None:
        found = (exponent for exponent in range(end) if len(_decimals(values, exponent)[1]) <= most_missed)
        return next(found, None)
    function = kernels.f3_decimal_exponent_64 if values.itemsize == 8 else kernels.f3_decimal_exponent_32
    exponent: int = function(
        ctypes.c_void_p(values.ctypes.data), ctypes.c_uint64(len(values)), end, ctypes.c_uint64(most_missed)
    )
    return exponent if exponent < end else None


class Symbols:
    """A symbol table that the native library trained on a sample of bytes. It gives frequent strings of up to eight
    bytes a code of one byte."""

    def __init__(self, work: ctypes.Array[ctypes.c_char], count: int, kernels: Any) -> None:
        self._work, self._count, self._kernels = work, count, kernels

    @property
    def count(self) -> int:
        """Number of symbols, at most 255."""
        return self._count

    def table(self) -> bytes:
        """Return the length of each symbol, followed by eight bytes for each symbol."""
        table = self._work.raw[: 9 * 256]
        texts, lengths = table[: 8 * self._count], table[8 * 256 : 8 * 256 + self._count]
        return lengths + texts

    def codes(self, text: Numbers) -> bytes:
        """Encode bytes as codes of the table's symbols."""
        out = np.empty(2 * len(text) + 8, np.uint8)
        size = self._kernels.f3_to_symbols(
            self._work, ctypes.c_void_p(text.ctypes.data), ctypes.c_uint64(len(text)), ctypes.c_void_p(out.ctypes.data)
        )
        return out[:size].tobytes()


def trained(sample: Numbers) -> Symbols | None:
    """Train a symbol table on a sample of texts. Return None if the native library is not built."""
    kernels = native.library()
    if kernels is None:
        return None
    work = ctypes.create_string_buffer(kernels.f3_training_bytes())
    count = kernels.f3_train(ctypes.c_void_p(sample.ctypes.data), ctypes.c_uint64(len(sample)), work)
    return Symbols(work, count, kernels)
