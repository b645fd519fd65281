"""The decoded size of rows is predicted: never less than the real size, and not far more."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from libraries.near_storage.reading import footers, pages, row_memory
from libraries.near_storage.reading.decoding import Decoder

ROWS = 600
SHORT, LONG = "abc", "x" * 200_000


def few(long_rows: int) -> pa.Array:
    """Return texts of two values, with `long_rows` rows of the long one."""
    return pa.array([SHORT, LONG]).take(pa.array([int(row < long_rows) for row in range(ROWS)]))


def nested(texts: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(range(0, ROWS + 1, 3), pa.int32()), texts).take(
        pa.array([row // 3 for row in range(ROWS)])
    )


COLUMNS: dict[str, Callable[[], tuple[pa.Array, dict[str, Any]]]] = {
    "a dictionary": lambda: (few(ROWS), {}),
    "a dictionary with one long value": lambda: (few(1), {}),
    "a dictionary, not compressed": lambda: (few(ROWS), {"compression": "none"}),
    "a dictionary, lz4": lambda: (few(ROWS), {"compression": "lz4"}),
    "pages of the second kind": lambda: (few(ROWS), {"data_page_version": "2.0"}),
    "prefixes": lambda: (few(ROWS), {"use_dictionary": False, "column_encoding": {"x": "DELTA_BYTE_ARRAY"}}),
    "plain, long ones first": lambda: (few(60), {"use_dictionary": False}),
    "bytes": lambda: (few(ROWS).cast(pa.binary()), {}),
    "views": lambda: (few(ROWS).cast(pa.string_view()), {}),
    "dictionaries of Arrow": lambda: (few(ROWS).dictionary_encode(), {}),
    "texts in lists": lambda: (nested(few(30)), {}),
    "numbers": lambda: (pa.array(np.arange(ROWS)), {}),
    "one number": lambda: (pa.array(np.zeros(ROWS)), {}),
    "lists of one number": lambda: (pa.array([[7] * 5_000] * ROWS), {}),
    "fixed lists, most of them null": lambda: (
        pa.array([[1] * 10_000 if row == 0 else None for row in range(ROWS)], pa.list_(pa.int8(), 10_000)),
        {},
    ),
    "bytes of fixed size": lambda: (pa.array([b"y" * 50_000] * ROWS, pa.binary(50_000)), {}),
}
"""Functions, because some values take 120 MB."""


@pytest.mark.parametrize("name", COLUMNS)
def test_batches_are_no_wider_than_was_said(name: str, tmp_path: Path):
    column, options = COLUMNS[name]()
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"id": range(len(column)), "x": column}), path, data_page_size=100_000, **options)
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    footer = footers.parse(data[-8 - length :])
    decoder = Decoder(footer, lambda offset, nbytes: pa.py_buffer(data[offset : offset + nbytes]))
    leaves = footer.leaves.of(["id", "x"])
    reading = decoder.reading([0], leaves, 1 << 17)
    rows = widest = 0
    for batch in decoder.batches([0], leaves, reading.rows):
        plain = batch.column(1).cast(pa.string()) if pa.types.is_dictionary(batch.schema.types[1]) else batch.column(1)
        widest = max(widest, plain.nbytes)
        rows += batch.num_rows
    assert rows == len(column)
    assert row_memory.COPIES * widest <= reading.nbytes
    if not pa.types.is_nested(column.type) and name not in ("prefixes", "plain, long ones first"):
        # A row has at most 200 kB, so batches come close to the limit. For the two names, only pages show the size.
        assert widest <= row_memory.WIDE_BYTES
        assert reading.nbytes <= 6 * row_memory.WIDE_BYTES
        assert reading.rows == len(column) or widest > row_memory.WIDE_BYTES / 5 or "one long" in name


def test_narrow_columns_are_decoded_in_one_call(tmp_path: Path):
    """Columns of few distinct short texts, and numbers, do not make batches smaller."""
    path = tmp_path / "t.parquet"
    count = 100_000
    words = pa.array([f"word {number % 5_000}" for number in range(count)])
    pq.write_table(pa.table({"id": range(count), "word": words}), path)
    data = path.read_bytes()
    footer = footers.parse(data[-8 - int.from_bytes(data[-8:-4], "little") :])
    looked = []

    def read(offset: int, nbytes: int) -> pa.Buffer:
        looked.append(nbytes)
        return pa.py_buffer(data[offset : offset + nbytes])

    decoder = Decoder(footer, read)
    assert decoder.reading([0], [0, 1], 1 << 17).rows == count
    # Only the chunk of texts, and only once: it is kept until it is decoded.
    assert len(looked) == 1
    list(decoder.batches([0], [0, 1], count))
    assert len(looked) == 2
    assert footer.longest == {(0, 1): len("word 4999")}


def test_pages_that_lead_nowhere_are_damage():
    from libraries.near_storage.errors import DamagedError

    for broken in (b"\xff" * 20, b"\x15\x00\x15\x10\x15\xff\xff\xff\xff\x0f\x00", b"\x00"):
        with pytest.raises(DamagedError, match="page 0"):
            pages.read(memoryview(broken))
