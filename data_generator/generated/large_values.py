"""Tables with one column of large values: vectors, long texts, and incompressible bytes.

The tables also have an ascending row number and an unordered label, except the table of `build_values`. The tables are
meant for reading by row numbers or conditions, as training loops, searches and galleries do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from data_generator.dataset import BATCH_ROWS as MOST_ROWS
from data_generator.dataset import Dataset, batch_sizes
from data_generator.errors import DataError
from data_generator.generated import columns, streams
from data_generator.generated.words import WORDS

VERSION = 1
BATCH_ROWS = 16_384
"""Maximum rows of a batch. A batch of 16 KB values is then well below 2 GiB, the limit of Arrow's offsets."""
VALUES_BYTES = 256_000_000
"""Approximate size of the table of `build_values`, which has at most a million rows."""
LABELS = 1_000
PARAGRAPHS, PARAGRAPH_WORDS = 16_384, 80
"""Number of different paragraphs, and of words in each paragraph (about 500 bytes). Texts consist of these paragraphs.
A paragraph is repeated so rarely that codecs, which search only a limited distance back, do not find the repetition."""

_Make = Callable[[int, int, tuple[object, ...]], pa.Array]


def build_vectors(name: str, rows: int, parameters: Mapping[str, str]) -> Dataset:
    """Return rows with a vector of `dimensions` float32, uniform in -1 to 1. Like embeddings, the vectors do not
    compress."""
    dimensions = int(parameters["dimensions"])
    return _build(name, rows, ("vector", pa.list_(pa.float32(), dimensions)), _vectors, dimensions)


def build_texts(name: str, rows: int, parameters: Mapping[str, str]) -> Dataset:
    """Return rows with one text each. The size of a text is random, from 0.5 to 1.5 times `bytes`."""
    return _build(name, rows, ("text", pa.string()), _texts, int(parameters["bytes"]))


def build_blobs(name: str, rows: int, parameters: Mapping[str, str]) -> Dataset:
    """Return rows with random bytes, like an encoded image in each row. The size of a value is 0.5 to 1.5 times
    `bytes`."""
    return _build(name, rows, ("blob", pa.binary()), _blobs, int(parameters["bytes"]))


def build_values(name: str, rows: int | None, parameters: Mapping[str, str]) -> Dataset:
    """Return a table with one column of values of about `bytes` bytes.

    The table is for measuring how the time for reading a value depends on the size of the value.

    The values are random and cannot be compressed, so encodings differ only in the layout of the values. For
    kind=variable, values are binary, with 0.5 to 1.5 times `bytes`. For kind=fixed, they are float32 (if `bytes` is 4)
    or vectors of float32. Raises DataError if `bytes` is not a multiple of 4 for kind=fixed.
    """
    size_bytes = int(parameters["bytes"])
    kind: pa.DataType
    make: _Make
    if parameters["kind"] == "variable":
        kind, make = pa.binary(), _blobs
    elif size_bytes % 4:
        raise DataError(
            f"{name}: bytes={size_bytes} is not a multiple of 4, the size of the float32 values that kind=fixed stores."
        )
    else:
        kind, make = (pa.float32(), _floats) if size_bytes == 4 else (pa.list_(pa.float32(), size_bytes // 4), _vectors)
    size = size_bytes if make is _blobs else size_bytes // 4
    schema = pa.schema([("value", kind)])
    count = min(VALUES_BYTES // size_bytes, 1_000_000) if rows is None else rows
    batch_rows = min(VALUES_BYTES // size_bytes, MOST_ROWS)

    def batches() -> Iterator[pa.RecordBatch]:
        for number, part in enumerate(batch_sizes(count, batch_rows)):
            yield pa.RecordBatch.from_arrays([make(part, size, (name, VERSION, number))], schema=schema)

    return Dataset(name, count, schema, VERSION, batches)


def _build(name: str, rows: int, value: tuple[str, pa.DataType], make: _Make, size: int) -> Dataset:
    schema = pa.schema([("row", pa.int64()), ("label", pa.int64()), value])

    def batches() -> Iterator[pa.RecordBatch]:
        start = 0
        for number, count in enumerate(batch_sizes(rows, BATCH_ROWS)):
            path = (name, VERSION, number)
            labels = streams.integers(streams.raw_words(count, *path, "label"), 0, LABELS - 1)
            numbers = columns.numbers(np.arange(start, start + count, dtype=np.int64))
            arrays = [numbers, columns.numbers(labels), make(count, size, path)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            start += count

    return Dataset(name, rows, schema, VERSION, batches)


def _vectors(rows: int, dimensions: int, path: tuple[object, ...]) -> pa.Array:
    # Each random word makes two floats. Its halves are taken as signed integers and divided by their maximum.
    words = streams.raw_words(-(-rows * dimensions // 2), *path, "vector")
    halves = words.astype("<u8", copy=False).view("<i4")[: rows * dimensions]
    # Divide in float64, so that every machine rounds in the same way.
    values = (halves.astype(np.float64) / 2.0**31).astype(np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(values), dimensions)


def _floats(rows: int, dimensions: int, path: tuple[object, ...]) -> pa.Array:
    return _vectors(rows, dimensions, path).values


def _texts(rows: int, size_bytes: int, path: tuple[object, ...]) -> pa.Array:
    paragraphs = _paragraphs(str(path[0]))
    mean_bytes = sum(map(len, paragraphs)) / len(paragraphs)
    counts = _sizes(rows, max(round(size_bytes / mean_bytes), 1), path)
    chosen = streams.integers(streams.raw_words(int(counts.sum()), *path, "paragraphs"), 0, len(paragraphs) - 1)
    ends = np.cumsum(counts)
    texts = [
        b"".join([paragraphs[place] for place in chosen[end - count : end].tolist()])
        for count, end in zip(counts.tolist(), ends.tolist(), strict=True)
    ]
    return columns.strings(b"".join(texts), np.array([len(text) for text in texts], np.int64))


def _paragraphs(name: str) -> list[bytes]:
    words = [word.encode() for word in WORDS]
    drawn = streams.integers(
        streams.raw_words(PARAGRAPHS * PARAGRAPH_WORDS, name, VERSION, "pool"), 0, len(words) - 1
    ).tolist()
    return [
        b" ".join([words[place] for place in drawn[start : start + PARAGRAPH_WORDS]]) + b".\n"
        for start in range(0, len(drawn), PARAGRAPH_WORDS)
    ]


def _blobs(rows: int, size_bytes: int, path: tuple[object, ...]) -> pa.Array:
    lengths = _sizes(rows, size_bytes, path)
    total = int(lengths.sum())
    drawn = streams.raw_words(-(-total // 8), *path, "blob").astype("<u8", copy=False).view(np.uint8)[:total]
    offsets = np.zeros(rows + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(drawn)])


def _sizes(rows: int, middle: int, path: tuple[object, ...]) -> np.ndarray:
    """Return random sizes from 0.5 to 1.5 times `middle`."""
    words = streams.raw_words(rows, *path, "size")
    return streams.integers(words, max(middle // 2, 1), max(middle + middle // 2, 1))
