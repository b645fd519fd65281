"""LMDB: one file with an entry for each image. The key of an entry is the number of the image. The value has the shape,
the label and the pixels."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import Calls, Can, Images, ImageStorage, Maturity, Native, Stage, Stored
from adapters.errors import AdapterError
from adapters.offers import ImageHandle, Offers, Reach
from image_storages import arrays

if TYPE_CHECKING:
    import lmdb
    import numpy as np

_KEY = struct.Struct(">Q")
"""Format of keys: big-endian, because LMDB sorts keys as bytes."""

_HEADER = struct.Struct("<iiiq")
"""Format of the header of an entry: height, width, channels and label."""

_HEADER_FIELDS = [("shape", "<i4", 3), ("label", "<i8")]
"""The same header as a numpy record type."""

_PAGE_BYTES = 4096
_SLACK_BYTES = 1 << 20
"""Number of bytes added for the inner pages of LMDB's tree, which has about one inner page per 200 leaf pages."""


_SAVE = """\
map_bytes = sum(array.nbytes + 12_288 for array in arrays) + 2**20
with lmdb.open({path}, map_size=map_bytes, subdir=False, lock=False) as store, store.begin(write=True) as entries:
    for number, (array, label) in enumerate(zip(arrays, labels)):
        header = struct.pack("<iiiq", *(*array.shape, 0)[:3], label)  # 0 channels: grey
        entries.put(number.to_bytes(8, "big"), header + array.tobytes(), append=True)"""
_READ = """\
arrays, labels = [], []
with lmdb.open({path}, subdir=False, readonly=True, lock=False) as store, store.begin() as entries:
    for entry in entries.cursor().iternext(keys=False, values=True):
        *shape, label = struct.unpack_from("<iiiq", entry)
        pixels = np.frombuffer(entry, np.uint8, offset=20)
        arrays.append(pixels.reshape(shape if shape[2] else shape[:2]){copy})
        labels.append(label)"""


class LmdbImages(ImageStorage):
    """Writes and reads with py-lmdb. All entries are appended in one transaction. LMDB's
    lock file is disabled, because only one process opens the file at a time."""

    format = "lmdb"
    engine = "lmdb"
    title = "LMDB"
    distributions = ("lmdb",)
    native = Native.IMAGES
    suffix = ".lmdb"
    settings: ClassVar = {"arrays": arrays.ARRAYS}
    beside: ClassVar = ({"arrays": "views"},)
    maturity = Maturity(Stage.YOUNG, "one implementation and no specification; LMDB 1.0 does not read files of 0.9")
    capabilities = frozenset({Can.APPEND, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE})
    offers = Offers(take=Reach.ROWS, batches=True)
    syncs_on_save = True

    reads_unseen = True
    """LMDB maps its file into memory. The measuring code counts read calls, so it does not see these reads."""

    @property
    def calls(self) -> Calls:
        """Return code with which users can write and read the same entries, one by one."""
        return Calls(
            ("import struct", "import lmdb", "import numpy as np"), _SAVE, _READ.replace("{copy}", arrays.copy_of(self))
        )

    def load_library(self) -> None:
        """Import lmdb, and the modules that lmdb itself loads when it opens its first file."""
        import lmdb
        import numpy

        with contextlib.suppress(ImportError):  # releases before 3.0 lack this module
            import lmdb._envid
        self._lmdb = lmdb
        self._numpy = numpy

    # --- save --------------------------------------------------------------------------------------------------------

    def save(self, images: Images, location: Path) -> None:
        """Write all images to one file. The file grows only as pages are written, so a large map size needs no disk
        space."""
        with (
            self._lmdb.open(str(location), map_size=_map_bytes(images), subdir=False, lock=False) as environment,
            environment.begin(write=True) as transaction,
        ):
            transaction.cursor().putmulti(_entries(images), append=True)

    # --- read --------------------------------------------------------------------------------------------------------

    def read(self, location: Path) -> Images:
        """Read all images in the order of their keys. Pixels are copied, so that no array uses the memory-mapped file.

        Raises AdapterError for a file that is missing, damaged or truncated.
        """
        with (
            self._open(location) as environment,
            environment.begin(buffers=True) as transaction,
            transaction.cursor() as cursor,
        ):
            pieces = self._pieces(cursor.iternext(keys=False, values=True), location)
            if self.values["arrays"] == "owned":
                return arrays.copied(pieces, location)
            return arrays.gathered(pieces, location.stat().st_size, location)

    def open(self, location: Path) -> ImageHandle:
        """Map the file into memory, and begin a read transaction. The number of an image is its key."""
        environment = self._open(location)
        count = environment.stat()["entries"]
        transaction = environment.begin(buffers=True)

        def take(numbers: np.ndarray) -> Images:
            entries: Any = (transaction.get(_KEY.pack(number)) for number in arrays.checked(numbers, count))
            return arrays.copied(self._pieces(entries, location), location)

        def batches(batch: int) -> Iterator[Images]:
            with transaction.cursor() as cursor:
                entries = cursor.iternext(keys=False, values=True)
                yield from arrays.in_batches(self._pieces(entries, location), batch, location)

        def close() -> None:
            transaction.abort()
            environment.close()

        return ImageHandle(take=take, batches=batches, close=close)

    def _pieces(self, entries: Iterator[memoryview], location: Path) -> Iterator[arrays.Piece]:
        for group in _grouped(entries):
            sizes_bytes = set(map(len, group))
            if min(sizes_bytes) < _HEADER.size:
                raise AdapterError(f"{location} has an entry of less than {_HEADER.size} bytes, which is not an image.")
            headers, pixels = self._apart(group) if len(sizes_bytes) > 1 else self._apart_as_rows(group)
            yield arrays.Piece(headers["shape"], headers["label"].tolist(), pixels)

    def _apart(self, group: list[memoryview]) -> tuple[np.ndarray, np.ndarray]:
        headers = b"".join([entry[: _HEADER.size] for entry in group])
        pixels = b"".join([entry[_HEADER.size :] for entry in group])
        return self._numpy.frombuffer(headers, _HEADER_FIELDS), self._numpy.frombuffer(pixels, self._numpy.uint8)

    def _apart_as_rows(self, group: list[memoryview]) -> tuple[np.ndarray, np.ndarray]:
        """Return headers and pixels as `_apart` does, but faster. All entries must have the same size."""
        rows = self._numpy.frombuffer(b"".join(group), self._numpy.uint8).reshape(len(group), -1)
        headers = rows[:, : _HEADER.size].tobytes()
        return self._numpy.frombuffer(headers, _HEADER_FIELDS), rows[:, _HEADER.size :]

    def _open(self, location: Path) -> lmdb.Environment:
        if not location.is_file():
            raise AdapterError(f"{location} does not exist.")
        try:
            environment = self._lmdb.open(str(location), subdir=False, readonly=True, lock=False, create=False)
        except self._lmdb.Error as error:
            raise AdapterError(f"{location} cannot be opened as LMDB ({error}).") from error
        pages_bytes = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
        there_bytes = location.stat().st_size
        if there_bytes < pages_bytes:
            environment.close()
            # Reading a page of the map beyond the end of the file would kill the process.
            raise AdapterError(f"{location} has {there_bytes:,} of {pages_bytes:,} bytes: the save did not finish.")
        return environment

    # --- facts about a stored copy -----------------------------------------------------------------------------------

    def stored(self, location: Path) -> Stored:
        """Return the number of entries and the page size. There is no codec."""
        with self._open(location) as environment:
            statistics = environment.stat()
        return Stored(details={"entries": str(statistics["entries"]), "page bytes": str(statistics["psize"])})


def _entries(images: Images) -> Iterator[tuple[bytes, bytes]]:
    for number, (array, label) in enumerate(zip(images.arrays, images.labels, strict=True)):
        yield _KEY.pack(number), _HEADER.pack(*arrays.numbers_of(array.shape), label) + array.tobytes()


def _grouped(entries: Iterator[memoryview]) -> Iterator[list[memoryview]]:
    """Yield consecutive entries in groups of about GROUP_BYTES bytes. A group has at least one entry."""
    group: list[memoryview] = []
    filled = 0
    for entry in entries:
        group.append(entry)
        filled += len(entry)
        if filled >= arrays.GROUP_BYTES:
            yield group
            group, filled = [], 0
    if group:
        yield group


def _map_bytes(images: Images) -> int:
    """Return an upper limit for the size of the file. For each entry, the pages with its data are counted, and one page
    of the tree, because an entry never needs more than one."""
    entry_bytes = _KEY.size + _HEADER.size
    pages = sum((entry_bytes + array.nbytes) // _PAGE_BYTES + 2 for array in images.arrays)
    return pages * _PAGE_BYTES + _SLACK_BYTES


ENGINES = (LmdbImages,)
