"""Random values that are the same on every machine and under every version of numpy.

numpy keeps the raw words of a named bit generator stable for ever, but not the distributions of its Generator. So only
raw 64-bit words are taken from it, and the arithmetic is done here.
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
    """`count` random 64-bit words (uint64) of the stream that `path` names.

    `path` says what the words are for: data set, column, version, number of the batch. The generator is
    PCG64DXSM, seeded by the SHA-256 of the path.
    """
    seed = hashlib.sha256("\x1f".join(map(str, path)).encode()).digest()
    words: Words = np.random.PCG64DXSM(int.from_bytes(seed[:16], "little")).random_raw(count)
    return words


def integers(words: Words, low: int, high: int) -> NDArray[np.int64]:
    """One int64 for each word, uniform in `low` to `high`, both included; high - low must be below 2**32 -
    1.

    The product of the upper 32 bits with the size of the range, shifted: no value is likelier than another
    by more than 2**-32.
    """
    span = np.uint64(high - low + 1)
    scaled = ((words >> np.uint64(32)) * span) >> np.uint64(32)
    return scaled.view(np.int64) + low


def unit_floats(words: Words) -> NDArray[np.float64]:
    """One float64 for each word, uniform in [0, 1): the upper 53 bits, so 0.9999999999999999 at most."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def permutation(count: int, *path: object) -> NDArray[np.int64]:
    """The numbers 0 to count - 1 (int64) in a random order; count is at most 2**21.

    Each random word keeps its upper bits and takes the number as its lower ones: sorting these is many times as fast
    as an argsort, and as no two are equal, every sorting method gives the same.
    """
    if count > 1 << _PLACE_BITS:
        raise ValueError(f"a permutation of {count:,} numbers: at most {1 << _PLACE_BITS:,} are possible")
    places = np.uint64((1 << _PLACE_BITS) - 1)
    keys = (raw_words(count, *path) & ~places) | np.arange(count, dtype=np.uint64)
    keys.sort()
    return (keys & places).view(np.int64)


def letters(count: int, *path: object) -> memoryview:
    """`count` lower-case letters, each equally likely, of the stream that `path` names.

    A byte of 234 or more is refused, because 256 is no multiple of 26; 12 % more bytes than letters are
    drawn, and another round of them in the rare case that this does not suffice.
    """
    drawn = b""
    attempt = 0
    while len(drawn) < count:
        words = raw_words(count * 9 // 64 + 16, *path, attempt)
        drawn += words.astype("<u8", copy=False).tobytes().translate(_BYTE_TO_LETTER, _REFUSED_BYTES)
        attempt += 1
    return memoryview(drawn)[:count]
