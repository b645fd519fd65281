"""CIFAR-10, ImageNet-100 and the user's own images: read once, checked, and kept in the cache of data sets.

They are read when the data set is resolved, because their number and their largest side have to be known by then; what
was found is noted, so that the next time it is known at once for an input that has not changed. Nothing is ever taken
in the place of data that are not there. This module opens no file of the user's itself.
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
    """A data set that everyone knows: where `datasets` keeps it, and what its images are like."""

    title: str
    folders: tuple[str, ...]
    """Names in the cache of `datasets`, made of those on the hub: 'uoft-cs/cifar10' is 'uoft-cs___cifar10'."""
    stand_in: str
    classes: int
    shape: tuple[int, int, int] | None = None
    """Height, width and channels of every image, where they are all alike."""

    def check(self, name: str, batch: pa.RecordBatch, first: int) -> None:
        """Raises DataError for images that are not of this data set; `first` is the number of the first one."""
        labels = batch["label"].to_numpy()
        self._check(name, first, (labels < 0) | (labels >= self.classes), f"a label of 0 to {self.classes - 1}", labels)
        if self.shape is not None:
            shapes = np.stack([batch[column].to_numpy() for column in ("height", "width", "channels")], axis=1)
            described = " x ".join(map(str, self.shape))
            self._check(name, first, (shapes != self.shape).any(axis=1), described, shapes)

    def _check(
        self, name: str, first: int, wrong: NDArray[np.bool_], allowed: str, values: NDArray[np.integer]
    ) -> None:
        if wrong.any():
            place = int(np.argmax(wrong))
            raise DataError(
                f"{name}: image {first + place:,} has {values[place].tolist()}, in {self.title} each has {allowed}\n"
                "  this is other data: ask for it as 'images'"
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
    """The images at `source`, or of the cache of `datasets` for a data set that it knows; the first `rows` of them.

    Reads them all where that has not been done before; `on_rows` hears how many are read. Raises DataError when they
    are not there, or one of them is refused.
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
    """Where the images of one data set come from, and how many of them are wanted."""

    name: str
    rows: int | None
    path: Path | None

    def look(self) -> UserInput:
        """What is there now. Raises DataError when nothing is."""
        if self.path is not None:
            return image_input.find(self.path)
        known = KNOWN.get(self.name)
        if known is None:
            raise DataError(f"{self.name}: needs --data PATH\n  {image_input.TAKEN}")
        found = image_input.find_cached(known.folders)
        if found is None:
            place = printable(image_input.datasets_cache())
            raise DataError(
                f"{self.name}: {known.title} is neither in the cache of 'datasets' ({place}) nor named by --data PATH\n"
                f"  take the stand-in {known.stand_in!r}, or name by --data PATH a folder saved by 'datasets', Parquet "
                "files, or folders of images by class"
            )
        return found

    def about(self) -> dict[str, str]:
        """What tells these images from others, as Dataset.source has it."""
        limit = {} if self.rows is None else {"first": str(self.rows)}
        return {**self.look().about(), **limit}

    def imported(self, about: Mapping[str, str], folder: Path, on_rows: Callable[[int], None] | None) -> dict[str, Any]:
        """Read the images into the cache, and tell how many there are, the largest side, and remarks."""
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
        """The images read again: the cache has lost them."""
        with image_worker.started(self.look(), self.rows) as answers:
            yield from self._checked(answers, about)

    def _checked(self, answers: image_worker.Import, about: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
        """The batches, as long as they are of the data set; at the end, if the input is still as it was."""
        known = KNOWN.get(self.name)
        count = 0
        for batch in answers.batches():
            if known is not None:
                known.check(self.name, batch, count)
            count += batch.num_rows
            yield batch
        if self.about() != about:
            raise DataError(f"{self.name}: {printable(about['path'])} was changed while it was read\n  try again")
