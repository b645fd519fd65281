"""Raw I/O: writing and reading images without any storage format, as a baseline for all figures.

A header, the labels, the shapes and the contiguous pixels are written to a file. `readinto` reads the pixels either in
groups or as one block. From a group, each image is copied into a separate array. With one block, the arrays are views
of the block. Users should not store images in this way.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from adapters.contract import Calls, Can, Images, ImageStorage, Maturity, Native, Stage, Stored
from adapters.errors import AdapterError
from adapters.offers import ImageHandle, Offers, Reach
from image_storages import arrays

if TYPE_CHECKING:
    from io import FileIO

    import numpy as np

_HEADER = struct.Struct("<8sQQ8x")
"""Format of the header: magic bytes, number of images, number of bytes of pixels. It is padded to 32 bytes, so that the
following data are aligned."""

_MAGIC = b"FB-IMAGE"

_INDEX_BYTES = 8 + 3 * 4
"""Number of bytes for each image in addition to its pixels: the label as int64, and height, width and channels as
int32."""


_SAVE = """\
shapes = np.array([(*array.shape, 0)[:3] for array in arrays], np.int32)  # 0 channels: grey
with open({path}, "wb") as file:
    file.write(struct.pack("<8sQQ8x", b"FB-IMAGE", len(arrays), sum(array.nbytes for array in arrays)))
    file.write(np.array(labels, np.int64).tobytes() + shapes.tobytes())
    for array in arrays:
        file.write(array.tobytes())"""
_READ = """\
with open({path}, "rb") as file:
    count = struct.unpack("<8sQQ8x", file.read(32))[1]
    labels = np.fromfile(file, np.int64, count).tolist()
    shapes = np.fromfile(file, np.int32, 3 * count).reshape(-1, 3).tolist()
    shapes = [shape if shape[2] else shape[:2] for shape in shapes]
    arrays = [np.fromfile(file, np.uint8, np.prod(shape)).reshape(shape) for shape in shapes]"""


class RawIO(ImageStorage):
    """Stores labels, shapes and pixels by write, and reads them by readinto."""

    format = "image-raw-io"
    engine = "readinto"
    title = "Raw I/O"
    distributions = ("numpy",)
    native = Native.IMAGES
    suffix = ".raw"
    settings: ClassVar = {"arrays": arrays.ARRAYS}
    beside: ClassVar = ({"arrays": "views"},)
    maturity = Maturity(Stage.EXPERIMENTAL, "a yardstick and no format: nothing else reads it", ours=True)
    capabilities = frozenset({Can.SINGLE_FILE, Can.NO_PICKLE})
    offers = Offers(take=Reach.ROWS, batches=True)

    calls = Calls(("import struct", "import numpy as np"), _SAVE, _READ)

    def load_library(self) -> None:
        """Import numpy."""
        import numpy

        self._numpy = numpy

    def save(self, images: Images, location: Path) -> None:
        """Write the header, labels and shapes, then the pixels, about 1 MiB at a time."""
        shape = arrays.common_shape(images.arrays)
        shapes = arrays.shape_table(images.arrays, shape)
        sizes_bytes = arrays.sizes_bytes(shapes)
        with location.open("wb") as file:
            file.write(_HEADER.pack(_MAGIC, len(shapes), int(sizes_bytes.sum())))
            file.write(self._numpy.array(images.labels, self._numpy.int64).data)
            file.write(shapes.data)
            for group, block in self._groups(sizes_bytes):
                arrays.packed(images.arrays[group], shape, block)
                file.write(block.data)

    def read(self, location: Path) -> Images:
        """Read all images. With arrays=views the pixels are read as one block, otherwise in groups that are copied.

        Raises AdapterError for a file that `save` did not write completely.
        """
        with location.open("rb", buffering=0) as file:
            shapes, labels = self._index(file, location)
            if self.values["arrays"] == "views":
                block = self._numpy.empty(arrays.sizes_bytes(shapes).sum(), self._numpy.uint8)
                return arrays.sliced([arrays.Piece(shapes, labels, _filled(file, block))], location)
            return arrays.copied(self._pieces(file, shapes, labels), location)

    def open(self, location: Path) -> ImageHandle:
        """Open the file, and read shapes and labels. A requested image is then read by one call into a new array."""
        file = location.open("rb", buffering=0)
        try:
            shapes, labels = self._index(file, location)
        except BaseException:
            file.close()
            raise
        first = file.tell()
        starts = first + self._numpy.cumsum(arrays.sizes_bytes(shapes)) - arrays.sizes_bytes(shapes)

        def take(numbers: np.ndarray) -> Images:
            asked = arrays.checked(numbers, len(labels))
            found = [self._numpy.empty(arrays.shape_of(shapes[number]), self._numpy.uint8) for number in asked]
            for array, start in zip(found, starts[numbers].tolist(), strict=True):
                _filled_at(file, array, start)
            return Images(found, [labels[number] for number in asked])

        def batches(count: int) -> Iterator[Images]:
            file.seek(first)
            return arrays.in_batches(self._pieces(file, shapes, labels), count, location)

        return ImageHandle(take=take, batches=batches, close=file.close)

    def _index(self, file: FileIO, location: Path) -> tuple[np.ndarray, list[int]]:
        """Read and return the shape table and the labels, which precede the pixels in the file."""
        count, pixels_bytes = _header(file, location)
        labels = _filled(file, self._numpy.empty(count, self._numpy.int64)).tolist()
        shapes = _filled(file, self._numpy.empty((count, 3), self._numpy.int32))
        arrays.demand_agreement(arrays.sizes_bytes(shapes), pixels_bytes, location)
        return shapes, labels

    def _pieces(self, file: FileIO, shapes: np.ndarray, labels: list[int]) -> Iterator[arrays.Piece]:
        for group, block in self._groups(arrays.sizes_bytes(shapes)):
            yield arrays.Piece(shapes[group], labels[group], _filled(file, block))

    def _groups(self, sizes_bytes: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield a pair for each group of images: the slice of the images' numbers, and a buffer for the pixels. The
        same buffer is used again for the next group."""
        buffer = self._numpy.empty(max(arrays.GROUP_BYTES, sizes_bytes.max(initial=0)), self._numpy.uint8)
        for group in arrays.groups(sizes_bytes, arrays.GROUP_BYTES):
            yield group, buffer[: sizes_bytes[group].sum()]

    def stored(self, location: Path) -> Stored:
        """Check the header. The result has no codec, because this storage uses none."""
        with location.open("rb", buffering=0) as file:
            count, _ = _header(file, location)
        return Stored(details={"images": str(count)})


def _header(file: FileIO, location: Path) -> tuple[int, int]:
    """Return the number of images and the number of bytes of pixels from the header. Raises AdapterError if these
    numbers do not fit the size of the file."""
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size or not header.startswith(_MAGIC):
        raise AdapterError(
            f"{location} is not a raw I/O file of images: it begins with {header[:8]!r}, not {_MAGIC!r}."
        )
    _, count, pixels_bytes = _HEADER.unpack(header)
    told_bytes = count * _INDEX_BYTES + pixels_bytes
    there_bytes = location.stat().st_size - _HEADER.size
    if there_bytes != told_bytes:
        raise AdapterError(
            f"{location} has {there_bytes:,} bytes after the header, which announces {told_bytes:,}: "
            "the save did not finish."
        )
    return count, pixels_bytes


def _filled(file: FileIO, array: np.ndarray) -> np.ndarray:
    """Fill the array with the next bytes of the file and return it."""
    rest = array.reshape(-1).view("u1")
    # One call reads at most 2 GiB.
    while rest.size and (received := file.readinto(rest.data)):
        rest = rest[received:]
    return array


def _filled_at(file: FileIO, array: np.ndarray, start: int) -> None:
    rest = array.reshape(-1)
    while rest.size and (received := os.preadv(file.fileno(), [rest.data], start)):
        rest, start = rest[received:], start + received


ENGINES = (RawIO,)
