"""Generate images that compress like photographs, as replacements for the data sets CIFAR-10 and ImageNet-100.

In each image, light and colour change smoothly at coarse and fine scales. Noise of a few bits, like the grain of a
film, is added to the pixels. The strength of the noise differs between images. As PNG, an image has 0.6 to 0.8 times
the size of its pixels. For comparison, PNG reduced CIFAR-10 from 154 to 113 MB (table 6.10 of the thesis behind this
project). JPEG of quality 90 changes the pixels little. Labels are unrelated to the content of the images, so no model
can learn from them.

Only integer sums, products and shifts are used, so every machine makes the same bytes. The first images of a large data
set equal the images of a small data set. Labels of `imagenet-like` are an exception, because they are sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from data_generator import images
from data_generator.dataset import Dataset, batch_sizes
from data_generator.generated import streams

VERSION = 1

Bytes = NDArray[np.uint8]
Grid = NDArray[np.int16]

_SETTING_BYTES = 8
"""Number of random bytes for the settings of an image: three bytes for the tint, one for the strength of the noise, and
padding."""


# --- one picture, or many of one shape -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Canvas:
    """A coarse grid of `rows` by `columns` squares over an image. The squares are divided `halvings` times into four.

    `cell` is the side of the smallest squares in pixels. It is a power of two of at most 8, so that sums fit 16-bit
    integers.
    """

    rows: int
    columns: int
    halvings: int
    cell: int

    @cached_property
    def points(self) -> list[tuple[int, int]]:
        """Return (rows, columns), the number of grid points, for each grid from the coarsest to the finest."""
        return [((self.rows << level) + 1, (self.columns << level) + 1) for level in range(self.halvings + 1)]

    def drawn_bytes(self, height: int, width: int) -> int:
        """Return the number of random bytes that are needed to make an image, rounded up to a multiple of 8."""
        light = sum(rows * columns for rows, columns in self.points)
        colour = 3 * self.points[0][0] * self.points[0][1]
        return -(-(_SETTING_BYTES + colour + light + 2 * height * width) // 8) * 8


class _Drawn:
    """Random bytes for several images. The bytes of each image are used once, from the first to the last."""

    def __init__(self, words: streams.Words, count: int) -> None:
        self._bytes = words.astype("<u8", copy=False).view(np.uint8).reshape(count, -1)
        self._start = 0

    def take(self, *shape: int) -> Bytes:
        """Return the next bytes of each image, with shape (images, *shape)."""
        stop = self._start + int(np.prod(shape))
        part = self._bytes[:, self._start : stop]
        self._start = stop
        return part.reshape(len(part), *shape)

    def take_signed(self, *shape: int) -> Grid:
        """Return the next bytes of each image as int16 values from -128 to 127."""
        return self.take(*shape).astype(np.int16) - 128


def _pictures(drawn: _Drawn, canvas: _Canvas, height: int, width: int, *, grey: bool = False) -> Bytes:
    """Return images of the same size, as an array (images, height, width, 3), or (images, height, width) if `grey`."""
    settings = drawn.take(_SETTING_BYTES)
    colour = drawn.take_signed(3, *canvas.points[0]) >> 2
    tint = (settings[:, :3, None, None].astype(np.int16) - 128) >> 3
    light = drawn.take_signed(*canvas.points[0])[:, None] * 3 >> 2
    grid: Grid = light + 128 if grey else light + colour + tint + 128
    for level, points in enumerate(canvas.points[1:], start=1):
        grid = _halved(grid) + (drawn.take_signed(*points)[:, None] >> (1 + level))
    shades = _stretched(grid[:, :, : -(-height // canvas.cell) + 1, : -(-width // canvas.cell) + 1], canvas.cell)
    return _grained(shades[:, :, :height, :width], drawn.take(2, height, width), settings[:, 3])


def _halved(grid: Grid) -> Grid:
    """Return a grid of half the spacing. Each added point is the mean of the neighbouring points.

    The shape (..., r, c) becomes (..., 2r - 1, 2c - 1).
    """
    rows, columns = grid.shape[-2:]
    finer = np.empty((*grid.shape[:-2], 2 * rows - 1, 2 * columns - 1), dtype=np.int16)
    finer[..., ::2, ::2] = grid
    finer[..., ::2, 1::2] = (grid[..., :-1] + grid[..., 1:]) >> 1
    finer[..., 1::2, :] = (finer[..., :-2:2, :] + finer[..., 2::2, :]) >> 1
    return finer


def _stretched(grid: Grid, cell: int) -> Grid:
    """Return a value for each pixel, by bilinear interpolation between grid points that are `cell` pixels apart."""
    after = np.arange(cell, dtype=np.int16)
    before = cell - after
    wide = grid[..., :-1, None] * before + grid[..., 1:, None] * after
    wide = wide.reshape(*grid.shape[:-1], -1)
    tall = wide[..., :-1, None, :] * before[:, None]
    tall += wide[..., 1:, None, :] * after[:, None]
    tall >>= 2 * (cell.bit_length() - 1)
    return tall.reshape(*grid.shape[:-2], -1, wide.shape[-1])


def _grained(shades: Grid, drawn: Bytes, strength: Bytes) -> Bytes:
    """Return the pixels (uint8): the values of `shades` (images, colours, height, width) plus noise.

    There are two random bytes for each pixel. The first byte gives noise that is the same in all colours. It has a
    triangular distribution from -15 to 15, multiplied by the strength of the image's noise, which is 6/8 to 13/8. The
    second byte gives two bits of separate noise for each colour.
    """
    shared = ((drawn[:, 0] & 15) + (drawn[:, 0] >> 4)).astype(np.int16) - 15
    shared *= (strength[:, None, None] & 7).astype(np.int16) + 6
    shared >>= 3
    planes = shades.shape[1]
    pixels = np.empty((*shared.shape, planes), dtype=np.uint8)
    for plane in range(planes):
        value = shades[:, plane] + shared
        value += (drawn[:, 1] >> (2 * plane)) & 3
        np.maximum(value, 0, out=value)
        np.minimum(value, 255, out=value)
        pixels[..., plane] = value
    return pixels if planes > 1 else pixels[..., 0]


# --- cifar-like ----------------------------------------------------------------------------------------------------

_CIFAR = _Canvas(rows=2, columns=2, halvings=2, cell=4)
_CIFAR_SIDE = 32
_CIFAR_CLASSES = 10
_CIFAR_BLOCK = 256
"""Number of images that are made at once. The data of these images fit into the processor's cache."""
_CIFAR_BATCH = images.BATCH_BYTES // (3 * _CIFAR_SIDE**2) // _CIFAR_BLOCK * _CIFAR_BLOCK


def build_cifar_like(name: str, rows: int, parameters: Mapping[str, str]) -> Dataset:
    """Return `rows` images of 32 x 32 x 3 in 10 classes in random order, as in CIFAR-10."""

    def batches() -> Iterator[pa.RecordBatch]:
        start = 0
        for size in batch_sizes(rows, _CIFAR_BATCH):
            yield _cifar_batch(name, start // _CIFAR_BLOCK, size)
            start += size

    return Dataset(name, rows, images.SCHEMA, VERSION, batches, largest_side=_CIFAR_SIDE)


def _cifar_batch(name: str, first_block: int, size: int) -> pa.RecordBatch:
    side = _CIFAR_SIDE
    pixels = np.empty((size, side, side, 3), dtype=np.uint8)
    labels = np.empty(size, dtype=np.int64)
    words_each = _CIFAR.drawn_bytes(side, side) // 8
    for number, count in enumerate(batch_sizes(size, _CIFAR_BLOCK)):
        path = (name, VERSION, first_block + number)
        here = slice(number * _CIFAR_BLOCK, number * _CIFAR_BLOCK + count)
        drawn = _Drawn(streams.raw_words(count * words_each, *path, "pixels"), count)
        pixels[here] = _pictures(drawn, _CIFAR, side, side)
        labels[here] = streams.integers(streams.raw_words(count, *path, "labels"), 0, _CIFAR_CLASSES - 1)
    sides = np.full(size, side, dtype=np.int32)
    return images.batch(pixels.reshape(-1), sides, sides, np.full(size, 3, dtype=np.int32), labels)


# --- imagenet-like -------------------------------------------------------------------------------------------------

_IMAGENET = _Canvas(rows=5, columns=3, halvings=3, cell=8)
_SHORTER = 160
_IMAGENET_CLASSES = 100
_GREY_OF_65536 = 1311
"""Number of grey images among 65,536, which is 2 %, because ImageNet also contains some grey photographs."""


@dataclass(frozen=True)
class _Shapes:
    """Height, width and channels (int32) of each image, as in images.SCHEMA."""

    height: NDArray[np.int32]
    width: NDArray[np.int32]
    channels: NDArray[np.int32]

    @property
    def size_bytes(self) -> NDArray[np.int64]:
        return self.height.astype(np.int64) * self.width * np.maximum(self.channels, 1)


def build_imagenet_like(name: str, rows: int, parameters: Mapping[str, str]) -> Dataset:
    """Return `rows` images whose shorter side has 160 pixels, sorted by their 100 classes.

    The thesis behind this project used ImageNet-100 in this form.
    """
    shapes = _imagenet_shapes(name, rows)

    def batches() -> Iterator[pa.RecordBatch]:
        # The pixels of all images in sequence are divided into blocks of BATCH_BYTES. Images form a batch if their last
        # bytes are in the same block.
        block = (np.cumsum(shapes.size_bytes) - 1) // images.BATCH_BYTES
        for members in np.split(np.arange(rows), np.flatnonzero(np.diff(block)) + 1):
            yield _imagenet_batch(name, rows, shapes, members)

    largest = int(max(shapes.height.max(), shapes.width.max()))
    return Dataset(name, rows, images.SCHEMA, VERSION, batches, largest_side=largest)


def _imagenet_shapes(name: str, rows: int) -> _Shapes:
    """Return the shapes of the images.

    Half of the images have the ratio 4:3 and an eighth have 3:2. The other images have random ratios from 1:1 to 2:1,
    mostly near 1:1. A quarter of all images are upright. The mean size is 99 kB, as in the ImageNet-100 of the thesis.
    """
    drawn = streams.raw_words(rows, name, VERSION, "shapes").astype("<u8", copy=False).view(np.uint8)
    drawn32 = drawn.reshape(rows, 8).astype(np.int32)
    varied = _SHORTER + (drawn32[:, 1] * drawn32[:, 2] * (_SHORTER + 1) >> 16)
    longer = np.where(drawn32[:, 0] < 128, 213, np.where(drawn32[:, 0] < 160, 240, varied)).astype(np.int32)
    upright = drawn32[:, 3] < 64
    grey = drawn32[:, 4] * 256 + drawn32[:, 5] < _GREY_OF_65536
    shorter = np.full(rows, _SHORTER, dtype=np.int32)
    return _Shapes(
        height=np.where(upright, longer, shorter),
        width=np.where(upright, shorter, longer),
        channels=np.where(grey, 0, 3).astype(np.int32),
    )


def _imagenet_batch(name: str, rows: int, shapes: _Shapes, members: NDArray[np.int64]) -> pa.RecordBatch:
    ends = np.cumsum(shapes.size_bytes[members])
    pixels = np.empty(int(ends[-1]), dtype=np.uint8)
    for index, end in zip(members.tolist(), ends.tolist(), strict=True):
        made = _imagenet_picture(name, index, int(shapes.height[index]), int(shapes.width[index]), shapes)
        pixels[end - made.size : end].reshape(made.shape)[...] = made
    return images.batch(
        pixels,
        shapes.height[members],
        shapes.width[members],
        shapes.channels[members],
        members * _IMAGENET_CLASSES // rows,
    )


def _imagenet_picture(name: str, index: int, height: int, width: int, shapes: _Shapes) -> Bytes:
    """Return an image. A wide image is first made upright, like the grid of squares (`_Canvas`), and then turned."""
    longer, shorter = max(height, width), min(height, width)
    words = streams.raw_words(_IMAGENET.drawn_bytes(longer, shorter) // 8, name, VERSION, "image", index)
    (made,) = _pictures(_Drawn(words, 1), _IMAGENET, longer, shorter, grey=not shapes.channels[index])
    return made if height > width else made.swapaxes(0, 1)
