"""Doubles: those of a column that are all decimals of a few places as integers, all others plain.

    byte       places behind the point, 255 for plain
    bytes      DELTA_BINARY_PACKED, or 8 bytes each

Prices, coordinates and readings are written with so many places; as doubles they are 8 bytes that no codec packs well.
The idea is ALP's (Afroozeh, Kuffo, Boncz, SIGMOD 2023), for whole columns and without exceptions: what comes back is an
integer over a power of ten, and a column is encoded so only if that division gives every bit of every value. It gives
the bytes that the kernel gives.
"""

from __future__ import annotations

import numpy as np

from libraries.document_store.encodings import delta
from libraries.document_store.encodings.bits import ByteReader
from libraries.document_store.errors import CorruptError

PLAIN = 255
MOST_PLACES = 15
MOST_INTEGER = 1 << 51
"""Beyond it two integers over the same power of ten may be the same double, and then it would be chance which one is
found."""
_POWERS = np.array([float(f"1e{places}") for places in range(MOST_PLACES + 1)])
_DOUBLE = np.dtype("<f8")
_SAMPLED = 64
"""Values that are tried before all."""


def encode(values: np.ndarray) -> bytes:
    """Of float64 values."""
    for places in range(MOST_PLACES + 1):
        if _integers(values[:_SAMPLED], places) is None:
            continue
        integers = _integers(values, places)
        if integers is not None:
            return bytes([places]) + delta.encode(integers)
    return bytes([PLAIN]) + values.astype(_DOUBLE).tobytes()


def decode(reader: ByteReader, count: int) -> np.ndarray:
    """float64: the values that come next. Raises CorruptError."""
    (places,) = reader.take(1)
    if places == PLAIN:
        return np.frombuffer(reader.take(count * _DOUBLE.itemsize), _DOUBLE).astype(np.float64)
    if places > MOST_PLACES:
        raise CorruptError(f"a column's chunk has decimals of {places} places, {MOST_PLACES} are allowed")
    return np.asarray(delta.decode(reader, count) / _POWERS[places])


def _integers(values: np.ndarray, places: int) -> np.ndarray | None:
    """int64: the values times a power of ten; None unless the division gives all of them back."""
    with np.errstate(all="ignore"):
        scaled = values * _POWERS[places]
        if not bool(np.all(np.abs(scaled) <= MOST_INTEGER)):
            return None
        integers = np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int64)
    # By their bits: -0.0 is no 0.
    is_same = (integers / _POWERS[places]).view(np.int64) == values.view(np.int64)
    return integers if bool(np.all(is_same)) else None
