"""Raw I/O: what the machine can do without any storage, for every figure to be set against.

A checked header, the labels, the shapes and the pixels one after the other go to a file by plain writes, and come back
by readinto: into arrays of their own, or as views of one block. It is a yardstick, not a storage to use.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from adapters.contract import Can, Images, ImageStorage, Maturity, Native, Stage, Stored
from adapters.errors import AdapterError
from image_storages import arrays

if TYPE_CHECKING:
    from io import FileIO

    import numpy as np

_HEADER = struct.Struct("<8sQQ8x")
"""Magic, number of images, bytes of pixels; 32 bytes keep what follows aligned."""

_MAGIC = b"FB-IMAGE"

_INDEX_BYTES = 8 + 3 * 4
"""Of each image: its label as int64, its height, width and channels as int32."""


class RawIO(ImageStorage):
    """Labels, shapes and pixels, by plain write and readinto."""

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

    def load_library(self) -> None:
        """Import numpy."""
        import numpy

        self._numpy = numpy

    def save(self, images: Images, location: Path) -> None:
        """Write the header, labels and shapes, then the pixels, gathered about 1 MiB at a time."""
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
        """Read the index, then the pixels: in groups that are copied apart, or as one block for views.

        Raises AdapterError when the file is not one that `save` has finished.
        """
        empty = self._numpy.empty
        with location.open("rb", buffering=0) as file:
            count, pixels_bytes = _header(file, location)
            labels = _filled(file, empty(count, self._numpy.int64)).tolist()
            shapes = _filled(file, empty((count, 3), self._numpy.int32))
            sizes_bytes = arrays.sizes_bytes(shapes)
            arrays.demand_agreement(sizes_bytes, pixels_bytes, location)
            if self.values["arrays"] == "views":
                block = _filled(file, empty(pixels_bytes, self._numpy.uint8))
                return arrays.sliced([arrays.Piece(shapes, labels, block)], location)
            pieces = (
                arrays.Piece(shapes[group], labels[group], _filled(file, block))
                for group, block in self._groups(sizes_bytes)
            )
            return arrays.copied(pieces, location)

    def _groups(self, sizes_bytes: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """For each group of images: which they are, and memory for their pixels, the same for all."""
        buffer = self._numpy.empty(max(arrays.GROUP_BYTES, sizes_bytes.max(initial=0)), self._numpy.uint8)
        for group in arrays.groups(sizes_bytes, arrays.GROUP_BYTES):
            yield group, buffer[: sizes_bytes[group].sum()]

    def stored(self, location: Path) -> Stored:
        """No codec; the header must be sound."""
        with location.open("rb", buffering=0) as file:
            count, _ = _header(file, location)
        return Stored(details={"images": str(count)})


def _header(file: FileIO, location: Path) -> tuple[int, int]:
    """Number of images and bytes of pixels, once the size of the file agrees with them."""
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size or not header.startswith(_MAGIC):
        raise AdapterError(f"{location}: not a raw I/O file of images (it begins with {header[:8]!r}, not {_MAGIC!r})")
    _, count, pixels_bytes = _HEADER.unpack(header)
    told_bytes = count * _INDEX_BYTES + pixels_bytes
    there_bytes = location.stat().st_size - _HEADER.size
    if there_bytes != told_bytes:
        raise AdapterError(
            f"{location}: {there_bytes:,} bytes after the header, which says {told_bytes:,}; the save did not finish"
        )
    return count, pixels_bytes


def _filled(file: FileIO, array: np.ndarray) -> np.ndarray:
    """The array, with what comes next in the file in it."""
    rest = array.reshape(-1).view("u1")
    # One call takes at most 2 GiB.
    while rest.size and (received := file.readinto(rest.data)):
        rest = rest[received:]
    return array


ENGINES = (RawIO,)
