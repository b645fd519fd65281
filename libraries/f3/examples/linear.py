"""A linear series, the F3 paper's first example of an added encoding: integers with a constant step take 20 bytes."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pyarrow as pa

from libraries.f3.encodings.unit_codec import register

NAME = "linear"
_PAYLOAD = struct.Struct("<IqQ")


def encode(array: pa.Array) -> bytes | None:
    """Return the payload of a linear series of int64 without nulls; None for other arrays."""
    if array.type != pa.int64() or array.null_count or len(array) < 2:
        return None
    values = array.to_numpy()
    steps = np.diff(values.view(np.uint64))
    if (steps != steps[0]).any():
        return None
    return _PAYLOAD.pack(len(values), values[0], steps[0])


def add() -> None:
    """Register the encoding. Raises F3Error if it is registered already."""
    register(NAME, encode, Path(__file__).with_name("linear.wasm").read_bytes())
