"""The synthetic tables of the thesis behind this project: uniform integers and floats in 0 to 100, booleans, strings.

Uniform random data favour some formats and handicap others, unlike real data. The realistic tables, such as `core`,
therefore complement the synthetic tables. Every batch of every column has a separate random stream. Therefore, no two
columns are equal, and the first rows of a long table equal the rows of a short table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from data_generator.dataset import Dataset, batch_sizes
from data_generator.errors import DataError
from data_generator.generated import columns, streams
from data_generator.generated.words import WORDS

VERSION = 1
_TYPES = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "str": pa.string()}


@dataclass(frozen=True)
class Text:
    """Content of string columns. `kind` is 'fixed', 'varying' or 'words'; `length` is the mean number of letters."""

    kind: str = "fixed"
    length: int = 10


def build(name: str, rows: int, parameters: Mapping[str, str]) -> Dataset:
    """Return the table for the parameters of `synthetic`, which are texts. `name` determines the order of the columns.

    Raises DataError if the parameters request no column.
    """
    counts = {kind: int(parameters[kind]) for kind in _TYPES}
    if not any(counts.values()):
        raise DataError(f"{name} has no columns.", "Request at least one, e.g. synthetic[int=2,str=1].")
    text = Text(parameters["strings"], int(parameters["length"]))
    nulls_ratio = float(parameters["nulls"])
    labels = _shuffled([f"{kind}_{number + 1}" for kind in _TYPES for number in range(counts[kind])], name)
    schema = pa.schema([(label, _TYPES[label.partition("_")[0]]) for label in labels])

    def batches() -> Iterator[pa.RecordBatch]:
        for number, size in enumerate(batch_sizes(rows)):
            arrays = [_column(label, size, text, nulls_ratio, (name, label, VERSION, number)) for label in labels]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return Dataset(name, rows, schema, VERSION, batches)


def _shuffled(labels: list[str], name: str) -> list[str]:
    return [labels[index] for index in streams.permutation(len(labels), name, "order", VERSION)]


def _column(label: str, rows: int, text: Text, nulls_ratio: float, path: tuple[object, ...]) -> pa.Array:
    valid = None
    if nulls_ratio:
        valid = streams.unit_floats(streams.raw_words(rows, *path, "nulls")) >= nulls_ratio
    make = _STRINGS[text.kind] if label.startswith("str") else _MAKERS[label.partition("_")[0]]
    return make(rows, text.length, valid, path)


_Maker = Callable[[int, int, "columns.Valid | None", tuple[object, ...]], pa.Array]


def _integers(rows: int, length: int, valid: columns.Valid | None, path: tuple[object, ...]) -> pa.Array:
    return columns.numbers(streams.integers(streams.raw_words(rows, *path), 0, 100), valid)


def _floats(rows: int, length: int, valid: columns.Valid | None, path: tuple[object, ...]) -> pa.Array:
    return columns.numbers(streams.unit_floats(streams.raw_words(rows, *path)) * 100, valid)


def _booleans(rows: int, length: int, valid: columns.Valid | None, path: tuple[object, ...]) -> pa.Array:
    bits = streams.raw_words(-(-rows // 64), *path).astype("<u8", copy=False).view(np.uint8)
    return columns.booleans(bits, rows, valid)


def _letters(
    rows: int, length: int, valid: columns.Valid | None, path: tuple[object, ...], *, varying: bool
) -> pa.Array:
    lengths = np.full(rows, length, dtype=np.int64)
    if varying:
        lengths = streams.integers(streams.raw_words(rows, *path, "length"), 1, 2 * length - 1)
    if valid is not None:
        lengths *= valid
    return columns.strings(streams.letters(int(lengths.sum()), *path), lengths, valid)


def _words(rows: int, length: int, valid: columns.Valid | None, path: tuple[object, ...]) -> pa.Array:
    """Return strings of two words. Some first words are more frequent than others.

    A million rows have about 200,000 distinct strings.
    """
    vocabulary = pa.array(WORDS, pa.string())
    drawn = streams.unit_floats(streams.raw_words(2 * rows, *path)).reshape(2, rows)
    drawn[0] **= 2
    first, second = (drawn * len(WORDS)).astype(np.int32)
    mask = None if valid is None else ~valid
    return pc.binary_join_element_wise(
        vocabulary.take(pa.array(first, mask=mask)), vocabulary.take(pa.array(second)), " "
    )


_MAKERS: dict[str, _Maker] = {"int": _integers, "float": _floats, "bool": _booleans}
_STRINGS: dict[str, _Maker] = {
    "fixed": partial(_letters, varying=False),
    "varying": partial(_letters, varying=True),
    "words": _words,
}
