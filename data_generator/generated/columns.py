"""Make Arrow arrays from numpy arrays and bytes, without copying buffers or making a Python object for each value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Valid = NDArray[np.bool_]


def numbers(values: NDArray[np.int64] | NDArray[np.float64], valid: Valid | None = None) -> pa.Array:
    """Return an int64 or float64 array. Where `valid` is False, the value is missing and its bytes must be zero."""
    if valid is not None:
        values = np.where(valid, values, values.dtype.type(0))
    buffers = [_bitmap(valid), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)


def booleans(bits: NDArray[np.uint8], rows: int, valid: Valid | None = None) -> pa.Array:
    """Return a boolean array of `rows` rows from packed bits. The first row is the lowest bit of a byte."""
    packed = bits[: (rows + 7) // 8].copy()
    if rows % 8:
        packed[-1] &= (1 << rows % 8) - 1
    bitmap = _bitmap(valid)
    if valid is not None:
        packed &= np.packbits(valid, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), rows, [bitmap, pa.py_buffer(packed)])


def strings(text: bytes | memoryview, lengths_bytes: NDArray[np.int64], valid: Valid | None = None) -> pa.Array:
    """Return a string array: `text` cut into pieces of these lengths. Missing values must have length 0."""
    offsets = np.zeros(len(lengths_bytes) + 1, dtype=np.int32)
    np.cumsum(lengths_bytes, out=offsets[1:])
    return pa.Array.from_buffers(
        pa.string(), len(lengths_bytes), [_bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(text)]
    )


def _bitmap(valid: Valid | None) -> pa.Buffer | None:
    if valid is None or bool(valid.all()):
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))
