"""Encode doubles as integers if all values of a column are decimals with few places, otherwise plain.

    byte       decimal places, 255 for plain
    bytes      DELTA_BINARY_PACKED, or 8 bytes each

Prices, coordinates and readings have a fixed number of decimal places. As doubles they take 8 bytes that no codec
compresses well. The encoding follows ALP (Afroozeh, Kuffo, Boncz, SIGMOD 2023), but for whole columns and without
exceptions. A value is stored as an integer, and decoding divides this integer by a power of ten. A column is encoded
this way only if the division reproduces every bit of every value. The C kernel writes the same bytes.
"""

from __future__ import annotations

import numpy as np

from libraries.document_store.encodings import delta
from libraries.document_store.encodings.bits import ByteReader
from libraries.document_store.errors import CorruptError

PLAIN = 255
MOST_PLACES = 15
MOST_INTEGER = 1 << 51
"""Maximum integer. Above this limit, two integers divided by the same power of ten may give the same double."""
_POWERS = np.array([float(f"1e{places}") for places in range(MOST_PLACES + 1)])
_DOUBLE = np.dtype("<f8")
_SAMPLED = 64
"""Number of values on which a number of decimal places is tried first."""


def encode(values: np.ndarray) -> bytes:
    """Encode float64 values."""
    for places in range(MOST_PLACES + 1):
        if _integers(values[:_SAMPLED], places) is None:
            continue
        integers = _integers(values, places)
        if integers is not None:
            return bytes([places]) + delta.encode(integers)
    return bytes([PLAIN]) + values.astype(_DOUBLE).tobytes()


def decode(reader: ByteReader, count: int) -> np.ndarray:
    """Decode the next `count` values as float64. Raises CorruptError."""
    (places,) = reader.take(1)
    if places == PLAIN:
        return np.frombuffer(reader.take(count * _DOUBLE.itemsize), _DOUBLE).astype(np.float64)
    if places > MOST_PLACES:
        raise CorruptError(f"a column's chunk has decimals of {places} places, at most {MOST_PLACES} are allowed")
    return np.asarray(delta.decode(reader, count) / _POWERS[places])


def _integers(values: np.ndarray, places: int) -> np.ndarray | None:
    """Return the values times a power of ten as int64. Return None unless dividing by the same power reproduces every
    bit of all values."""
    with np.errstate(all="ignore"):
        scaled = values * _POWERS[places]
        if not bool(np.all(np.abs(scaled) <= MOST_INTEGER)):
            return None
        integers = np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int64)
    # Compare bits, because -0.0 equals 0.
    is_same = (integers / _POWERS[places]).view(np.int64) == values.view(np.int64)
    return integers if bool(np.all(is_same)) else None
