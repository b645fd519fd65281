"""A table with chosen traits: number of distinct values, length of runs, missing values, size of texts.

If one trait is varied, the other traits are unchanged, so a difference between measurements has one cause. Columns of
numbers alternate with columns of texts. Each column has a separate random stream, so no two columns are equal.
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
"""Default number of rows in the catalogue. `rows` replaces it."""
SURE_RUNS = 0.9
"""Runs of equal values have random lengths, so the number of runs varies. A column has at least this share of the
expected number of runs."""
BATCH_BYTES = 1 << 30
"""Maximum number of bytes of the texts in a batch. It is well below 2 GiB, the limit of Arrow's offsets."""
_LETTERS = 26
_NUMBER_BITS, _NUMBER_FACTOR = 40, 0x9E3779B97F4A7C15
"""Numbers are spread over 0 to 2**40 - 1, by multiplication with this factor. So they take
up no less space in encodings that need a small range of numbers. Encodings that need repeated values still work."""


@dataclass(frozen=True)
class Traits:
    """Traits of the table. `nulls` is the share of missing values, and `width_bytes` is the size of each text."""

    distinct: int
    run_length: int
    nulls: float
    width_bytes: int
    columns: int


def build(name: str, rows: int | None, parameters: Mapping[str, str]) -> Dataset:
    """Return the table for the parameters of `traits`, which are texts.

    The argument `rows` replaces the parameter `rows`. Raises DataError if the traits cannot be combined, e.g. more
    distinct values than runs, or two different numbers of rows.
    """
    spelled_rows = int(parameters["rows"])
    if rows is not None and spelled_rows not in (rows, DEFAULT_ROWS):
        raise DataError(
            f"{name} sets rows={spelled_rows}, but `rows` is {rows}.",
            "Omit either `rows` or rows= in the name.",
            parameter="rows",
            given=rows,
        )
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
    # Check only the first batch, because every batch has the same distinct values in a column.
    _check(name, min(count, most_rows), traits)
    labels = [f"{('number', 'text')[place % 2]}_{place // 2 + 1}" for place in range(traits.columns)]
    kinds = {"number": pa.int64(), "text": pa.string()}
    schema = pa.schema([(label, kinds[label.partition("_")[0]]) for label in labels])

    def batches() -> Iterator[pa.RecordBatch]:
        for number, size in enumerate(batch_sizes(count, most_rows)):
            # The path leaves out the table's name, so tables differ only in the varied trait.
            arrays = [_column(label, size, traits, ("traits", VERSION, label, number)) for label in labels]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return Dataset(name, count, schema, VERSION, batches)


def _check(name: str, rows: int, traits: Traits) -> None:
    runs = rows if traits.run_length == 1 else int(SURE_RUNS * rows / traits.run_length)
    if traits.distinct > max(runs, 1):
        in_runs = "" if traits.run_length == 1 else f", in random runs of about {traits.run_length:,} rows,"
        raise DataError(
            f"{name}: a batch of {rows:,} rows{in_runs} has at most {max(runs, 1):,} distinct values "
            f"(got distinct={traits.distinct:,}).",
            "Request fewer distinct values (distinct=), shorter runs (run_length=), or, for one batch, more rows.",
        )
    needed = _letters_for(traits.distinct)
    if traits.width_bytes < needed and traits.columns > 1:
        raise DataError(
            f"{name}: {traits.distinct:,} different texts need at least {needed} bytes each "
            f"(got width={traits.width_bytes}).",
            f"Use width={needed} or more.",
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
    """Return, for each row, the index of its value among the distinct values.

    All distinct values are equally frequent. Consecutive runs have different values.
    """
    if traits.run_length == 1:
        return _different(rows, traits.distinct, path)
    lengths = streams.integers(
        streams.raw_words(2 * rows // traits.run_length + 2, *path, "runs"), 1, 2 * traits.run_length - 1
    )
    ends = np.cumsum(lengths)
    # Twice the average number of runs, which is certainly enough.
    runs = int(np.searchsorted(ends, rows)) + 1
    return np.repeat(_different(runs, traits.distinct, path), lengths[:runs])[:rows]


def _different(count: int, distinct: int, path: tuple[object, ...]) -> NDArray[np.int64]:
    """Return `count` numbers (int64) below `distinct`, in cycles of `distinct` numbers.

    Each cycle contains every number once, in a new random order. If `distinct` is at least 2, neighbours differ.
    """
    if distinct == 2:
        return np.arange(count, dtype=np.int64) % distinct
    cycles = -(-count // distinct)
    bits = np.uint64((distinct - 1).bit_length())
    low = (np.uint64(1) << bits) - np.uint64(1)
    # As in streams.permutation, but for many permutations at once. The index in the lowest bits makes all keys
    # different.
    keys = streams.raw_words(cycles * distinct, *path, "order").reshape(cycles, distinct)
    keys = (keys & ~low) | np.arange(distinct, dtype=np.uint64)
    keys.sort(axis=1)
    order = (keys & low).view(np.int64)
    repeated = np.flatnonzero(order[1:, 0] == order[:-1, -1]) + 1
    order[repeated, :2] = order[repeated, 1::-1]
    return order.reshape(-1)[:count]


def _numbers(distinct: int, path: tuple[object, ...]) -> NDArray[np.int64]:
    """Return `distinct` different numbers.

    The numbers 0, 1, ... are multiplied by an odd factor, modulo a power of two. This maps different numbers to
    different numbers.
    """
    (start,) = streams.raw_words(1, *path, "numbers")
    below = np.uint64((1 << _NUMBER_BITS) - 1)
    scattered = (np.arange(distinct, dtype=np.uint64) * np.uint64(_NUMBER_FACTOR) + start) & below
    return scattered.view(np.int64)


def _texts(
    places: NDArray[np.int64], traits: Traits, valid: columns.Valid | None, path: tuple[object, ...]
) -> pa.Array:
    """Return lower-case texts. The first letters identify the distinct value, and all other letters are random."""
    width, distinct = traits.width_bytes, traits.distinct
    drawn = np.frombuffer(streams.letters(distinct * width, *path, "letters"), np.uint8).reshape(distinct, width)
    values = drawn.copy()
    # The first letters are assigned in random order, so that similar texts are not neighbours.
    left = np.argsort(_numbers(distinct, path), kind="stable")
    for letter in range(_letters_for(distinct)):
        values[:, letter] = ord("a") + left % _LETTERS
        left = left // _LETTERS
    lengths = np.full(len(places), width, dtype=np.int64)
    if valid is not None:
        lengths *= valid
        places = places[valid]
    return columns.strings(values[places].tobytes(), lengths, valid)
