"""Tables of large values: the requested size, the same first rows for any number, and the stated compressibility."""

from __future__ import annotations

import zlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from data_generator.catalogue import resolve
from data_generator.generated.large_values import BATCH_ROWS


def made(name: str, rows: int, **parameters: str) -> pa.Table:
    dataset = resolve(name, parameters, rows=rows)
    table = pa.Table.from_batches(list(dataset.batches()), dataset.schema)
    assert table.num_rows == rows
    return table


@pytest.mark.parametrize("name", ["vectors", "texts", "blobs"])
def test_the_row_ascends_and_the_label_does_not(name: str) -> None:
    table = made(name, 500)
    assert table.column("row").to_pylist() == list(range(500))
    labels = table.column("label").to_numpy()
    assert 0 <= labels.min() < labels.max() < 1_000
    assert (np.diff(labels) < 0).any()


def test_rows_go_on_over_batches() -> None:
    table = made("vectors", BATCH_ROWS + 10, dimensions="2")
    assert table.column("row").to_pylist()[-3:] == [BATCH_ROWS + 7, BATCH_ROWS + 8, BATCH_ROWS + 9]


@pytest.mark.parametrize("name", ["vectors", "texts", "blobs"])
def test_few_rows_are_the_first_of_many_in_their_values_sizes(name: str) -> None:
    """Another number of rows is another table with the same properties."""
    few, many = made(name, 50), made(name, 200)
    assert abs(few.nbytes * 4 / many.nbytes - 1) < 0.15


def test_vectors_are_between_minus_one_and_one_and_no_codec_helps() -> None:
    values = made("vectors", 100, dimensions="64").column("vector").combine_chunks().flatten().to_numpy()
    assert values.dtype == np.float32
    assert len(values) == 6_400
    assert -1 <= values.min() < -0.9
    assert 0.9 < values.max() <= 1
    assert abs(values.mean()) < 0.05
    assert len(zlib.compress(values.tobytes())) > 0.9 * values.nbytes


@pytest.mark.parametrize(("name", "column"), [("texts", "text"), ("blobs", "blob")])
@pytest.mark.parametrize("size", [1_000, 10_000])
def test_values_are_about_as_large_as_asked_for(name: str, column: str, size: int) -> None:
    lengths = pc.binary_length(made(name, 400, bytes=str(size)).column(column)).to_numpy()
    assert abs(lengths.mean() / size - 1) < 0.15
    assert lengths.min() < 0.75 * size
    assert lengths.max() > 1.25 * size


def test_texts_are_words_and_bytes_are_noise() -> None:
    text = "".join(made("texts", 20).column("text").to_pylist())
    assert text.isascii() or text.encode().decode() == text
    assert 0.2 < len(zlib.compress(text.encode())) / len(text.encode()) < 0.6
    blob = b"".join(made("blobs", 20).column("blob").to_pylist())
    assert len(zlib.compress(blob)) > 0.99 * len(blob)
