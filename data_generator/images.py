"""Images as a data set: one row an image, in a schema that the cache keeps like any other table.

The pixels of a batch lie one after the other in one buffer, so a batch is a block of pixels with an index. This module
knows neither where images come from nor how they are stored.
"""

from __future__ import annotations

import pyarrow as pa

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
