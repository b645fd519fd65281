"""A table of which each trait is what its name says: distinct values, length of runs, missing values, width, size.

One trait is varied and all others stay, so that what changes in a figure has one cause. Numbers and texts alternate;
each column has a stream of its own, so no two are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from data_generator.dataset import BATCH_ROWS, Dataset, batch_sizes
from data_generator.errors import DataError
from data_generator.generated import columns, streams

VERSION = 1
DEFAULT_ROWS = 1_000_000
"""The catalogue's number of rows, in place of which --rows may say another."""
SURE_RUNS = 0.9
"""Runs vary in length: a table surely holds this share of the runs that it has on average."""
BATCH_BYTES = 1 << 30
"""Most bytes of a batch's texts, well under the 2 GiB that Arrow's offsets reach."""
_LETTERS = 26
_NUMBER_BITS, _NUMBER_FACTOR = 40, 0x9E3779B97F4A7C15
"""Numbers lie anywhere below 2**40: a codec for small ranges is of no use to them, one for repeated values is."""


@dataclass(frozen=True)
class Traits:
    """What the table is like. `nulls` is a share, `width_bytes` that of each text."""

    distinct: int
    run_length: int
    nulls: float
    width_bytes: int
    columns: int


def build(name: str, rows: int | None, parameters: Mapping[str, str]) -> Dataset:
    """The table that the parameters of `traits` (all of them, as text) describe; `rows`, where it is given, stands for
    the parameter. Raises DataError where the traits cannot be had together."""
    spelled_rows = int(parameters["rows"])
    if rows is not None and spelled_rows not in (rows, DEFAULT_ROWS):
        raise DataError(f"{name}: is to have {rows:,} rows besides; say --rows or rows=, and not both")
    count = rows or spelled_rows
    traits = Traits(
        distinct=int(parameters["distinct"]),
        run_length=int(parameters["run_length"]),
        nulls=float(parameters["nulls"]),
        width_bytes=int(parameters["width"]),
        columns=int(parameters["columns"]),
    )
    text_bytes = max((traits.columns // 2) * traits.width_bytes, 1)
    most_rows = min(max(BATCH_BYTES // text_bytes, 1), BATCH_ROWS)
    # What is so of the first batch is so of the table: the values of a column are the same in each of them.
    _check(name, min(count, most_rows), traits)
    labels = [f"{('number', 'text')[place % 2]}_{place // 2 + 1}" for place in range(traits.columns)]
    kinds = {"number": pa.int64(), "text": pa.string()}
    schema = pa.schema([(label, kinds[label.partition("_")[0]]) for label in labels])

    def batches() -> Iterator[pa.RecordBatch]:
        for number, size in enumerate(batch_sizes(count, most_rows)):
            # The table's own name is no part of the path: but for the trait that is varied, tables are the same.
            arrays = [_column(label, size, traits, ("traits", VERSION, label, number)) for label in labels]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return Dataset(name, count, schema, VERSION, batches)


def _check(name: str, rows: int, traits: Traits) -> None:
    runs = rows if traits.run_length == 1 else int(SURE_RUNS * rows / traits.run_length)
    if traits.distinct > max(runs, 1):
        raise DataError(
            f"{name}: {rows:,} rows in runs of {traits.run_length:,} hold at most {max(runs, 1):,} distinct values, "
            f"not {traits.distinct:,}\n  ask for fewer (distinct=), for shorter runs (run_length=), or for more rows"
        )
    needed = _letters_for(traits.distinct)
    if traits.width_bytes < needed and traits.columns > 1:
        raise DataError(
            f"{name}: texts of {traits.width_bytes} bytes cannot be {traits.distinct:,} different ones\n"
            f"  ask for width={needed} or more"
        )


def _letters_for(distinct: int) -> int:
    letters = 1
    while _LETTERS**letters < distinct:
        letters += 1
    return letters


def _column(label: str, rows: int, traits: Traits, path: tuple[object, ...]) -> pa.Array:
    valid = None
    if traits.nulls:
        valid = streams.unit_floats(streams.raw_words(rows, *path, "nulls")) >= traits.nulls
    places = _places(rows, traits, path)
    if label.startswith("number"):
        return columns.numbers(_numbers(traits.distinct, path[:-1])[places], valid)
    return _texts(places, traits, valid, path[:-1])


def _places(rows: int, traits: Traits, path: tuple[object, ...]) -> NDArray[np.int64]:
    """Which of the distinct values stands in each row: all of them equally often, and never one beside itself but in
    its run."""
    if traits.run_length == 1:
        return _different(rows, traits.distinct, path)
    lengths = streams.integers(
        streams.raw_words(2 * rows // traits.run_length + 2, *path, "runs"), 1, 2 * traits.run_length - 1
    )
    ends = np.cumsum(lengths)
    # Twice as many runs as there are on average: that they do not suffice will not happen.
    runs = int(np.searchsorted(ends, rows)) + 1
    return np.repeat(_different(runs, traits.distinct, path), lengths[:runs])[:rows]


def _different(count: int, distinct: int, path: tuple[object, ...]) -> NDArray[np.int64]:
    """Numbers below `distinct` (int64), each in every `distinct` of them, in another random order each time, and no two
    equal ones beside each other where there are two."""
    if distinct == 2:
        return np.arange(count, dtype=np.int64) % distinct
    cycles = -(-count // distinct)
    bits = np.uint64((distinct - 1).bit_length())
    low = (np.uint64(1) << bits) - np.uint64(1)
    # As streams.permutation, of many at once: the place in the lowest bits makes all keys different.
    keys = streams.raw_words(cycles * distinct, *path, "order").reshape(cycles, distinct)
    keys = (keys & ~low) | np.arange(distinct, dtype=np.uint64)
    keys.sort(axis=1)
    order = (keys & low).view(np.int64)
    repeated = np.flatnonzero(order[1:, 0] == order[:-1, -1]) + 1
    order[repeated, :2] = order[repeated, 1::-1]
    return order.reshape(-1)[:count]


def _numbers(distinct: int, path: tuple[object, ...]) -> NDArray[np.int64]:
    """So many different numbers: an odd factor reaches each number below a power of two once."""
    (start,) = streams.raw_words(1, *path, "numbers")
    below = np.uint64((1 << _NUMBER_BITS) - 1)
    scattered = (np.arange(distinct, dtype=np.uint64) * np.uint64(_NUMBER_FACTOR) + start) & below
    return scattered.view(np.int64)


def _texts(
    places: NDArray[np.int64], traits: Traits, valid: columns.Valid | None, path: tuple[object, ...]
) -> pa.Array:
    """Texts of small letters: those in front tell the values apart, and all others are random."""
    width, distinct = traits.width_bytes, traits.distinct
    drawn = np.frombuffer(streams.letters(distinct * width, *path, "letters"), np.uint8).reshape(distinct, width)
    values = drawn.copy()
    # In a random order, so that near values are no neighbours.
    left = np.argsort(_numbers(distinct, path), kind="stable")
    for letter in range(_letters_for(distinct)):
        values[:, letter] = ord("a") + left % _LETTERS
        left = left // _LETTERS
    lengths = np.full(len(places), width, dtype=np.int64)
    if valid is not None:
        lengths *= valid
        places = places[valid]
    return columns.strings(values[places].tobytes(), lengths, valid)
