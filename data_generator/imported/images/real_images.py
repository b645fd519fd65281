"""Read CIFAR-10, ImageNet-100 or the user's own images, check them, and store them in the cache of data sets.

A data set needs the number of images and their largest side. Therefore `data_generator.catalogue.resolve` already reads
the images. Both numbers are stored in the cache, so that unchanged images are not read again. Missing images are never
replaced by other data. This module itself opens no file of the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from data_generator import cache, images
from data_generator.dataset import Dataset
from data_generator.errors import DataError
from data_generator.imported.images import image_input, image_worker
from data_generator.imported.refusal import printable
from data_generator.imported.user_files import UserInput

VERSION = 2


@dataclass(frozen=True)
class Known:
    """A well-known data set: where the `datasets` library stores it, and the properties of its images."""

    title: str
    folders: tuple[str, ...]
    """Folder names in the cache of the `datasets` library. A name comes from the name on the hub, e.g.
    'uoft-cs___cifar10' from 'uoft-cs/cifar10'."""
    stand_in: str
    classes: int
    shape: tuple[int, int, int] | None = None
    """Height, width and channels of every image; None if the images differ."""

    def check(self, name: str, batch: pa.RecordBatch, first: int) -> None:
        """Raise DataError if images cannot be from this data set. `first` is the number of the batch's first image."""
        labels = batch["label"].to_numpy()
        wrong = (labels < 0) | (labels >= self.classes)
        self._check(name, first, wrong, "label", f"labels from 0 to {self.classes - 1}", labels)
        if self.shape is not None:
            shapes = np.stack([batch[column].to_numpy() for column in ("height", "width", "channels")], axis=1)
            described = f"the shape {list(self.shape)}"
            self._check(name, first, (shapes != self.shape).any(axis=1), "shape", described, shapes)

    def _check(
        self, name: str, first: int, wrong: NDArray[np.bool_], what: str, allowed: str, values: NDArray[np.integer]
    ) -> None:
        if wrong.any():
            place = int(np.argmax(wrong))
            raise DataError(
                f"{name}: image {first + place:,} has the {what} {values[place].tolist()}, but {self.title} has only "
                f"{allowed}.",
                f"Use the data set 'images' for images that are not from {self.title}.",
            )


KNOWN: Mapping[str, Known] = {
    "cifar10": Known("CIFAR-10", ("uoft-cs___cifar10", "cifar10"), "cifar-like", 10, (32, 32, 3)),
    "imagenet100": Known("ImageNet-100", ("clane9___imagenet-100",), "imagenet-like", 100),
}


def build(
    name: str,
    rows: int | None,
    parameters: Mapping[str, str],
    *,
    source: Path | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> Dataset:
    """Return the first `rows` images at `source`, or of a well-known data set in the cache of the `datasets` library.

    These images are read unless they are in the cache of this package. `on_rows` is called with the number of images
    read so far. Raises DataError if the images are missing or one image is refused.
    """
    source_of = _Source(name, rows, source)
    about = source_of.about()
    folder = cache.default_folder()
    facts = cache.read_facts(name, VERSION, about, folder)
    if not {"rows", "largest_side", "remarks"} <= facts.keys():
        facts = source_of.imported(about, folder, on_rows)
        cache.keep_facts(name, VERSION, about, folder, facts)
    return Dataset(
        name,
        facts["rows"],
        images.SCHEMA,
        VERSION,
        lambda: source_of.batches(about),
        source=about,
        largest_side=facts["largest_side"],
        remarks=tuple(facts["remarks"]),
    )


@dataclass(frozen=True)
class _Source:
    name: str
    rows: int | None
    path: Path | None

    def look(self) -> UserInput:
        if self.path is not None:
            return image_input.find(self.path)
        known = KNOWN.get(self.name)
        if known is None:
            raise DataError(f"The data set {self.name} needs `data`.", image_input.TAKEN, parameter="data")
        found = image_input.find_cached(known.folders)
        if found is None:
            place = printable(image_input.datasets_cache())
            raise DataError(
                f"{self.name}: {known.title} is not in the cache of the library 'datasets' ({place}), and `data` "
                "is not given.",
                f"Use the generated data set {known.stand_in!r}, or set `data` to a Parquet file, or to a folder: with "
                "Parquet files, with one subfolder of images per class, or saved by the library 'datasets'.",
                parameter="data",
            )
        return found

    def about(self) -> dict[str, str]:
        """Return facts that identify these images, for Dataset.source."""
        limit = {} if self.rows is None else {"first": str(self.rows)}
        return {**self.look().about(), **limit}

    def imported(self, about: Mapping[str, str], folder: Path, on_rows: Callable[[int], None] | None) -> dict[str, Any]:
        """Read the images into the cache, and return their number, largest side, and remarks."""
        with image_worker.started(self.look(), self.rows) as answers:

            def batches() -> Iterator[pa.RecordBatch]:
                return self._checked(answers, about)

            dataset = Dataset(self.name, answers.count, images.SCHEMA, VERSION, batches, source=about)
            stored = cache.prepare(dataset, folder, on_rows=on_rows)
            remarks = list(answers.remarks)
        sides = cache.read_table(stored.path, columns=["height", "width"])
        return {
            "rows": stored.rows,
            "largest_side": max(int(column.to_numpy().max()) for column in sides.columns),
            "remarks": remarks,
        }

    def batches(self, about: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
        """Read the images again and yield them as batches. This is needed if the cached file was removed."""
        with image_worker.started(self.look(), self.rows) as answers:
            yield from self._checked(answers, about)

    def _checked(self, answers: image_worker.Import, about: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
        """Check the batches and yield them. Raises DataError at the end if the files have changed while they were
        read."""
        known = KNOWN.get(self.name)
        count = 0
        for batch in answers.batches():
            if known is not None:
                known.check(self.name, batch, count)
            count += batch.num_rows
            yield batch
        if self.about() != about:
            raise DataError(f"{self.name}: {printable(about['path'])} changed while it was read.", "Try again.")
