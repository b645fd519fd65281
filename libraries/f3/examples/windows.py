"""Repeated windows, the F3 paper's second example of an added encoding: blocks of 128 integers that repeat in any
order."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pyarrow as pa

from libraries.f3.encodings.unit_codec import register

NAME = "windows"
_HEAD = struct.Struct("<II")
_WINDOW = 128
_MOST_DISTINCT = 256


def encode(array: pa.Array) -> bytes | None:
    """Return the payload of an int32 array that consists of whole windows, or None for other arrays.

    Also return None if more than 256 windows, or more than half of them, are distinct.
    """
    if array.type != pa.int32() or array.null_count or len(array) == 0 or len(array) % _WINDOW:
        return None
    windows = array.to_numpy().reshape(-1, _WINDOW)
    distinct, numbers = np.unique(windows, axis=0, return_inverse=True)
    if len(distinct) > min(_MOST_DISTINCT, len(windows) // 2):
        return None
    head = _HEAD.pack(len(windows), len(distinct))
    return head + numbers.astype(np.uint8).tobytes() + distinct.astype("<i4").tobytes()


def add() -> None:
    """Register the encoding. Raises F3Error if it is registered already."""
    register(NAME, encode, Path(__file__).with_name("windows.wasm").read_bytes())
