"""A linear series, the paper's first example: 20 bytes for an EncUnit whose integers grow by the same step."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pyarrow as pa

from libraries.f3.encodings.unit_codec import register

NAME = "linear"
_PAYLOAD = struct.Struct("<IqQ")


def encode(array: pa.Array) -> bytes | None:
    """The payload of a linear series of int64 without nulls; None for every other array."""
    if array.type != pa.int64() or array.null_count or len(array) < 2:
        return None
    values = array.to_numpy()
    steps = np.diff(values.view(np.uint64))
    if (steps != steps[0]).any():
        return None
    return _PAYLOAD.pack(len(values), values[0], steps[0])


def add() -> None:
    """From now on files may be written with it. Raises F3Error when it was added before."""
    register(NAME, encode, Path(__file__).with_name("linear.wasm").read_bytes())
