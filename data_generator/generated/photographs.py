"""Stand-ins for CIFAR-10 and ImageNet-100: generated images that compress like photographs.

Light and colour change smoothly at coarse and fine scales. Grain of a few bits is added, with a strength that differs
by image. PNG reduces the pixels to 0.6 to 0.8, as it reduced CIFAR-10 from 154 to 113 MB (thesis, table 6.10), and JPEG
of quality 90 changes little. Labels are unrelated to the content: no model could learn from these.

Only integer sums, products and shifts are used, so every machine makes the same bytes. The first images of a long data
set equal those of a short one; for `imagenet-like` except for the labels, which are sorted.
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
"""Bytes per image: three for its tint, one for the strength of its grain; the rest is padding."""


# --- one picture, or many of one shape -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Canvas:
    """A grid of square cells over an image, whose cells are halved repeatedly. `cell` is the side of the smallest cells
    in pixels. It is a power of two of at most 8, so that sums fit 16-bit integers."""

    rows: int
    columns: int
    halvings: int
    cell: int

    @cached_property
    def points(self) -> list[tuple[int, int]]:
        """Return rows and columns of grid points, from the coarsest grid to the finest."""
        return [((self.rows << level) + 1, (self.columns << level) + 1) for level in range(self.halvings + 1)]

    def drawn_bytes(self, height: int, width: int) -> int:
        """Return the random bytes that an image needs, a multiple of 8."""
        light = sum(rows * columns for rows, columns in self.points)
        colour = 3 * self.points[0][0] * self.points[0][1]
        return -(-(_SETTING_BYTES + colour + light + 2 * height * width) // 8) * 8


class _Drawn:
    """Random bytes of several images, one row each, taken from the left."""

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
        """Return the same as int16, -128 to 127."""
        return self.take(*shape).astype(np.int16) - 128


def _pictures(drawn: _Drawn, canvas: _Canvas, height: int, width: int, *, grey: bool = False) -> Bytes:
    """Return images of one shape: (images, height, width, 3), or (images, height, width) if grey."""
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
    """Return the grid with the mean between each two neighbours inserted: (.., r, c) becomes (.., 2r - 1, 2c - 1)."""
    rows, columns = grid.shape[-2:]
    finer = np.empty((*grid.shape[:-2], 2 * rows - 1, 2 * columns - 1), dtype=np.int16)
    finer[..., ::2, ::2] = grid
    finer[..., ::2, 1::2] = (grid[..., :-1] + grid[..., 1:]) >> 1
    finer[..., 1::2, :] = (finer[..., :-2:2, :] + finer[..., 2::2, :]) >> 1
    return finer


def _stretched(grid: Grid, cell: int) -> Grid:
    """Return a value per pixel, bilinear between grid points that are `cell` pixels apart."""
    after = np.arange(cell, dtype=np.int16)
    before = cell - after
    wide = grid[..., :-1, None] * before + grid[..., 1:, None] * after
    wide = wide.reshape(*grid.shape[:-1], -1)
    tall = wide[..., :-1, None, :] * before[:, None]
    tall += wide[..., 1:, None, :] * after[:, None]
    tall >>= 2 * (cell.bit_length() - 1)
    return tall.reshape(*grid.shape[:-2], -1, wide.shape[-1])


def _grained(shades: Grid, drawn: Bytes, strength: Bytes) -> Bytes:
    """Return the planes (images, planes, height, width) with grain, as pixels.

    One byte per pixel is grain in all colours alike: a triangle distribution of -15 to 15, times 6 to 13 eighths. Two
    bits of the other byte go to each colour separately.
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
"""Number of images that are made at once. Their data fit into the processor's cache."""
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
"""2 %: ImageNet has occasional grey photographs."""


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
    """Return `rows` images with a shorter side of 160, sorted by their 100 classes, as the thesis used ImageNet-100."""
    shapes = _imagenet_shapes(name, rows)

    def batches() -> Iterator[pa.RecordBatch]:
        # Images whose last byte falls into the same 64 MB form a batch.
        block = (np.cumsum(shapes.size_bytes) - 1) // images.BATCH_BYTES
        for members in np.split(np.arange(rows), np.flatnonzero(np.diff(block)) + 1):
            yield _imagenet_batch(name, rows, shapes, members)

    largest = int(max(shapes.height.max(), shapes.width.max()))
    return Dataset(name, rows, images.SCHEMA, VERSION, batches, largest_side=largest)


def _imagenet_shapes(name: str, rows: int) -> _Shapes:
    """Return shapes: half of the images are 4:3, an eighth 3:2, the others anything up to 2:1, mostly near a square; a
    quarter is upright. Their mean size is that of the thesis's ImageNet-100: 99 kB."""
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
    """Return an image, drawn upright like the canvas and turned if it is wide."""
    longer, shorter = max(height, width), min(height, width)
    words = streams.raw_words(_IMAGENET.drawn_bytes(longer, shorter) // 8, name, VERSION, "image", index)
    (made,) = _pictures(_Drawn(words, 1), _IMAGENET, longer, shorter, grey=not shapes.channels[index])
    return made if height > width else made.swapaxes(0, 1)
