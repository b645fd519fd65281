"""pyarrow over chunks alone: what it gets, what it requests, how much comes at once."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from libraries.near_storage.errors import DamagedError
from libraries.near_storage.reading import footers
from libraries.near_storage.reading.decoding import BATCH_ROWS, Decoder, slices, stretches

ROWS = 1000


def table():
    numbers = np.arange(ROWS)
    return pa.table(
        {
            "s.a": numbers,
            "s": pa.array([{"a": str(number), "b": -number} for number in range(ROWS)]),
            "list": pa.array([[number] * (number % 3) for number in range(ROWS)]),
            "word": pa.array([f"word {number % 7}" for number in range(ROWS)]).dictionary_encode(),
        }
    )


@pytest.fixture(scope="module")
def content():
    file = io.BytesIO()
    pq.write_table(table(), file, row_group_size=100)
    return file.getvalue()


def footer_of(content):
    return footers.parse(content[-8 - int.from_bytes(content[-8:-4], "little") :])


def test_leaves_choose_columns_whatever_their_names(content):
    footer = footer_of(content)
    decoder = Decoder(footer, lambda offset, nbytes: content[offset : offset + nbytes])
    for leaves, names in (
        ([0], ["s.a"]),
        ([1, 2], ["s"]),
        ([3, 4], ["list", "word"]),
        (range(5), table().column_names),
    ):
        found = pa.Table.from_batches(decoder.batches([0, 1, 9], list(leaves)))
        expected = pa.concat_tables([table().slice(0, 200), table().slice(900)]).select(names)
        assert found.equals(expected)


def test_each_chunk_is_read_once_and_nothing_else(content):
    footer = footer_of(content)
    read = []
    decoder = Decoder(footer, lambda offset, nbytes: read.append((offset, nbytes)) or content[offset : offset + nbytes])
    rows = sum(batch.num_rows for batch in decoder.batches([2, 5], [0, 3], 30))
    expected = []
    for group in (2, 5):
        for leaf in (0, 3):
            column = footer.metadata.row_group(group).column(leaf)
            expected.append((column.dictionary_page_offset, column.total_compressed_size))
    assert rows == 200
    assert sorted(read) == expected


def test_an_error_of_the_chunks_reaches_the_caller_as_it_is(content):
    def refuse(offset, nbytes):
        raise DamagedError(f"not {nbytes} bytes")

    decoder = Decoder(footer_of(content), refuse)
    with pytest.raises(DamagedError, match=r"not \d+ bytes"):
        next(decoder.batches([0], [0, 1, 2]))


def test_a_chunk_that_is_too_short_is_damaged(content):
    decoder = Decoder(footer_of(content), lambda offset, nbytes: content[offset : offset + nbytes // 2])
    with pytest.raises(DamagedError, match="row group 3"):
        list(decoder.batches([3], [0]))


def test_small_row_groups_are_decoded_together_and_long_ones_in_pieces(content):
    metadata = footer_of(content).metadata
    size = metadata.row_group(0).column(0).total_uncompressed_size

    def made(groups, **bounds):
        return list(stretches(metadata, groups, [0], **bounds))

    assert made(range(10)) == [(list(range(10)), BATCH_ROWS)]
    assert made([1, 4, 5, 6, 8], batch_rows=299) == [([1, 4], 299), ([5, 6], 299), ([8], 299)]
    assert made([1, 4, 5], batch_rows=40) == [([1], 40), ([4], 40), ([5], 40)]
    assert made([1, 4, 5], batch_bytes=2 * size + 1) == [([1, 4], 200), ([5], 200)]
    assert made([1], batch_bytes=size // 4) == [([1], 24)]
    assert made([1], batch_bytes=1) == [([1], 1)]
    assert made([]) == []
    assert list(stretches(metadata, [0, 1], [])) == [([0, 1], BATCH_ROWS)]


def test_batches_fill_the_buffers_that_they_are_decoded_into():
    # pyarrow's buffers have 2^n values, and the unused part is lost: 70,000 rows would take 131,072.
    file = io.BytesIO()
    pq.write_table(pa.table({"a": np.zeros(131_072)}), file, row_group_size=131_072)
    metadata = pq.read_metadata(file)

    def rows(batch_rows):
        return next(stretches(metadata, [0], [0], batch_rows=batch_rows))[1]

    assert [rows(most) for most in (1, 20_000, 32_768, 40_000, 49_152)] == [1, 20_000, 32_768, 32_768, 49_152]
    assert [rows(most) for most in (65_536, 70_000, 98_304, 131_072)] == [65_536, 65_536, 98_304, 131_072]


def test_slices_are_bounded_and_lose_nothing():
    batch = pa.record_batch({"a": np.arange(1000), "b": pa.array(["x" * (number % 50) for number in range(1000)])})
    found = list(slices(batch, 500))
    assert all(piece.nbytes <= 500 for piece in found)
    assert pa.Table.from_batches(found).equals(pa.Table.from_batches([batch]))
    assert list(slices(batch, batch.nbytes)) == [batch]


def test_slices_end_at_a_row_or_a_dictionary():
    long = pa.record_batch({"a": ["x" * 1000, "y" * 1000]})
    assert [piece.num_rows for piece in slices(long, 10)] == [1, 1]
    words = pa.record_batch({"a": pa.array([str(number) * 100 for number in range(100)]).dictionary_encode()})
    assert len(list(slices(words, 10))) == 1
    assert [piece.num_rows for piece in slices(words.slice(0, 0), 10)] == [0]


def test_slices_of_uneven_rows_are_bounded_and_not_too_many():
    lengths = [300] * 100 + [0] * 5_000 + [9_000, 1, 1]
    uneven = pa.record_batch({"a": ["x" * length for length in lengths]})
    found = list(slices(uneven, 1_000))
    assert all(piece.nbytes <= 1_000 or piece.num_rows == 1 for piece in found)
    assert pa.Table.from_batches(found).equals(pa.Table.from_batches([uneven]))
    even = pa.record_batch({f"{name}": pa.array([None, *range(9_999)], pa.int64()) for name in range(20)})
    assert len(list(slices(even, 100_000))) <= 1.1 * even.nbytes / 100_000 + 1


def test_a_dictionary_is_sent_with_every_slice_and_not_too_often():
    words = pa.array([str(number % 100) * 30 for number in range(100_000)]).dictionary_encode()
    batch = pa.record_batch({"word": words, "number": np.arange(100_000)})
    found = list(slices(batch, 50_000))
    assert all(piece.nbytes <= 50_000 for piece in found)
    assert len(found) < 1.5 * batch.nbytes / 50_000
    fixed = batch.slice(0, 0).nbytes
    assert max(piece.nbytes for piece in slices(batch, fixed)) <= 2.1 * fixed
