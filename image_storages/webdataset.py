"""WebDataset: a tar archive with two members per image. <number>.npy contains the array, <number>.cls the label."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from adapters.contract import Calls, Can, Images, ImageStorage, Maturity, Native, Stage, Stored
from adapters.errors import AdapterError
from adapters.offers import ImageHandle, Offers
from image_storages import arrays

if TYPE_CHECKING:
    import numpy as np

_PIXELS, _LABEL = "npy", "cls"

_END = bytes(1024)
"""The last bytes of a complete archive. They are checked, because tarfile accepts an archive that is truncated after a
member."""


_SAVE = """\
with wds.TarWriter({path}, mtime=0) as writer:
    for number, (array, label) in enumerate(zip(arrays, labels)):
        writer.write({"__key__": f"{number:08d}", "npy": array, "cls": label})"""
_READ = """\
samples = list(wds.WebDataset({path}, shardshuffle=False).decode())
arrays = [sample["npy"] for sample in samples]
labels = [sample["cls"] for sample in samples]"""


class WebDatasetTar(ImageStorage):
    """Writes with TarWriter of the package webdataset, and reads with the functions that its class WebDataset uses.

    The functions are called directly, because the class would first look for URLs and for torch.
    """

    format = "webdataset"
    engine = "webdataset"
    title = "WebDataset"
    distributions = ("webdataset",)
    native = Native.IMAGES
    suffix = ".tar"
    maturity = Maturity(
        Stage.ESTABLISHED, "tar archives (POSIX) of NumPy files; webdataset, DALI and Hugging Face's datasets read them"
    )
    capabilities = frozenset({Can.APPEND, Can.TYPES, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE})
    offers = Offers(batches=True)

    calls = Calls(("import webdataset as wds",), _SAVE, _READ)

    def load_library(self) -> None:
        """Import webdataset."""
        import tarfile

        import numpy.lib.format
        import webdataset.tariterators
        import webdataset.writer

        self._format = numpy.lib.format
        self._tarfile = tarfile
        self._tariterators = webdataset.tariterators
        self._writer = webdataset.writer

    def save(self, images: Images, location: Path) -> None:
        """Write one archive. All members have the modification time 0, so that equal images result in equal files."""
        with location.open("wb") as file, self._writer.TarWriter(file, mtime=0) as writer:
            for number, (array, label) in enumerate(zip(images.arrays, images.labels, strict=True)):
                writer.write({"__key__": f"{number:08d}", _PIXELS: array, _LABEL: label})

    def read(self, location: Path) -> Images:
        """Read all images, member by member. Raises AdapterError if the archive is damaged or has other content."""
        return arrays.joined(self._images(location))

    def open(self, location: Path) -> ImageHandle:
        """Return a handle that has opened nothing yet: a tar archive has no list of its members, so each pass reads the
        file from its start."""
        return ImageHandle(batches=lambda count: arrays.in_turn(self._images(location), count))

    def _images(self, location: Path) -> Iterator[tuple[np.ndarray, int]]:
        read = 0
        with location.open("rb") as file:
            _demand_end(file, location)
            try:
                for sample in self._samples(file, location):
                    yield self._decoded(sample[_PIXELS]), int(sample[_LABEL])
                    read += 1
            except (self._tarfile.TarError, KeyError, ValueError) as error:
                raise AdapterError(f"{location}: image {read} cannot be read ({error}).") from error

    def _samples(self, file: IO[bytes], location: Path) -> Iterator[dict[str, Any]]:
        opened = [{"url": str(location), "stream": file}]
        return self._tariterators.group_by_keys(self._tariterators.tar_file_expander(opened))

    def _decoded(self, member: bytes) -> np.ndarray:
        # numpy returns a view of the bytes read, so copy the array into separate memory.
        return self._format.read_array(io.BytesIO(member), allow_pickle=False).copy()

    def stored(self, location: Path) -> Stored:
        """Check that the file is an uncompressed tar archive. There is no codec."""
        try:
            with self._tarfile.open(location, "r:") as archive:
                first = archive.next()
        except self._tarfile.TarError as error:
            raise AdapterError(f"{location} is not a tar archive ({error}).") from error
        return Stored(details={"first member": first.name if first else "none"})


def _demand_end(file: IO[bytes], location: Path) -> None:
    file.seek(-min(len(_END), location.stat().st_size), io.SEEK_END)
    if file.read() != _END:
        raise AdapterError(f"{location} does not end like a tar archive: the save did not finish.")
    file.seek(0)


ENGINES = (WebDatasetTar,)
