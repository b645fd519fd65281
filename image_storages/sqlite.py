"""SQLite: one table with one row per image. The pixels are a BLOB."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from adapters.contract import Calls, Can, Images, ImageStorage, Maturity, Native, Stage, Stored
from adapters.errors import AdapterError
from adapters.offers import ImageHandle, Offers, Reach
from image_storages import arrays

if TYPE_CHECKING:
    import sqlite3

    import numpy as np

_CREATE = """
    CREATE TABLE images (
        label INTEGER NOT NULL, height INTEGER NOT NULL, width INTEGER NOT NULL, channels INTEGER NOT NULL,
        pixels BLOB NOT NULL
    )
"""
_INSERT = "INSERT INTO images (height, width, channels, label, pixels) VALUES (?, ?, ?, ?, ?)"
_SELECT = "SELECT height, width, channels, label, pixels FROM images ORDER BY rowid"
_SELECT_ONE = "SELECT height, width, channels, label, pixels FROM images WHERE rowid = ?"


_SAVE = """\
with closing(sqlite3.connect({path})) as database, database:
    numbers = "label INTEGER NOT NULL, height INTEGER NOT NULL, width INTEGER NOT NULL, channels INTEGER NOT NULL"
    database.execute(f"CREATE TABLE images ({numbers}, pixels BLOB NOT NULL)")
    rows = ((int(label), *(*array.shape, 0)[:3], array.tobytes()) for array, label in zip(arrays, labels))
    database.executemany("INSERT INTO images VALUES (?, ?, ?, ?, ?)", rows)  # 0 channels: grey"""
_READ = """\
arrays, labels = [], []
with closing(sqlite3.connect({path})) as database:
    for label, *shape, pixels in database.execute(
        "SELECT label, height, width, channels, pixels FROM images ORDER BY rowid"
    ):
        arrays.append(np.frombuffer(pixels, np.uint8).reshape(shape if shape[2] else shape[:2]){copy})
        labels.append(label)"""


class SqliteImages(ImageStorage):
    """Writes and reads with Python's sqlite3 and SQLite's default settings: pages of 4 KiB, every commit synced."""

    format = "sqlite"
    engine = "sqlite3"
    title = "SQLite"
    distributions = ("numpy",)
    native = Native.IMAGES
    suffix = ".sqlite"
    settings: ClassVar = {"arrays": arrays.ARRAYS}
    beside: ClassVar = ({"arrays": "views"},)
    maturity = Maturity(
        Stage.ESTABLISHED, "a published format, readable since 2004 and pledged until 2050; in use everywhere"
    )
    capabilities = frozenset({Can.PROJECTION, Can.APPEND, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE})
    offers = Offers(take=Reach.ROWS, batches=True)
    syncs_on_save = True

    @property
    def calls(self) -> Calls:
        """Return code with which users can write and read the same table, row by row."""
        imports = ("import sqlite3", "from contextlib import closing", "import numpy as np")
        return Calls(imports, _SAVE, _READ.replace("{copy}", arrays.copy_of(self)))

    def load_library(self) -> None:
        """Import sqlite3."""
        import sqlite3

        import numpy

        self._sqlite3 = sqlite3
        self._numpy = numpy

    def save(self, images: Images, location: Path) -> None:
        """Write all images to one file in one transaction. Until the commit, a journal file is next to the file."""
        rows = (
            (*arrays.numbers_of(array.shape), label, array.tobytes())
            for array, label in zip(images.arrays, images.labels, strict=True)
        )
        with closing(self._sqlite3.connect(location, isolation_level=None)) as connection:
            connection.execute("BEGIN")
            connection.execute(_CREATE)
            connection.executemany(_INSERT, rows)
            connection.execute("COMMIT")

    def read(self, location: Path) -> Images:
        """Read all images. Pixels are copied from the bytes objects that sqlite3 returns.

        Raises AdapterError for a file that is missing, damaged, or has no table of images.
        """
        with closing(self._open(location)) as connection:
            try:
                pieces = self._pieces(connection.execute(_SELECT))
                if self.values["arrays"] == "owned":
                    return arrays.copied(pieces, location)
                return arrays.gathered(pieces, location.stat().st_size, location)
            except (self._sqlite3.Error, TypeError) as error:
                raise AdapterError(f"{location} cannot be read as a table of images ({error}).") from error

    def open(self, location: Path) -> ImageHandle:
        """Connect to the file. A requested image is read by one query. (SQLite's row ids start at 1.)"""
        connection = self._open(location)
        try:
            count = connection.execute("SELECT max(rowid) FROM images").fetchone()[0] or 0
        except self._sqlite3.Error as error:
            connection.close()
            raise AdapterError(f"{location} cannot be read as a table of images ({error}).") from error

        def take(numbers: np.ndarray) -> Images:
            asked = arrays.checked(numbers, count)
            rows = (connection.execute(_SELECT_ONE, (number + 1,)).fetchone() for number in asked)
            return arrays.copied(self._pieces(rows), location)

        def batches(batch: int) -> Iterator[Images]:
            return arrays.in_batches(self._pieces(connection.execute(_SELECT)), batch, location)

        return ImageHandle(take=take, batches=batches, close=connection.close)

    def _pieces(self, rows: Iterator[tuple[int, int, int, int, bytes]]) -> Iterator[arrays.Piece]:
        for group in _grouped(rows):
            height, width, channels, labels, pixels = zip(*group, strict=True)
            shapes = self._numpy.array((height, width, channels), self._numpy.int32).T
            yield arrays.Piece(shapes, list(labels), self._numpy.frombuffer(b"".join(pixels), self._numpy.uint8))

    def _open(self, location: Path) -> sqlite3.Connection:
        # Read-only, because SQLite would otherwise create an empty database for a missing file.
        if not location.is_file():
            raise AdapterError(f"{location} does not exist.")
        return self._sqlite3.connect(f"{location.absolute().as_uri()}?mode=ro", uri=True)

    def stored(self, location: Path) -> Stored:
        """Return the page size and SQLite's version. There is no codec."""
        with closing(self._open(location)) as connection:
            (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
        return Stored(details={"page bytes": str(page_bytes), "SQLite": self._sqlite3.sqlite_version})


def _grouped(rows: Iterator[tuple[int, int, int, int, bytes]]) -> Iterator[list[tuple[int, int, int, int, bytes]]]:
    """Yield consecutive rows in groups with about GROUP_BYTES bytes of pixels. A group has at least one row."""
    group: list[tuple[int, int, int, int, bytes]] = []
    filled = 0
    for row in rows:
        group.append(row)
        filled += len(row[4])
        if filled >= arrays.GROUP_BYTES:
            yield group
            group, filled = [], 0
    if group:
        yield group


ENGINES = (SqliteImages,)
