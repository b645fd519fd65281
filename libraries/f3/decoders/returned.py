"""Check the buffers that a module returned, and make Arrow arrays of the buffers.

Offsets and lengths that point outside the buffers are faults.
"""

from __future__ import annotations

import ctypes

import numpy as np
import pyarrow as pa

from libraries.f3.columns.memory_layout import TEXT, Shape
from libraries.f3.decoders import native
from libraries.f3.decoders.runtime import last_line
from libraries.f3.errors import F3Error

_MOST_TEXT_BYTES = (1 << 31) - 1
"""Maximum bytes of the strings of one EncUnit, the smallest part of a column that can be decoded. Payloads that this
package writes have the same limit."""


def array_of(buffers: list[pa.Buffer], arrow_type: pa.DataType, shape: Shape, rows: int) -> pa.Array:
    """Return an array of the buffers that a module returned through F3's guest interface.

    The buffers are validity and values. For strings the values are string views, and further buffers hold the bytes.
    Raises F3Error if a buffer is too short, or if strings refer to bytes outside the buffers.
    """
    validity = buffers[0] if buffers[0].size else None
    bitmap_bytes = (rows + 7) // 8
    if validity is not None and validity.size < bitmap_bytes:
        few = f"{validity.size} bytes of validity where {rows} rows need {bitmap_bytes}"
        raise F3Error(f"the decoder in the file returns {few}")
    value_bytes = 16 * rows if shape.kind == TEXT else rows * shape.width_bytes or bitmap_bytes
    if buffers[1].size < value_bytes:
        raise F3Error(f"the decoder in the file returns {buffers[1].size} bytes where {rows} rows need {value_bytes}")
    if shape.kind != TEXT:
        return pa.Array.from_buffers(arrow_type, rows, [validity, buffers[1]])
    views = np.frombuffer(buffers[1], np.uint8, 16 * rows).reshape(rows, 16)
    if validity is not None:
        valid = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little", count=rows)
        views = np.where(valid[:, None], views, 0).astype(np.uint8)
    # Many string views may refer to the same bytes, which would be copied once per view.
    text_bytes = int(np.ascontiguousarray(views[:, :4]).view("<u4").sum(dtype=np.uint64))
    if text_bytes > _MOST_TEXT_BYTES:
        many = f"{text_bytes} bytes of {rows} strings exceed the limit of {_MOST_TEXT_BYTES}"
        raise F3Error(f"the decoder in the file returns invalid strings: {many}")
    view_type = pa.string_view() if shape.utf8 else pa.binary_view()
    stored = [validity, pa.py_buffer(np.ascontiguousarray(views)), *buffers[2:]]
    try:
        array = pa.Array.from_buffers(view_type, rows, stored)
        array.validate(full=True)
        return array.cast(arrow_type)
    except pa.ArrowException as error:
        raise F3Error(f"the decoder in the file returns invalid strings: {last_line(error)}") from None


def check_strings(array: pa.Array, shape: Shape, offsets: pa.Buffer, values: pa.Buffer) -> None:
    """Check that offsets ascend from 0 to the number of bytes, and that text (not binary) is UTF-8. Raises F3Error."""
    kernels = native.library()
    try:
        if kernels is None:
            array.validate(full=True)
            return
    except pa.ArrowException as error:
        raise F3Error(f"the decoder in the file returns invalid strings: {last_line(error)}") from None
    fault = kernels.f3_check_strings(
        ctypes.c_void_p(offsets.address), shape.width_bytes, ctypes.c_uint64(len(array)),
        ctypes.c_void_p(values.address), ctypes.c_uint64(values.size), int(shape.utf8),
    )  # fmt: skip
    if fault:
        raise F3Error(f"the decoder in the file returns invalid strings: {native.FAULTS[fault]}")
