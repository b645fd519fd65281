"""Copying images into one contiguous array, and making images from such an array. Several storages use this module.

Images are uint8 arrays of shape (height, width) if grey, or (height, width, channels). A shape table is an int32 array
with a row (height, width, channels) for each image; grey images have 0 channels.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapters.contract import Images, ImageStorage, Setting
from adapters.errors import AdapterError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

ARRAYS = Setting(
    ("owned", "views"), "owned", "owned: each array has separate memory; views: arrays are slices of larger blocks"
)

GROUP_BYTES = 1 << 20
"""Approximate number of bytes that are copied at a time, through a buffer that is used again. The buffer fits into the
processor's cache, and no second copy of the data set is needed."""


@dataclass(frozen=True)
class Piece:
    """Several images that are stored together, as shape table, labels, and contiguous pixels. The pixels are a 1-D
    array, or a 2-D array with a row for each image."""

    shapes: np.ndarray
    labels: list[int]
    pixels: np.ndarray


# --- before a save -------------------------------------------------------------------------------------------------


def common_shape(arrays: Sequence[np.ndarray]) -> tuple[int, ...] | None:
    """Return the shape of the arrays if all have the same shape, or None if shapes differ or `arrays` is empty."""
    shapes = {array.shape for array in arrays}
    return shapes.pop() if len(shapes) == 1 else None


def numbers_of(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return height, width and channels of an image of this shape. A grey image has 0 channels."""
    height, width, *channels = shape
    return height, width, channels[0] if channels else 0


def shape_table(arrays: Sequence[np.ndarray], shape: tuple[int, ...] | None) -> np.ndarray:
    """Return the shape table of the arrays. `shape` is the result of `common_shape` for these arrays."""
    import numpy as np

    if shape is not None:
        return repeated(shape, len(arrays))
    return np.array([numbers_of(array.shape) for array in arrays], np.int32).reshape(-1, 3)


def repeated(shape: tuple[int, ...], count: int) -> np.ndarray:
    """Return the shape table of `count` images of the same shape."""
    import numpy as np

    return np.full((count, 3), numbers_of(shape), np.int32)


def sizes_bytes(shapes: np.ndarray) -> np.ndarray:
    """Return an int64 array with the size in bytes of each image of a shape table."""
    import numpy as np

    height, width, channels = shapes.astype(np.int64).T
    # A damaged table may have negative sides, and the product of two negative sides would look like a valid size.
    return np.maximum(height, 0) * np.maximum(width, 0) * np.maximum(channels, 1)


def groups(sizes_bytes: np.ndarray, group_bytes: int) -> Iterator[slice]:
    """Yield slices that divide the images into groups of about `group_bytes` bytes. A group has at least one image."""
    start = filled = 0
    for place, size_bytes in enumerate(sizes_bytes.tolist()):
        if filled and filled + size_bytes > group_bytes:
            yield slice(start, place)
            start, filled = place, 0
        filled += size_bytes
    if filled:
        yield slice(start, len(sizes_bytes))


def packed(arrays: Sequence[np.ndarray], shape: tuple[int, ...] | None, out: np.ndarray) -> None:
    """Copy all pixels contiguously into `out`, a one-dimensional array. `shape` is the result of `common_shape` for
    `arrays`, which must not be empty."""
    import numpy as np

    if shape is None:
        np.concatenate(arrays, axis=None, out=out)
    else:
        # Arrays of equal shape need not be flattened, which is faster.
        np.concatenate(arrays, out=out.reshape(-1, *shape[1:]))


# --- after a read --------------------------------------------------------------------------------------------------


def checked(numbers: np.ndarray, count: int) -> list[int]:
    """Return the image numbers as a list. Raises IndexError for a number that is not below `count`."""
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < count):
        wrong = next(int(number) for number in numbers if not 0 <= number < count)
        raise IndexError(f"There is no image {wrong}: the {count:,} images are counted from 0.")
    asked: list[int] = numbers.tolist()
    return asked


def in_batches(pieces: Iterable[Piece], count: int, location: Path) -> Iterator[Images]:
    """Yield the images of the pieces, `count` at a time; the last batch may be smaller. Each image has separate memory.
    Raises AdapterError, naming `location`, if shapes do not fit the pixels."""
    arrays: list[np.ndarray] = []
    labels: list[int] = []
    for piece in pieces:
        arrays += [view.copy() for view in split(piece.pixels, piece.shapes, location)]
        labels += piece.labels
        while len(arrays) >= count:
            yield Images(arrays[:count], labels[:count])
            arrays, labels = arrays[count:], labels[count:]
    if arrays:
        yield Images(arrays, labels)


def in_turn(found: Iterable[tuple[np.ndarray, int]], count: int) -> Iterator[Images]:
    """Yield batches of `count` images from an iterable of single images; the last batch may be smaller."""
    some = iter(found)
    while part := list(itertools.islice(some, count)):
        yield joined(part)


def joined(found: Iterable[tuple[np.ndarray, int]]) -> Images:
    """Return pairs of an array and a label as images."""
    images = Images([], [])
    for array, label in found:
        images.arrays.append(array)
        images.labels.append(label)
    return images


def copied(pieces: Iterable[Piece], location: Path) -> Images:
    """Return the images of the pieces. Each image has separate memory. Raises AdapterError, naming `location`, if
    shapes do not fit the pixels."""
    arrays: list[np.ndarray] = []
    labels: list[int] = []
    for piece in pieces:
        arrays += [view.copy() for view in split(piece.pixels, piece.shapes, location)]
        labels += piece.labels
    return Images(arrays, labels)


def sliced(pieces: Iterable[Piece], location: Path) -> Images:
    """Return the images of the pieces, as views of the pieces' pixels. Raises AdapterError, naming `location`, if
    shapes do not fit the pixels."""
    arrays: list[np.ndarray] = []
    labels: list[int] = []
    for piece in pieces:
        arrays += split(piece.pixels, piece.shapes, location)
        labels += piece.labels
    return Images(arrays, labels)


def gathered(pieces: Iterable[Piece], most_bytes: int, location: Path) -> Images:
    """Return the images of the pieces as views of one new block, into which all pixels are copied. Use this function if
    the memory of a piece becomes invalid when the next piece is requested.

    The block has `most_bytes` bytes; the system does not provide memory for the unused part. Raises ValueError if there
    are more pixels, and AdapterError, naming `location`, if shapes do not fit the pixels.
    """
    import numpy as np

    block = np.empty(most_bytes, np.uint8)
    shapes = [np.empty((0, 3), np.int32)]
    labels: list[int] = []
    filled = 0
    for piece in pieces:
        end = filled + piece.pixels.size
        block[filled:end].reshape(piece.pixels.shape)[...] = piece.pixels
        shapes.append(piece.shapes)
        labels += piece.labels
        filled = end
    return Images(split(block[:filled], np.concatenate(shapes), location), labels)


def split(pixels: np.ndarray, shapes: np.ndarray, location: Path) -> list[np.ndarray]:
    """Return the images of a shape table as views of `pixels`, which has all pixels (see `Piece`).

    Raises AdapterError, naming `location`, if the number of pixels does not fit the shapes.
    """
    import numpy as np

    sizes = sizes_bytes(shapes)
    demand_agreement(sizes, pixels.size, location)
    if not len(shapes):
        return []
    if (shapes == shapes[0]).all():
        return list(pixels.reshape(len(shapes), *_shape(*shapes[0].tolist())))
    starts = itertools.accumulate(sizes[:-1].tolist(), initial=0)
    line, dtype = pixels.reshape(-1), pixels.dtype
    return [
        np.ndarray(_shape(*numbers), dtype, line, start) for numbers, start in zip(shapes.tolist(), starts, strict=True)
    ]


def shape_of(numbers: np.ndarray) -> tuple[int, ...]:
    """Return the shape of an image, given its row of a shape table."""
    return _shape(*numbers.tolist())


def demand_agreement(sizes_bytes: np.ndarray, there_bytes: int, location: Path) -> None:
    """Raise AdapterError, naming `location`, if the sizes of the images do not sum to the number of stored bytes, or if
    an image has no pixels."""
    if (sizes_bytes < 1).any():
        raise AdapterError(f"{location} is damaged: an image has no pixels.")
    if sizes_bytes.sum() != there_bytes:
        raise AdapterError(
            f"{location} is damaged: it has {there_bytes:,} bytes of pixels, but the shapes of its images need "
            f"{sizes_bytes.sum():,}."
        )


def _shape(height: int, width: int, channels: int) -> tuple[int, ...]:
    return (height, width, channels) if channels else (height, width)


# --- for users ------------------------------------------------------------------------------------------------------


def copy_of(storage: ImageStorage) -> str:
    """Return the code that must follow an array in the lines of Python shown to users. This is '.copy()', or '' for a
    variant that is measured with views, because views are not copied."""
    return ".copy()" if storage.values["arrays"] == "owned" else ""
