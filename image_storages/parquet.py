"""Parquet: one file with one row per image. The column of pixels has no dictionary and no statistics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from adapters import parquet_codecs
from adapters.contract import Calls, Can, Images, ImageStorage, Maturity, Native, Stage, Stored
from adapters.offers import ImageHandle, Offers, Reach
from image_storages import arrays, arrow_rows

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

_PAGE_BYTES = 1 << 20
"""Parquet's default page size in bytes. The writer checks the size of a page only after every `write_batch_size` rows,
so `write_batch_size` is chosen by the size of the largest image."""


_SAVE = f"""\
{arrow_rows.TABLE_LINES}
largest, some = max(array.nbytes for array in arrays), {{"use_dictionary": names[1:], "write_statistics": names[1:]}}
sizes = {{"row_group_size": max(1, 2**24 // largest), "write_batch_size": max(1, 2**20 // largest)}}
pq.write_table(table, {{path}}, compression={{codec}}, compression_level={{level}}, **some, **sizes)"""
_READ = f"""\
table = pq.read_table({{path}})
{arrow_rows.ARRAYS_LINES}"""


class ParquetImages(ImageStorage):
    """Writes and reads with pyarrow.parquet, in row groups of about 16 MiB."""

    format = "image-parquet"
    engine = "pyarrow"
    title = "Parquet"
    distributions = ("pyarrow",)
    native = Native.IMAGES
    suffix = ".parquet"
    settings: ClassVar = {"codec": parquet_codecs.CODEC, "level": parquet_codecs.LEVEL, "arrays": arrays.ARRAYS}
    levels: ClassVar = parquet_codecs.LEVELS
    plain: ClassVar = {"codec": "none"}
    library_default: ClassVar = {"codec": "snappy"}
    equal: ClassVar = {"codec": "zstd", "level": "1"}
    beside: ClassVar = ({"codec": "none", "arrays": "views"},)
    maturity = Maturity(
        Stage.ESTABLISHED, "bytes in Parquet, an Apache specification since 2013 with many implementations"
    )
    capabilities = frozenset({Can.PROJECTION, Can.TYPES, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE})
    offers = Offers(take=Reach.GROUPS, batches=True)

    reads_unseen = True
    """The file is memory-mapped (see `read`). The measuring code counts read calls, so it does not see these reads."""

    @property
    def calls(self) -> Calls:
        """Return code with which users can write and read the same columns, pages and row groups. The code makes one
        table of all images."""
        save = _SAVE.replace("{codec}", repr(self.values["codec"])).replace("{level}", str(self.values["level"]))
        imports = ("import numpy as np", "import pyarrow as pa", "import pyarrow.parquet as pq")
        return Calls(imports, save, _READ.replace("{copy}", arrays.copy_of(self)))

    def load_library(self) -> None:
        """Import pyarrow.parquet, and the module that selects rows."""
        import numpy  # noqa: F401  # arrow_rows needs it
        import pyarrow.compute  # selects rows
        import pyarrow.parquet

        self._parquet = pyarrow.parquet

    def save(self, images: Images, location: Path) -> None:
        """Write all images to one file.

        The column of pixels has neither dictionary nor statistics. The writer would abandon the dictionary after the
        first MiB of each row group. In the statistics, minimum and maximum would be whole images, stored in the footer.
        """
        schema, batches = arrow_rows.batches_of(images)
        largest_bytes = max((array.nbytes for array in images.arrays), default=1)
        with self._parquet.ParquetWriter(
            location,
            schema,
            compression=self.values["codec"],
            compression_level=self.values["level"],
            use_dictionary=list(arrow_rows.NUMBERS),
            write_statistics=list(arrow_rows.NUMBERS),
            write_batch_size=max(1, _PAGE_BYTES // largest_bytes),
        ) as writer:
            for batch in batches:
                writer.write_batch(batch)

    def read(self, location: Path) -> Images:
        """Read all images, one row group after the other, so that little memory is used in addition to the result.

        The file is memory-mapped, which saves a copy of the encoded pages. Decoded pages are always in new memory.
        """
        with self._parquet.ParquetFile(location, memory_map=True, pre_buffer=False) as file:
            return arrow_rows.images_of(self._batches(file), self.values["arrays"] == "owned", location)

    def open(self, location: Path) -> ImageHandle:
        """Open the file, and read its footer. To read single images, the row groups that contain them are read."""
        import numpy as np

        file = self._parquet.ParquetFile(location, memory_map=True, pre_buffer=False)
        rows = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        starts = np.cumsum([0, *rows])

        def take(numbers: np.ndarray) -> Images:
            if not arrays.checked(numbers, file.metadata.num_rows):
                return Images([], [])
            groups, places = np.unique(np.searchsorted(starts, numbers, side="right") - 1, return_inverse=True)
            table = file.read_row_groups(groups.tolist(), use_threads=self.threads is None)
            before = np.concatenate([[0], np.cumsum(np.diff(starts)[groups])[:-1]])
            # Avoid pa.array, which loads pandas to check for a Series.
            chosen = before[places] + numbers - starts[groups[places]]
            return arrow_rows.images_of(arrow_rows.rows_of(table, chosen), True, location)

        def batches(count: int) -> Iterator[Images]:
            return arrow_rows.batches_of_images(self._batches(file), count, location)

        return ImageHandle(take=take, batches=batches, close=file.close)

    def _batches(self, file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
        for group in range(file.num_row_groups):
            yield from file.read_row_group(group, use_threads=self.threads is None).to_batches()

    def stored(self, location: Path) -> Stored:
        """Return codec and encodings of all column chunks from the footer."""
        return parquet_codecs.stored_of(self._parquet.read_metadata(location))


ENGINES = (ParquetImages,)
