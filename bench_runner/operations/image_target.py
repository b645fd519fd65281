"""The target of images: a list of arrays with labels; and what the clock touches of it.

docs/target.md says the same to the reader. Nothing here knows which data set it is, nor which storage.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from adapters.contract import Images

PAGE_BYTES = 4096
"""Of each piece of this size of a result one byte is read inside the clock (rule 7)."""


def make(table: pa.Table) -> Images:
    """What is in hand before a save. Outside the clock; every array has memory of its own."""
    arrays: list[np.ndarray] = []
    for batch in table.to_batches():
        arrays += [array.copy() for array in arrays_of(batch)]
    return Images(arrays, table.column("label").to_pylist())


def arrays_of(batch: pa.RecordBatch) -> Iterator[np.ndarray]:
    """The images of a batch of data_generator.images.SCHEMA as views of its buffer, read-only."""
    pixels, offsets = _pixels(batch)
    shapes = (batch.column(name).to_numpy().tolist() for name in ("height", "width", "channels"))
    for start, end, height, width, channels in zip(offsets, offsets[1:], *shapes, strict=False):
        yield pixels[start:end].reshape((height, width, channels) if channels else (height, width))


def _pixels(batch: pa.RecordBatch) -> tuple[np.ndarray, list[int]]:
    """The buffer behind the pixels of a batch, and where each image begins and the last one ends."""
    column = batch.column("pixels")
    _, offsets, data = column.buffers()
    places = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(data, np.uint8), places.tolist()


def touch(held: Images) -> int:
    """Read at least one byte in each 4 KiB page of every array (method rule 7); the sum of those bytes."""
    total = 0
    for array in held.arrays:
        # An array of at most a page lies in two at most: its first and its last byte are in them.
        total += array.item(0) + array.item(-1) if array.nbytes <= PAGE_BYTES else _touch_pages(array.reshape(-1))
    return total


def _touch_pages(array: np.ndarray) -> int:
    return int(array[::PAGE_BYTES].sum()) + int(array[-1])


def buffers(held: Images) -> Iterator[tuple[int, int]]:
    """(address, bytes) of every array, as `__array_interface__` has it."""
    for array in held.arrays:
        yield array.__array_interface__["data"][0], array.nbytes
