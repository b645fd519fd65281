"""Lance: a folder with data files, a manifest and a transaction file. The table has one row per image."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from adapters import lance_pages
from adapters.contract import Calls, Can, Images, ImageStorage, Maturity, Native, Stage, Stored
from adapters.offers import ImageHandle, Offers, Reach
from image_storages import arrays, arrow_rows

if TYPE_CHECKING:
    import numpy as np


_SAVE = f"""\
{arrow_rows.TABLE_LINES}
lance.write_dataset(table, {{path}})"""
_READ = f"""\
table = lance.dataset({{path}}).to_table()
{arrow_rows.ARRAYS_LINES}"""


class LanceImages(ImageStorage):
    """Writes and reads with pylance, in batches of about 16 MiB.

    This storage has no setting for Lance's codecs, because the writer ignores them for values of fixed size.
    """

    format = "image-lance"
    engine = "pylance"
    title = "Lance"
    distributions = ("pylance",)
    native = Native.IMAGES
    suffix = ".lance"
    settings: ClassVar = {"arrays": arrays.ARRAYS}
    beside: ClassVar = ({"arrays": "views"},)
    maturity = Maturity(
        Stage.YOUNG,
        "one implementation, in Rust, which other languages bind; versions of its files still follow each other",
    )
    capabilities = frozenset({Can.PROJECTION, Can.APPEND, Can.TYPES, Can.OTHER_LANGUAGES, Can.NO_PICKLE})
    offers = Offers(take=Reach.ROWS, batches=True)

    @property
    def calls(self) -> Calls:
        """Return code with which users can write and read the same columns. The code makes one table of all images."""
        imports = ("import lance", "import numpy as np", "import pyarrow as pa")
        return Calls(imports, _SAVE, _READ.replace("{copy}", arrays.copy_of(self)))

    def load_library(self) -> None:
        """Import lance."""
        import lance
        import lance.file
        import numpy  # noqa: F401  # arrow_rows needs it
        import pyarrow

        self._lance = lance
        self._arrow = pyarrow

    def save(self, images: Images, location: Path) -> None:
        """Write the images as a Lance data set, which has one version."""
        rows = self._arrow.RecordBatchReader.from_batches(*arrow_rows.batches_of(images))
        self._lance.write_dataset(rows, str(location))

    def read(self, location: Path) -> Images:
        """Read all images of the last version, in stored order."""
        # Limit batches by bytes, because the default of 8,192 rows may take gigabytes for large images.
        batches = self._lance.dataset(str(location)).to_batches(batch_size_bytes=arrow_rows.BATCH_BYTES)
        return arrow_rows.images_of(batches, self.values["arrays"] == "owned", location)

    def open(self, location: Path) -> ImageHandle:
        """Open the last version of the data set. Lance keeps no file open, so there is nothing to close."""
        dataset = self._lance.dataset(str(location))
        rows = dataset.count_rows()

        def take(numbers: np.ndarray) -> Images:
            asked = arrays.checked(numbers, rows)
            # Lance returns no columns for an empty list of numbers.
            found = dataset.take(asked).to_batches() if asked else []
            return arrow_rows.images_of(found, True, location)

        def batches(count: int) -> Iterator[Images]:
            return arrow_rows.batches_of_images(dataset.to_batches(batch_size=count), count, location)

        return ImageHandle(take=take, batches=batches)

    def stored(self, location: Path) -> Stored:
        """Return codec and encodings of all pages."""
        return lance_pages.stored_of(location, self._lance.dataset(str(location)), self._lance.file.LanceFileReader)


ENGINES = (LanceImages,)
