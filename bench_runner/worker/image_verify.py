"""Compare images that were read with the stored images: number, order, shapes, pixels, labels, and whether arrays own
their memory.

The images must be equal. If a storage format declares a loss of quality, the peak signal-to-noise ratio must be at
least the declared value instead. The stored images are read from the cached data set batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from adapters.contract import Images
from bench_runner.operations.targets import arrays_of
from bench_runner.worker.verify import Mismatch

EACH_LOWER_DB = 10.0
"""The signal-to-noise ratio of a single image may be this many decibels lower than the bound for all images together,
because some images are harder to compress. The ratio of a wrong or damaged image is far lower."""


@dataclass
class _Error:
    """The sum of the squared differences between pixels that were read and stored, and the number of pixels."""

    squared: int = 0
    pixels: int = 0

    @property
    def psnr_db(self) -> float:
        """Peak signal-to-noise ratio, 10 log10(255² / mean squared error). The ratio is infinite if no pixel
        differs."""
        return _psnr_db(self.squared, self.pixels)


def compare(
    dataset: Path,
    rows: int,
    result: object,
    *,
    owned: bool,
    least_psnr_db: float | None,
    numbers: np.ndarray | None = None,
) -> tuple[str, ...]:
    """Return a description of the declared loss if it occurred, otherwise an empty tuple. Raises Mismatch for any other
    difference.

    `dataset` is the cached Arrow file, whose first `rows` images were stored. With `owned` every array must own its
    memory and be writable. `numbers` are the positions of the expected images, in this order and without repetition.
    The default is all images in stored order.
    """
    if not isinstance(result, Images):
        raise Mismatch(f"came back as {type(result).__name__}, not as Images")
    arrays, labels = result.arrays, result.labels
    wanted = np.arange(rows) if numbers is None else numbers
    if len(arrays) != len(wanted) or len(labels) != len(wanted):
        raise Mismatch(f"images: stored {len(wanted):,}, came back {len(arrays):,} with {len(labels):,} labels")
    if owned:
        _demand_ownership(arrays)
    error = _Error()
    start = 0
    # Go through the stored images batch by batch, even if the images were read in another order.
    places = np.argsort(wanted)
    in_order = wanted[places]
    for batch in _batches(dataset, rows):
        end = start + batch.num_rows
        first, last = np.searchsorted(in_order, (start, end)).tolist()
        stored, stored_labels = list(arrays_of(batch)), batch.column("label").to_pylist()
        here = list(zip(in_order[first:last].tolist(), places[first:last].tolist(), strict=True))
        for number, place in here:
            _compare_label(number, stored_labels[number - start], labels[place])
        for number, place in here:
            _compare_pixels(number, stored[number - start], arrays[place], least_psnr_db, error)
        start = end
    if not error.squared:
        return ()
    if least_psnr_db is None or error.psnr_db < least_psnr_db:
        raise Mismatch(
            f"the PSNR of all images is {error.psnr_db:.1f} dB, but the variant declares at least {least_psnr_db} dB"
        )
    return (f"pixels change (at least {least_psnr_db:g} dB over all images)",)


def _batches(dataset: Path, rows: int) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(dataset)) as mapping:
        stored = pa.ipc.open_file(mapping)
        for number in range(stored.num_record_batches):
            if rows <= 0:
                return
            batch = stored.get_batch(number).slice(0, rows)
            rows -= batch.num_rows
            yield batch


def _demand_ownership(arrays: list[np.ndarray]) -> None:
    for place, array in enumerate(arrays):
        if not (array.flags.owndata and array.flags.writeable and array.flags.c_contiguous):
            raise Mismatch(f"image {place}: must own its memory, be writable and C-contiguous, because arrays=owned")


def _compare_label(place: int, wanted: int, label: object) -> None:
    if type(label) is not int or label != wanted:
        raise Mismatch(f"label {place}: stored {wanted}, came back {label!r} ({type(label).__name__})")


def _compare_pixels(
    place: int, wanted: np.ndarray, array: np.ndarray, least_psnr_db: float | None, error: _Error
) -> None:
    if array.dtype != np.uint8 or array.shape != wanted.shape:
        came = f"{array.shape} of {array.dtype}"
        raise Mismatch(f"image {place}: stored {wanted.shape} of uint8, came back {came}")
    error.pixels += array.size
    if np.array_equal(array, wanted):
        return
    squared = int(np.square(array.astype(np.int32) - wanted).sum())
    error.squared += squared
    lowest = None if least_psnr_db is None else least_psnr_db - EACH_LOWER_DB
    if lowest is None or _psnr_db(squared, array.size) < lowest:
        raise Mismatch(_describe(place, wanted, array, squared, lowest))


def _describe(place: int, wanted: np.ndarray, array: np.ndarray, squared: int, lowest: float | None) -> str:
    where = tuple(int(index) for index in np.argwhere(array != wanted)[0])
    bound = "" if lowest is None else f"; {_psnr_db(squared, array.size):.1f} dB, declared: at least {lowest:.1f}"
    return f"image {place}: pixel {where} stored {wanted[where]}, came back {array[where]}{bound}"


def _psnr_db(squared: int, pixels: int) -> float:
    return float("inf") if not squared else float(10 * np.log10(255.0**2 * pixels / squared))
