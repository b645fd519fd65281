"""Floor: what the machine can do without any storage, for every figure to be set against.

A checked header, the labels, the shapes and one block of pixels go to a file by plain writes, and come back by readinto
into fresh memory. No array is made for an image. It is a yardstick, not a storage to use.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

from adapters.contract import Block, Can, ImageStorage, Native, Stored
from adapters.errors import AdapterError

if TYPE_CHECKING:
    from io import FileIO

    import numpy as np

_HEADER = struct.Struct("<8sQQ8x")
"""Magic, number of images, bytes of pixels; 32 bytes keep what follows aligned."""

_MAGIC = b"FB-IMAGE"

_INDEX_BYTES = 8 + 3 * 4
"""Of each image: its label as int64, its height, width and channels as int32."""


class Floor(ImageStorage):
    """One block of pixels with its index, by plain write and readinto."""

    format = "image-floor"
    engine = "readinto"
    title = "Floor"
    distributions = ("numpy",)
    native = Native.BUFFERS
    suffix = ".floor"
    capabilities = frozenset({Can.SINGLE_FILE, Can.NO_PICKLE})

    def load_library(self) -> None:
        """Import numpy."""
        import numpy

        self._numpy = numpy

    def save(self, images: Block, location: Path) -> None:
        """Write the header, then each array as it lies in memory."""
        with location.open("wb") as file:
            file.write(_HEADER.pack(_MAGIC, len(images.labels), images.pixels.size))
            for array in (images.labels, images.shapes, images.pixels):
                file.write(self._numpy.ascontiguousarray(array).data)

    def read(self, location: Path) -> Block:
        """Read each array into fresh memory.

        Raises AdapterError when the file is not one that `save` has finished.
        """
        empty = self._numpy.empty
        with location.open("rb", buffering=0) as file:
            count, pixels_bytes = _header(file, location)
            labels = empty(count, self._numpy.int64)
            shapes = empty((count, 3), self._numpy.int32)
            pixels = empty(pixels_bytes, self._numpy.uint8)
            for array in (labels, shapes, pixels):
                _fill(file, array)
        return Block(pixels, shapes, labels)

    def stored(self, location: Path) -> Stored:
        """No codec; the header must be sound."""
        with location.open("rb", buffering=0) as file:
            count, _ = _header(file, location)
        return Stored(details={"images": str(count)})


def _header(file: FileIO, location: Path) -> tuple[int, int]:
    """Number of images and bytes of pixels, once the size of the file agrees with them."""
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size or not header.startswith(_MAGIC):
        raise AdapterError(f"{location}: not a floor file of images (it begins with {header[:8]!r}, not {_MAGIC!r})")
    _, count, pixels_bytes = _HEADER.unpack(header)
    told_bytes = count * _INDEX_BYTES + pixels_bytes
    there_bytes = location.stat().st_size - _HEADER.size
    if there_bytes != told_bytes:
        raise AdapterError(
            f"{location}: {there_bytes:,} bytes after the header, which says {told_bytes:,}; the save did not finish"
        )
    return count, pixels_bytes


def _fill(file: FileIO, array: np.ndarray) -> None:
    rest = array.reshape(-1).view("u1")
    # One call takes at most 2 GiB.
    while rest.size and (received := file.readinto(rest.data)):
        rest = rest[received:]


ENGINES = (Floor,)
