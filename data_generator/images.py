"""Images as a data set: a table with one row per image.

The pixels of all images in a batch are contiguous in one buffer.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

SCHEMA = pa.schema(
    [
        pa.field("pixels", pa.large_binary(), nullable=False),
        pa.field("height", pa.int32(), nullable=False),
        pa.field("width", pa.int32(), nullable=False),
        pa.field("channels", pa.int32(), nullable=False),
        pa.field("label", pa.int64(), nullable=False),
    ]
)
"""`pixels` are uint8, row by row, with the channels of a pixel next to each other. An image has height * width *
max(channels, 1) bytes. `channels` is 3 for RGB images. It is 0 for grey images, which are two-dimensional arrays."""

BATCH_BYTES = 64 * 1024 * 1024
"""Approximate bytes of pixels per batch."""


def is_images(schema: pa.Schema) -> bool:
    """Return whether a data set with this schema contains images."""
    return schema.equals(SCHEMA)


def batch(
    pixels: bytearray | NDArray[np.uint8],
    heights: NDArray[np.int32],
    widths: NDArray[np.int32],
    channels: NDArray[np.int32],
    labels: NDArray[np.int64],
) -> pa.RecordBatch:
    """Return a batch that uses the memory of `pixels`, the pixels of all images in sequence, without copying.

    Raises ValueError if the number of bytes does not match the shapes.
    """
    sizes_bytes = heights.astype(np.int64) * widths * np.maximum(channels, 1)
    offsets = np.zeros(len(sizes_bytes) + 1, dtype=np.int64)
    np.cumsum(sizes_bytes, out=offsets[1:])
    if len(pixels) != offsets[-1]:
        raise ValueError(f"The shapes need {offsets[-1]:,} bytes of pixels (got {len(pixels):,}).")
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(pixels)]
    arrays = [
        pa.Array.from_buffers(pa.large_binary(), len(sizes_bytes), buffers),
        *(pa.array(values, pa.int32()) for values in (heights, widths, channels)),
        pa.array(labels, pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def is_sound(made: pa.RecordBatch) -> bool:
    """Return whether a batch is valid: no nulls, height and width of at least 1, `channels` of 0 or 3, and as many
    bytes as the shapes require."""
    if any(column.null_count for column in made.columns):
        return False
    heights, widths, channels = (made[name].to_numpy().astype(np.int64) for name in ("height", "width", "channels"))
    sizes_bytes = pc.binary_length(made["pixels"]).to_numpy()
    shaped = (heights >= 1) & (widths >= 1) & ((channels == 0) | (channels == 3))
    return bool((shaped & (sizes_bytes == heights * widths * np.maximum(channels, 1))).all())
