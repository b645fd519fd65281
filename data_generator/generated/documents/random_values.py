"""Random integers, prose, codes and times for all generated documents.

Documents are made in blocks of BLOCK documents. The number of the block determines its random values. Therefore, the
first documents of a large data set equal the documents of a small data set.
"""

from __future__ import annotations

import hashlib
from base64 import b32encode
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from data_generator import documents
from data_generator.dataset import Dataset
from data_generator.generated import streams
from data_generator.generated.words import WORDS

BLOCK = 1024
"""Number of documents in a block. A block is always made completely, and cut if fewer documents are requested."""

KEY_STEP = 2
"""Numeric keys are multiples of 2. The odd numbers between them are absent keys, as after deleting events."""

_AT_ONCE = 16_384
_BASE32 = b"abcdefghijklmnopqrstuvwxyz234567"
_BYTE_TO_LETTER = bytes(_BASE32[byte % len(_BASE32)] for byte in range(256))
_SPREAD = int.from_bytes(hashlib.sha512(b"spread").digest(), "little") | 1
"""Factor that spreads numbers over a large range. It is odd, so that different numbers have different products."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Maker = Callable[["Draws", int], Iterator[str]]
"""Function that makes the BLOCK documents of a block. Its arguments are the random streams and the number of the
block's first document."""


class Draws:
    """The random streams of one block."""

    def __init__(self, *path: object) -> None:
        """Start the streams. `path` identifies them: the data set, its version, and the number of the block."""
        self._path = path
        self.bits: Callable[[], int] = self._bits().__next__
        """Function that returns the next integer, uniform in 0 to 2**32 - 1."""
        self._words = self._endless_words()
        self._letters = ""
        self._letters_used = 0
        self._letters_part = 0

    def words(self, count: int) -> str:
        """Return the next `count` words of the block's prose, separated by blanks."""
        return " ".join(islice(self._words, count))

    def code(self, length: int) -> str:
        """Return the next `length` random letters and digits, in lower-case base32, as in digests and keys."""
        start = self._letters_used
        if start + length > len(self._letters):
            words = streams.raw_words(_AT_ONCE, *self._path, "letters", self._letters_part)
            self._letters = words.astype("<u8", copy=False).tobytes().translate(_BYTE_TO_LETTER).decode()
            self._letters_part += 1
            start = 0
        self._letters_used = start + length
        return self._letters[start : start + length]

    def integers(self, what: str, low: int, high: int, count: int = BLOCK) -> NDArray[np.int64]:
        """Return `count` int64, uniform in `low` to `high` (inclusive), from a separate stream named `what`."""
        return streams.integers(streams.raw_words(count, *self._path, what), low, high)

    def unit_floats(self, what: str, count: int = BLOCK) -> NDArray[np.float64]:
        """Return `count` float64, uniform in [0, 1), from a separate stream named `what`."""
        return streams.unit_floats(streams.raw_words(count, *self._path, what))

    def _bits(self) -> Iterator[int]:
        part = 0
        while True:
            yield from (streams.raw_words(_AT_ONCE, *self._path, "bits", part) >> np.uint64(32)).tolist()
            part += 1

    def _endless_words(self) -> Iterator[str]:
        """Yield words, a few of which are frequent. The index of a word is proportional to the square of a uniform
        number."""
        part = 0
        while True:
            uniform = streams.unit_floats(streams.raw_words(_AT_ONCE, *self._path, "prose", part))
            yield from map(WORDS.__getitem__, (uniform * uniform * len(WORDS)).astype(np.int64).tolist())
            part += 1


def dataset(name: str, count: int, key: str, version: int, make: Maker) -> Dataset:
    """Return a data set of `count` documents made by `make`, block by block."""

    def made() -> Iterator[str]:
        for block, first in enumerate(range(0, count, BLOCK)):
            yield from islice(make(Draws(name, version, block), first), count - first)

    def batches() -> Iterator[pa.RecordBatch]:
        return documents.batches(made(), key)

    return Dataset(name, count, documents.schema(key), version, batches)


def code_of(number: int) -> str:
    """Return 24 letters and digits for a number below 2**64; different numbers have different codes."""
    spread = (number + 1) * _SPREAD & ((1 << 120) - 1)
    return b32encode(spread.to_bytes(15, "little")).decode().lower()


def chosen(draw: int, values: Sequence[str]) -> str:
    """Return one of the values, chosen by a 32-bit random number. The first values are chosen more often, because the
    index is the square of a uniform number."""
    return values[draw * draw * len(values) >> 64]


def iso_time(microseconds: int) -> str:
    """Return microseconds since 1970 as '2024-11-21T16:25:49.167Z'."""
    return f"{(_EPOCH + timedelta(microseconds=microseconds)).isoformat(timespec='milliseconds')[:-6]}Z"
