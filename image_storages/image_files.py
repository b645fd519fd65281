"""Folders of PNG, JPEG or WebP files, with one image per file. The file labels.csv lists the images in order."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import Calls, Can, Images, ImageStorage, Maturity, Native, Setting, Stage, Stored
from adapters.errors import AdapterError
from adapters.offers import ImageHandle, Offers, Reach
from image_storages import arrays

if TYPE_CHECKING:
    import numpy as np

_LABELS = "labels.csv"
_COLUMNS = ["file", "label", "mode"]
"""Columns of labels.csv. `mode` is Pillow's mode, L (grey) or RGB, because WebP files do not record it."""


_SAVE = """\
os.mkdir({path})
with open(os.path.join({path}, "labels.csv"), "w") as file:
    file.write("file,label,mode\\n")
    for number, (array, label) in enumerate(zip(arrays, labels)):
        image = Image.fromarray(array)
        image.save(os.path.join({path}, f"{number:08d}{ending}"), "{kind}"{options})
        file.write(f"{number:08d}{ending},{label},{image.mode}\\n")"""
_READ = """\
with open(os.path.join({path}, "labels.csv")) as file:
    listed = list(csv.DictReader(file))
arrays = [np.array(Image.open(os.path.join({path}, line["file"])).convert(line["mode"])) for line in listed]
labels = [int(line["label"]) for line in listed]"""


class _ImageFiles(ImageStorage):
    """Base class of the storages that write files by Pillow's Image.save and read them by Image.open."""

    engine = "pillow"
    distributions = ("pillow",)
    native = Native.IMAGES
    suffix = ".folder"
    capabilities = frozenset({Can.APPEND, Can.OTHER_LANGUAGES, Can.NO_PICKLE})
    offers = Offers(take=Reach.ROWS, batches=True)
    kind: ClassVar[str]
    """Pillow's name for the file format."""
    ending: ClassVar[str]

    @property
    @abstractmethod
    def options(self) -> Mapping[str, Any]:
        """Return the options for Image.save, other than the format."""

    @property
    def calls(self) -> Calls:
        """Return code with which users can write and read the same files. In this code, Pillow refuses images of more
        than 179 million pixels."""
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        save = _SAVE.replace("{ending}", self.ending).replace("{kind}", self.kind).replace("{options}", options)
        return Calls(("import csv", "import os", "import numpy as np", "from PIL import Image"), save, _READ)

    def load_library(self) -> None:
        import csv

        import numpy
        import PIL.Image
        import PIL.WebPImagePlugin

        PIL.Image.preinit()
        self._csv = csv
        self._numpy = numpy
        self._image = PIL.Image

    def save(self, images: Images, location: Path) -> None:
        """Create the folder, and write a file for each image and the list labels.csv."""
        location.mkdir()
        options = self.options
        with (location / _LABELS).open("w", encoding="utf-8", newline="") as file:
            lines = self._csv.writer(file, lineterminator="\n")
            lines.writerow(_COLUMNS)
            for number, (array, label) in enumerate(zip(images.arrays, images.labels, strict=True)):
                name = f"{number:08d}{self.ending}"
                image = self._image.fromarray(array)
                image.save(f"{location}/{name}", self.kind, **options)
                lines.writerow((name, label, image.mode))

    def read(self, location: Path) -> Images:
        """Read the files in the order in which labels.csv lists them. Raises AdapterError, with the
        file's name, if a file is invalid."""
        found: list[np.ndarray] = []
        labels: list[int] = []
        with self._images_of_any_size():
            for name, label, mode in self._listed(location):
                found.append(self._decoded(f"{location}/{name}", mode))
                labels.append(label)
        return Images(found, labels)

    def open(self, location: Path) -> ImageHandle:
        """Read the list of files. An image file is opened when the image is requested."""
        listed = list(self._listed(location))

        def take(numbers: np.ndarray) -> Images:
            return self._of(location, [listed[number] for number in arrays.checked(numbers, len(listed))])

        def batches(count: int) -> Iterator[Images]:
            for start in range(0, len(listed), count):
                yield self._of(location, listed[start : start + count])

        return ImageHandle(take=take, batches=batches)

    def _of(self, location: Path, listed: list[tuple[str, int, str]]) -> Images:
        with self._images_of_any_size():
            found = [self._decoded(f"{location}/{name}", mode) for name, _, mode in listed]
        return Images(found, [label for _, label, _ in listed])

    def _listed(self, location: Path) -> Iterator[tuple[str, int, str]]:
        with (location / _LABELS).open(encoding="utf-8", newline="") as file:
            lines = self._csv.reader(file)
            try:
                if next(lines, None) != _COLUMNS:
                    raise ValueError(f"the header is not {','.join(_COLUMNS)}")
                for name, label, mode in lines:
                    yield name, int(label), mode
            except (ValueError, self._csv.Error) as error:
                raise AdapterError(f"{location / _LABELS}, line {lines.line_num}: {error}") from error

    def _decoded(self, path: str, mode: str) -> np.ndarray:
        try:
            with self._image.open(path, formats=(self.kind,)) as image:
                return self._numpy.array(image if image.mode == mode else image.convert(mode))
        except (OSError, EOFError, SyntaxError, ValueError) as error:
            raise AdapterError(f"{path} cannot be read as {self.kind} ({error}).") from error

    @contextmanager
    def _images_of_any_size(self) -> Iterator[None]:
        """Disable Pillow's limit of 179 million pixels. The limit protects from attacks by unknown files, but these
        files were written here."""
        before = self._image.MAX_IMAGE_PIXELS
        self._image.MAX_IMAGE_PIXELS = None
        try:
            yield
        finally:
            self._image.MAX_IMAGE_PIXELS = before

    def stored(self, location: Path) -> Stored:
        """Return the encoding of the pixels, which is found from the first bytes of the first file."""
        first = next(self._listed(location), None)
        if first is None:
            return Stored()
        with (location / first[0]).open("rb") as file:
            signature = file.read(16)
        return Stored(None, (self._encoding(signature, location / first[0]),))

    @abstractmethod
    def _encoding(self, signature: bytes, path: Path) -> str:
        """Return the encoding of a file that begins with these 16 bytes. Raises AdapterError for another file
        format."""


def _demand(sound: bool, path: Path, signature: bytes, kind: str) -> None:
    if not sound:
        raise AdapterError(f"{path} is not {kind}: it begins with {signature!r}")


class Png(_ImageFiles):
    """PNG files. PNG is lossless: rows are filtered, then compressed by Deflate."""

    format = "png"
    title = "PNG files"
    kind = "PNG"
    ending = ".png"
    maturity = Maturity(Stage.ESTABLISHED, "ISO/IEC 15948 and a W3C recommendation; every language reads it")
    settings: ClassVar = {"compress_level": Setting(range(0, 10), 6, "of zlib: 0 stores, 9 is smallest")}

    @property
    def options(self) -> Mapping[str, Any]:
        """Pillow's `compress_level`."""
        return {"compress_level": self.values["compress_level"]}

    def _encoding(self, signature: bytes, path: Path) -> str:
        _demand(signature.startswith(b"\x89PNG\r\n\x1a\n"), path, signature, self.kind)
        return "Deflate"


_LEAST_QUALITY = 50
"""Minimum of the setting `quality`. Below it, no useful limit of the error can be declared, because an image may become
more similar to a different image than to the original."""


def _least_psnr_db(quality: int) -> float:
    """Return the declared minimum of the signal-to-noise ratio (docs/operations.md).

    Stored photographs have a much higher ratio to their originals, and two different images have a much lower one."""
    return 20.0 + (quality - _LEAST_QUALITY) * 0.16


class Jpeg(_ImageFiles):
    """JPEG files, as Pillow writes them by default. JPEG is lossy: it quantises a cosine transform, and stores colours
    at half the resolution (4:2:0)."""

    format = "jpeg"
    title = "JPEG files"
    kind = "JPEG"
    ending = ".jpg"
    maturity = Maturity(Stage.ESTABLISHED, "ISO/IEC 10918 since 1992; every language reads it")
    settings: ClassVar = {
        "quality": Setting(range(_LEAST_QUALITY, 96), 75, "of the quantisation; Pillow advises against more than 95")
    }
    max_side = 65_500

    @property
    def least_psnr_db(self) -> float:
        """The declared minimum of the signal-to-noise ratio, which depends on the quality."""
        return _least_psnr_db(int(self.values["quality"] or 0))

    @property
    def options(self) -> Mapping[str, Any]:
        """Pillow's `quality`."""
        return {"quality": self.values["quality"]}

    def _encoding(self, signature: bytes, path: Path) -> str:
        _demand(signature.startswith(b"\xff\xd8\xff"), path, signature, self.kind)
        return "JPEG"


class Webp(_ImageFiles):
    """WebP files. They are lossy (VP8, with colours at half the resolution), unless lossless=true (VP8L)."""

    format = "webp"
    title = "WebP files"
    kind = "WEBP"
    ending = ".webp"
    maturity = Maturity(Stage.ESTABLISHED, "RFC 9649; browsers and libraries of every language read it")
    settings: ClassVar = {
        "lossless": Setting(("false", "true"), "false", "whether every pixel comes back as it was"),
        "quality": Setting(range(_LEAST_QUALITY, 101), 80, "of the quantisation; when lossless, the effort instead"),
    }
    beside: ClassVar = ({"lossless": "true"},)
    max_side = 16_383

    @property
    def least_psnr_db(self) -> float | None:
        """The declared minimum of the signal-to-noise ratio, which depends on the quality, or None if lossless."""
        return None if self._lossless else _least_psnr_db(int(self.values["quality"] or 0))

    @property
    def _lossless(self) -> bool:
        return self.values["lossless"] == "true"

    @property
    def options(self) -> Mapping[str, Any]:
        """Pillow's `lossless` and `quality`."""
        return {"lossless": self._lossless, "quality": self.values["quality"]}

    def _encoding(self, signature: bytes, path: Path) -> str:
        wanted = b"VP8L" if self._lossless else b"VP8 "
        _demand(signature[8:] == b"WEBP" + wanted, path, signature, f"{self.kind} with the chunk {wanted!r}")
        return wanted.decode().strip()


PNG = (Png,)
JPEG = (Jpeg,)
WEBP = (Webp,)
