"""Convert images to rows of an Arrow table and back, for Parquet and Lance.

The pixels of a batch are one buffer, both when writing and when reading, so that the only work per image is to create
an array for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from adapters.contract import Images
from image_storages import arrays

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

PIXELS = "pixels"
NUMBERS = ("height", "width", "channels", "label")
"""The columns other than the pixels. They have a few bytes per image."""

BATCH_BYTES = 16 << 20
"""Approximate number of bytes of pixels per batch."""


TABLE_LINES = """\
names = ["pixels", "height", "width", "channels", "label"]
alike = len({array.shape for array in arrays}) == 1
pixels = pa.array([array.tobytes() for array in arrays], pa.binary(arrays[0].nbytes) if alike else pa.large_binary())
shapes = np.array([(*array.shape, 0)[:3] for array in arrays], np.int32)  # 0 channels: grey
table = pa.table([pixels, *shapes.T, np.array(labels, np.int64)], names)"""
"""Code for users that makes the same table from `arrays` and `labels`."""

ARRAYS_LINES = """\
labels, shapes = table["label"].to_pylist(), zip(*(table[name].to_pylist() for name in ("height", "width", "channels")))
arrays = [np.frombuffer(pixels.as_buffer(), np.uint8) for pixels in table["pixels"]]
arrays = [array.reshape(shape if shape[2] else shape[:2]){copy} for array, shape in zip(arrays, shapes)]"""
"""Code for users that makes arrays and labels from the table."""


def batches_of(images: Images) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return a schema and an iterator of record batches with one row per image.

    A row has the pixels, height, width, channels and label. If all images have the same shape, pixels have a type of
    fixed size. Batches are made while they are consumed, so that memory never contains a second copy of all pixels.
    """
    import pyarrow as pa

    shape = arrays.common_shape(images.arrays)
    pixels = pa.large_binary() if shape is None else pa.binary(math.prod(shape))
    types = (pa.int32(), pa.int32(), pa.int32(), pa.int64())
    numbers = [pa.field(name, kind, nullable=False) for name, kind in zip(NUMBERS, types, strict=True)]
    schema = pa.schema([pa.field(PIXELS, pixels, nullable=False), *numbers])
    return schema, _batches(images, arrays.shape_table(images.arrays, shape), schema)


def _batches(images: Images, shapes: np.ndarray, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    import numpy as np
    import pyarrow as pa

    labels = np.array(images.labels, np.int64)
    sizes_bytes = arrays.sizes_bytes(shapes)
    for group in arrays.groups(sizes_bytes, BATCH_BYTES):
        columns = (*shapes[group].T, labels[group])
        yield pa.record_batch(
            [
                _pixels(schema.field(PIXELS).type, images.arrays[group], sizes_bytes[group]),
                *(_column(schema.field(name).type, column) for name, column in zip(NUMBERS, columns, strict=True)),
            ],
            schema=schema,
        )


def _pixels(kind: pa.DataType, images: list[np.ndarray], sizes_bytes: np.ndarray) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    block = np.empty(sizes_bytes.sum(), np.uint8)
    arrays.packed(images, arrays.common_shape(images), block)
    if pa.types.is_fixed_size_binary(kind):
        return pa.Array.from_buffers(kind, len(images), [None, pa.py_buffer(block)])
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes_bytes)])
    return pa.Array.from_buffers(kind, len(images), [None, pa.py_buffer(offsets), pa.py_buffer(block)])


def _column(kind: pa.DataType, numbers: np.ndarray) -> pa.Array:
    # Avoid pa.array, which loads pandas to check for a Series.
    import numpy as np
    import pyarrow as pa

    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(np.ascontiguousarray(numbers))])


def images_of(batches: Iterable[pa.RecordBatch], owned: bool, location: Path) -> Images:
    """Return all images of the batches with their labels. If `owned` is true, arrays are copies, otherwise views of the
    batches' buffers.

    Raises AdapterError if the shapes do not fit the number of pixels.
    """
    pieces = map(_piece, batches)
    return arrays.copied(pieces, location) if owned else arrays.sliced(pieces, location)


def rows_of(table: pa.Table, numbers: np.ndarray) -> list[pa.RecordBatch]:
    """Return batches with the rows of a table that have these numbers, in this order."""
    import pyarrow as pa

    return table.take(_column(pa.int64(), numbers)).combine_chunks().to_batches()


def batches_of_images(batches: Iterable[pa.RecordBatch], count: int, location: Path) -> Iterator[Images]:
    """Yield the images of the batches, `count` at a time. Each image has separate memory."""
    return arrays.in_batches(map(_piece, batches), count, location)


def _piece(batch: pa.RecordBatch) -> arrays.Piece:
    import numpy as np

    # Avoid to_numpy, which loads pandas.
    *shapes, labels = (np.from_dlpack(batch.column(name)) for name in NUMBERS)
    return arrays.Piece(np.stack(shapes, axis=1), labels.tolist(), _block(batch.column(PIXELS)))


def _block(pixels: pa.Array) -> np.ndarray:
    """Return the pixels of all rows as one array, which is a view of the Arrow buffer."""
    import numpy as np
    import pyarrow as pa

    first, last = pixels.offset, pixels.offset + len(pixels)
    block = np.frombuffer(pixels.buffers()[-1], np.uint8)
    if pa.types.is_fixed_size_binary(pixels.type):
        size_bytes = pixels.type.byte_width
        return block[first * size_bytes : last * size_bytes]
    offsets = np.frombuffer(pixels.buffers()[1], np.int64)
    return block[offsets[first] : offsets[last]]
