"""Images as a data set: one row an image, in a schema that the cache keeps like any other table.

The pixels of a batch lie one after the other in one buffer, so a batch is a block of pixels with an index.
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
"""`pixels`: uint8, row by row, the channels of a pixel together; height * width * max(channels, 1) bytes.
`channels`: 3 for RGB, 0 for grey (an array of two dimensions)."""

BATCH_BYTES = 64 * 1024 * 1024
"""About this many bytes of pixels make a batch."""


def is_images(schema: pa.Schema) -> bool:
    """Whether a data set of this schema holds images."""
    return schema.equals(SCHEMA)


def batch(
    pixels: bytearray | NDArray[np.uint8],
    heights: NDArray[np.int32],
    widths: NDArray[np.int32],
    channels: NDArray[np.int32],
    labels: NDArray[np.int64],
) -> pa.RecordBatch:
    """A batch of the schema over the memory of `pixels`, which is not copied: all images one after the other.

    Raises ValueError when there are not as many bytes as the shapes ask for.
    """
    sizes_bytes = heights.astype(np.int64) * widths * np.maximum(channels, 1)
    offsets = np.zeros(len(sizes_bytes) + 1, dtype=np.int64)
    np.cumsum(sizes_bytes, out=offsets[1:])
    if len(pixels) != offsets[-1]:
        raise ValueError(f"{len(pixels):,} bytes of pixels for images of {offsets[-1]:,} bytes")
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(pixels)]
    arrays = [
        pa.Array.from_buffers(pa.large_binary(), len(sizes_bytes), buffers),
        *(pa.array(values, pa.int32()) for values in (heights, widths, channels)),
        pa.array(labels, pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def is_sound(made: pa.RecordBatch) -> bool:
    """Whether a batch of the schema keeps what the schema says: no nulls, sides of 1 or more, 0 or 3 channels, and as
    many bytes of pixels as that makes."""
    if any(column.null_count for column in made.columns):
        return False
    heights, widths, channels = (made[name].to_numpy().astype(np.int64) for name in ("height", "width", "channels"))
    sizes_bytes = pc.binary_length(made["pixels"]).to_numpy()
    shaped = (heights >= 1) & (widths >= 1) & ((channels == 0) | (channels == 3))
    return bool((shaped & (sizes_bytes == heights * widths * np.maximum(channels, 1))).all())
