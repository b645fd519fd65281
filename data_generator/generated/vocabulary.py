"""Sets of distinct values like those of real columns: codes, amounts, measures, names.

The values of a set are ascending. Sorting the indexes of values is therefore the same as sorting the values.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from data_generator.generated import columns, streams
from data_generator.generated.words import WORDS

Own = NDArray[np.bool_]

_ALPHABET = np.frombuffer(b"0123456789abcdefghijklmnopqrstuvwxyz", dtype=np.uint8)
_PROSE = (" " + " ".join(WORDS)).encode()


def values(kind: str, own: Own, width_bytes: float, path: tuple[object, ...], batch: int) -> pa.Array:
    """Return ascending distinct values of a kind (float64, int64, string), one for each item of `own`.

    Where `own` is False, every batch of the table has the same value. Where `own` is True, only this batch has the
    value, so the number of distinct values grows with the table.
    """
    numbers = _numbers(own, path, batch)
    if kind == "string":
        return _texts(numbers, width_bytes, path)
    style = streams.raw_words(1, *path, "style")[0] % 3
    if kind == "int64":
        return columns.numbers(numbers + (0, 1, 100_000)[style] * (len(own) > 2))
    if style == 0:
        return columns.numbers(numbers / 1_048_583.0)
    return columns.numbers(numbers / 100.0)


def _numbers(own: Own, path: tuple[object, ...], batch: int) -> NDArray[np.int64]:
    """Return distinct ascending integers.

    If all batches share all values (`own` is False everywhere), these are 0, 1, 2, ... Otherwise, there are gaps.
    Integers that all batches share are multiples of 16. To the other integers, a remainder of 1 to 15 is added, which
    differs between up to 15 batches.
    """
    if not own.any():
        return np.arange(len(own))
    gaps = streams.integers(streams.raw_words(len(own), *path, "gaps"), 1, 3)
    return np.cumsum(gaps) * 16 + own * (1 + batch % 15)


def _texts(numbers: NDArray[np.int64], width_bytes: float, path: tuple[object, ...]) -> pa.Array:
    """Return strings with a mean size of `width_bytes`: a code that sorts like the number, followed by words.

    The size of the words varies between strings, from 0.5 to 1.5 times the mean.
    """
    count = len(numbers)
    digits = 1
    while 36**digits <= int(numbers[-1]):
        digits += 1
    spare = max(width_bytes - digits, 0.0)
    words = streams.raw_words(2 * count, *path, "text").reshape(2, count)
    lengths = (spare * 0.5 + streams.unit_floats(words[0]) * spare + 0.5).astype(np.int64)
    longest = int(lengths.max()) + digits
    text = np.empty((count, longest), dtype=np.uint8)
    rest = numbers
    for place in range(digits - 1, -1, -1):
        rest, digit = np.divmod(rest, 36)
        text[:, place] = _ALPHABET[digit]
    prose = np.frombuffer(_PROSE * (1 + longest // len(_PROSE)), dtype=np.uint8)
    if longest > digits:
        windows = np.lib.stride_tricks.sliding_window_view(prose, longest - digits)
        text[:, digits:] = windows[streams.integers(words[1], 0, len(windows) - 1)]
    kept = np.arange(longest) < (lengths + digits)[:, None]
    return columns.strings(text[kept].tobytes(), lengths + digits)
