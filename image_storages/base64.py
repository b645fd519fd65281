"""Base64: a CSV file with one line per image, which has the shape, the label and the pixels in Base64."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from adapters.contract import Calls, Can, Images, ImageStorage, Maturity, Native, Stage, Stored
from adapters.errors import AdapterError
from adapters.offers import ImageHandle, Offers
from image_storages import arrays

if TYPE_CHECKING:
    import numpy as np

_COLUMNS = ("shape", "label", "pixels")


_SAVE = """\
with open({path}, "w", encoding="ascii", newline="") as file:
    lines = csv.writer(file, lineterminator="\\n")
    lines.writerow(("shape", "label", "pixels"))
    for array, label in zip(arrays, labels):
        lines.writerow(("x".join(map(str, array.shape)), label, base64.b64encode(array.tobytes()).decode()))"""
_READ = """\
csv.field_size_limit(2**31 - 1)
arrays, labels = [], []
with open({path}, encoding="ascii", newline="") as file:
    for line in csv.DictReader(file):
        pixels = np.frombuffer(base64.b64decode(line["pixels"]), np.uint8)
        arrays.append(pixels.reshape([int(side) for side in line["shape"].split("x")]).copy())
        labels.append(int(line["label"]))"""


class Base64Csv(ImageStorage):
    """Writes and reads with Python's modules csv and binascii (which Python's base64 calls)."""

    format = "base64"
    engine = "csv"
    title = "Base64 in CSV"
    distributions = ("numpy",)
    native = Native.IMAGES
    suffix = ".csv"
    maturity = Maturity(Stage.ESTABLISHED, "Base64 (RFC 4648) in CSV (RFC 4180); every language reads both")
    capabilities = frozenset({Can.APPEND, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE})
    offers = Offers(batches=True)

    calls = Calls(("import base64", "import csv", "import numpy as np"), _SAVE, _READ)

    def load_library(self) -> None:
        """Import csv and binascii."""
        import binascii
        import csv
        import encodings.ascii  # noqa: F401  # looked up by name when a file is opened

        import numpy

        self._binascii = binascii
        self._csv = csv
        self._numpy = numpy

    def save(self, images: Images, location: Path) -> None:
        """Write a header and one line per image: '32x32x3,7,<Base64 of the raw pixels>'."""
        encode = self._binascii.b2a_base64
        with location.open("w", encoding="ascii", newline="") as file:
            lines = self._csv.writer(file, lineterminator="\n")
            lines.writerow(_COLUMNS)
            lines.writerows(
                ("x".join(map(str, array.shape)), label, encode(array.tobytes(), newline=False).decode("ascii"))
                for array, label in zip(images.arrays, images.labels, strict=True)
            )

    def read(self, location: Path) -> Images:
        """Read all images, line by line. Raises AdapterError, with the line number, for a line that is not an image."""
        return arrays.joined(self._images(location))

    def open(self, location: Path) -> ImageHandle:
        """Return a handle that has opened nothing yet: images can only be found by reading the file from its
        beginning."""
        return ImageHandle(batches=lambda count: arrays.in_turn(self._images(location), count))

    def _images(self, location: Path) -> Iterator[tuple[np.ndarray, int]]:
        with location.open(encoding="ascii", newline="") as file, self._fields_of_any_size():
            lines = self._csv.reader(file)
            try:
                if next(lines, None) != list(_COLUMNS):
                    raise AdapterError(f"{location}: the header is not {','.join(_COLUMNS)}.")
                for shape, label, pixels in lines:
                    yield self._decoded(shape, pixels), int(label)
            except (ValueError, self._csv.Error) as error:
                raise AdapterError(f"{location}, line {lines.line_num} is not an image in Base64 ({error}).") from error

    def _decoded(self, shape: str, pixels: str) -> np.ndarray:
        data = self._binascii.a2b_base64(pixels, strict_mode=True)
        view = self._numpy.frombuffer(data, self._numpy.uint8)
        return view.reshape(tuple(map(int, shape.split("x")))).copy()

    @contextmanager
    def _fields_of_any_size(self) -> Iterator[None]:
        """Remove the csv module's limit of 128 KiB per field within a `with` block. The limit applies to the whole
        process."""
        before = self._csv.field_size_limit(sys.maxsize)
        try:
            yield
        finally:
            self._csv.field_size_limit(before)

    def stored(self, location: Path) -> Stored:
        """Check the header. The result has no codec, because this storage uses none."""
        with location.open(encoding="ascii") as file:
            header = file.readline().rstrip("\n")
        if header != ",".join(_COLUMNS):
            raise AdapterError(f"{location} begins with {header[:40]!r} instead of {','.join(_COLUMNS)!r}.")
        return Stored()


ENGINES = (Base64Csv,)
