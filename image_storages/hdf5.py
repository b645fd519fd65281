"""HDF5 files through h5py.

If all images have the same shape, the pixels are one HDF5 data set with a row per image. Otherwise the pixels are a
flat data set, and another data set has the shapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from adapters.contract import Calls, Can, Images, ImageStorage, Maturity, Native, Stage, Stored
from adapters.errors import AdapterError
from adapters.offers import ImageHandle, Offers, Reach
from image_storages import arrays

if TYPE_CHECKING:
    import h5py
    import numpy as np

_PIXELS, _SHAPES, _LABELS = "pixels", "shapes", "labels"

_GROUP_BYTES = 4 << 20
"""Approximate number of bytes that are written or read at a time. It is larger than arrays.GROUP_BYTES, because each
selection in h5py takes about 0.1 ms."""


_SAVE = """\
alike = len({array.shape for array in arrays}) == 1
with h5py.File({path}, "w") as file:
    file["labels"] = np.array(labels, np.int64)
    file["pixels"] = np.stack(arrays) if alike else np.concatenate(arrays, axis=None)
    if not alike:
        file["shapes"] = np.array([(*array.shape, 0)[:3] for array in arrays], np.int32)  # 0 channels: grey"""
_READ = """\
with h5py.File({path}) as file:
    labels, pixels = file["labels"][()].tolist(), file["pixels"][()]
    shapes = file["shapes"][()].tolist() if "shapes" in file else [pixels.shape[1:]] * len(pixels)
shapes = [shape if shape[-1] else shape[:2] for shape in shapes]
parts = np.split(pixels.reshape(-1), np.cumsum([np.prod(shape) for shape in shapes])[:-1])
arrays = [part.reshape(shape){copy} for part, shape in zip(parts, shapes)]"""


class HdfImages(ImageStorage):
    """Writes and reads with h5py: contiguous data sets without filters, in pieces of about 4 MiB."""

    format = "image-hdf5"
    engine = "h5py"
    title = "HDF5"
    distributions = ("h5py",)
    native = Native.IMAGES
    suffix = ".h5"
    settings: ClassVar = {"arrays": arrays.ARRAYS}
    beside: ClassVar = ({"arrays": "views"},)
    maturity = Maturity(
        Stage.ESTABLISHED, "arrays in HDF5, a standard since 1998; implementations in C, Java and Python"
    )
    capabilities = frozenset({Can.TYPES, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE})
    offers = Offers(take=Reach.ROWS, batches=True)

    @property
    def calls(self) -> Calls:
        """Return code with which users can write and read the same data sets, with one call for each data set."""
        return Calls(("import h5py", "import numpy as np"), _SAVE, _READ.replace("{copy}", arrays.copy_of(self)))

    def load_library(self) -> None:
        """Import h5py."""
        import h5py
        import numpy

        self._h5py = h5py
        self._numpy = numpy

    def save(self, images: Images, location: Path) -> None:
        """Write one file with the data sets `pixels` and `labels`. If all images have the same shape, `pixels` has the
        shape (n, height, width) or (n, height, width, channels). Otherwise `pixels` is flat, and the data set `shapes`
        of shape (n, 3) is added."""
        shape = arrays.common_shape(images.arrays)
        shapes = arrays.shape_table(images.arrays, shape)
        sizes_bytes = arrays.sizes_bytes(shapes)
        extent = (int(sizes_bytes.sum()),) if shape is None else (len(shapes), *shape)
        with self._h5py.File(location, "w") as file:
            file.create_dataset(_LABELS, data=self._numpy.array(images.labels, self._numpy.int64))
            if shape is None:
                file.create_dataset(_SHAPES, data=shapes)
            pixels = file.create_dataset(_PIXELS, extent, self._numpy.uint8)
            for group, part, block in self._parts(pixels, sizes_bytes):
                arrays.packed(images.arrays[group], shape, block.reshape(-1))
                pixels.write_direct(block, dest_sel=part)

    def read(self, location: Path) -> Images:
        """Read all images. With arrays=views the pixels are read as one block, otherwise in pieces that are copied.

        Raises AdapterError for a file that `save` did not write, or did not finish.
        """
        with self._h5py.File(location, "r") as file:
            pixels, shapes, labels = _index(file, location)
            if self.values["arrays"] == "owned":
                return arrays.copied(self._pieces(pixels, shapes, labels), location)
            block = self._numpy.empty(pixels.shape, self._numpy.uint8)
            if block.size:
                pixels.read_direct(block)
            return arrays.sliced([arrays.Piece(shapes, labels, block.reshape(-1))], location)

    def open(self, location: Path) -> ImageHandle:
        """Open the file, and read shapes and labels. If all images have the same shape, requested images are read by
        one call, otherwise one by one. Raises the same errors as `read`."""
        file = self._h5py.File(location, "r")
        try:
            pixels, shapes, labels = _index(file, location)
        except BaseException:
            file.close()
            raise
        ends = self._numpy.cumsum(arrays.sizes_bytes(shapes))

        def take(numbers: np.ndarray) -> Images:
            asked = arrays.checked(numbers, len(labels))
            # h5py accepts only ascending numbers without repetitions.
            unique, places = self._numpy.unique(numbers, return_inverse=True)
            if pixels.ndim == 1:
                found = [
                    pixels[ends[number - 1] if number else 0 : ends[number]].reshape(arrays.shape_of(shapes[number]))
                    for number in unique.tolist()
                ]
            else:
                found = list(pixels[unique]) if len(unique) else []
            return Images([found[place].copy() for place in places.tolist()], [labels[number] for number in asked])

        def batches(count: int) -> Iterator[Images]:
            return arrays.in_batches(self._pieces(pixels, shapes, labels), count, location)

        return ImageHandle(take=take, batches=batches, close=file.close)

    def _pieces(self, pixels: h5py.Dataset, shapes: np.ndarray, labels: list[int]) -> Iterator[arrays.Piece]:
        for group, part, block in self._parts(pixels, arrays.sizes_bytes(shapes)):
            pixels.read_direct(block, source_sel=part)
            yield arrays.Piece(shapes[group], labels[group], block.reshape(-1))

    def _parts(self, pixels: h5py.Dataset, sizes_bytes: np.ndarray) -> Iterator[tuple[slice, slice, np.ndarray]]:
        """Yield a tuple for each group of images: the slice of the images' numbers, the slice of the data set that
        contains the pixels, and a buffer for the pixels. The same buffer is used again for the next group."""
        flat = pixels.ndim == 1
        buffer = self._numpy.empty(max(_GROUP_BYTES, sizes_bytes.max(initial=0)), self._numpy.uint8)
        start = 0
        for group in arrays.groups(sizes_bytes, _GROUP_BYTES):
            end = start + int(sizes_bytes[group].sum())
            block = buffer[: end - start]
            yield group, slice(start, end) if flat else group, block if flat else block.reshape(-1, *pixels.shape[1:])
            start = end

    def stored(self, location: Path) -> Stored:
        """Return the compression filter and the layout of the pixels."""
        with self._h5py.File(location, "r") as file:
            _check(file, location)
            pixels = file[_PIXELS]
            return Stored(pixels.compression or "none", (), {"layout": "flat" if _SHAPES in file else "one shape"})


def _index(file: h5py.File, location: Path) -> tuple[h5py.Dataset, np.ndarray, list[int]]:
    """Return the data set of pixels (which is not read here), the shape table and the labels."""
    _check(file, location)
    pixels, labels = file[_PIXELS], file[_LABELS][()].tolist()
    shapes = file[_SHAPES][()] if _SHAPES in file else arrays.repeated(pixels.shape[1:], len(pixels))
    arrays.demand_agreement(arrays.sizes_bytes(shapes), pixels.size, location)
    return pixels, shapes, labels


def _check(file: h5py.File, location: Path) -> None:
    missing = [name for name in (_PIXELS, _LABELS) if name not in file]
    if missing:
        raise AdapterError(f"{location} was not written by image-hdf5: it has no data set {' and no '.join(missing)}.")


ENGINES = (HdfImages,)
