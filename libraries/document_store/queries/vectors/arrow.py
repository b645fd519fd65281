"""Convert numpy arrays to pyarrow and back. Use these functions instead of pyarrow's own converters, which import
pandas on first use."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from libraries.document_store import kernels

# A library built before this function was added lacks it.
_take_texts = getattr(kernels.library, "ds_take_texts", None)


def integers(values: np.ndarray) -> pa.Array:
    """Return an array of int64."""
    values = np.ascontiguousarray(values, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def texts(offsets: np.ndarray, data: np.ndarray, kind: Any) -> pa.Array:
    """Return an array of large_string or large_binary, from int64 offsets into bytes."""
    return pa.Array.from_buffers(kind, len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def constants(values: Sequence[str | bytes], kind: Any) -> pa.Array:
    """Return an array of large_string or large_binary from Python values. An item of this array is a pyarrow scalar,
    which pyarrow's functions take as a constant."""
    encoded = [value.encode() if isinstance(value, str) else value for value in values]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return texts(offsets, np.frombuffer(b"".join(encoded), np.uint8), kind)


def taken(array: pa.Array, index: np.ndarray) -> pa.Array:
    """Return the texts at these positions of an array without nulls. Raises IndexError."""
    if _take_texts is None or array.offset or len(index) == 0:
        return array.take(integers(index))
    index = np.ascontiguousarray(index, np.int64)
    if int(index.min()) < 0 or int(index.max()) >= len(array):
        raise IndexError(f"positions {index.min()} to {index.max()} of {len(array)} texts")
    offsets = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1)
    found = np.zeros(len(index) + 1, np.int64)
    np.cumsum(offsets[index + 1] - offsets[index], out=found[1:])
    # Allocate one more byte, because an empty array may have no address.
    data = np.empty(int(found[-1]) + 1, np.uint8)
    _take_texts(
        ctypes.c_uint64(len(index)), kernels.address(index), kernels.address(offsets),
        ctypes.c_void_p(array.buffers()[2].address), kernels.address(found), kernels.address(data),
    )  # fmt: skip
    return texts(found, data[:-1], array.type)


def numbers(array: pa.Array, dtype: Any) -> np.ndarray:
    """Return the values of an integer array without nulls, in numpy."""
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * np.dtype(dtype).itemsize)


def bools(array: pa.Array) -> np.ndarray:
    """Return the values of a boolean array without nulls, in numpy."""
    end = array.offset + len(array)
    packed = np.frombuffer(array.buffers()[1], np.uint8, (end + 7) // 8)
    return np.unpackbits(packed, count=end, bitorder="little")[array.offset :].view(np.bool_)
