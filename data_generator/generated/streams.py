"""Random values that are the same on every machine and with every version of numpy.

numpy guarantees the raw words of a named bit generator, but not the distributions of its Generator. So this module
takes only raw 64-bit words and does the arithmetic itself.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_PLACE_BITS = 21
_LETTERS = 26
_LARGEST_MULTIPLE = 256 - 256 % _LETTERS
_BYTE_TO_LETTER = bytes(ord("a") + byte % _LETTERS for byte in range(256))
_REFUSED_BYTES = bytes(range(_LARGEST_MULTIPLE, 256))


def raw_words(count: int, *path: object) -> Words:
    """Return `count` random 64-bit words (uint64) of the stream that `path` names.

    `path` identifies the purpose of the words: data set, column, version, number of the batch. The generator is
    PCG64DXSM, seeded by the SHA-256 of the path.
    """
    seed = hashlib.sha256("\x1f".join(map(str, path)).encode()).digest()
    words: Words = np.random.PCG64DXSM(int.from_bytes(seed[:16], "little")).random_raw(count)
    return words


def integers(words: Words, low: int, high: int) -> NDArray[np.int64]:
    """Return one int64 per word, uniform in `low` to `high` (inclusive); high - low must be below 2**32 - 1.

    The upper 32 bits are multiplied by the size of the range and shifted, so probabilities differ by at most 2**-32.
    """
    span = np.uint64(high - low + 1)
    scaled = ((words >> np.uint64(32)) * span) >> np.uint64(32)
    return scaled.view(np.int64) + low


def unit_floats(words: Words) -> NDArray[np.float64]:
    """Return one float64 per word, uniform in [0, 1). It has the upper 53 bits of the word."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def permutation(count: int, *path: object) -> NDArray[np.int64]:
    """Return the numbers 0 to count - 1 (int64) in random order; count is at most 2**21.

    In each random word, the lower bits are replaced by the index of the word. The words are then sorted, and the lower
    bits of the sorted words are the result. This is many times as fast as an argsort. All words differ, so every
    sorting algorithm gives the same result. Raises ValueError for a larger count.
    """
    if count > 1 << _PLACE_BITS:
        raise ValueError(f"A permutation can have at most {1 << _PLACE_BITS:,} numbers (got {count:,}).")
    places = np.uint64((1 << _PLACE_BITS) - 1)
    keys = (raw_words(count, *path) & ~places) | np.arange(count, dtype=np.uint64)
    keys.sort()
    return (keys & places).view(np.int64)


def letters(count: int, *path: object) -> memoryview:
    """Return `count` lower-case letters of the stream that `path` names. All letters are equally likely.

    256 is not a multiple of 26, so random bytes of 234 or more are rejected. Therefore, 12 % more random bytes than
    letters are generated. In the rare case that these bytes are not enough, more bytes are generated.
    """
    drawn = b""
    attempt = 0
    while len(drawn) < count:
        words = raw_words(count * 9 // 64 + 16, *path, attempt)
        drawn += words.astype("<u8", copy=False).tobytes().translate(_BYTE_TO_LETTER, _REFUSED_BYTES)
        attempt += 1
    return memoryview(drawn)[:count]
