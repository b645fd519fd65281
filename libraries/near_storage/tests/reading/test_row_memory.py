"""The decoded size of rows is predicted: never less than the real size, and not far more."""

import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from libraries.near_storage.errors import DamagedError
from libraries.near_storage.reading import footers, pages, row_memory
from libraries.near_storage.reading.decoding import Decoder
from libraries.near_storage.reading.footers import ParsedFooter, place_of
from libraries.near_storage.tests.parquet.thrift_writing import Wire, i32, i64, struct

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
    # Each chunk is read once: it is kept until it is decoded.
    list(decoder.batches([0], [0, 1], count))
    assert len(looked) == 2
    # The page headers of numbers are not read again.
    Decoder(footer, read).reading([0], [0, 1], 1 << 17)
    assert len(looked) == 3
    assert footer.longest == {(0, 1): len("word 4999")}


def test_pages_that_lead_nowhere_are_damage():
    for broken in (b"\xff" * 20, b"\x15\x00\x15\x10\x15\xff\xff\xff\xff\x0f\x00", b"\x00"):
        with pytest.raises(DamagedError, match="page 0"):
            pages.read(memoryview(broken))


# Kind, sizes, and the values of a data page with its encodings; the ends of both structs and one byte of data follow.
SIZES, VALUES = bytes.fromhex("15 00 15 02 15 02"), bytes.fromhex("15 02 15 00 15 06 15 06")
HOSTILE = {
    "the wire type 0": SIZES + b"\x2c" + VALUES + b"\x10\x10" + b"\0\0",
    "the wire type 0 in the page header": SIZES + b"\x2c" + VALUES + b"\0" + b"\x10" + b"\0",
    # The ids 5 + 4368 * 15 + 13 = 65538, which are 2 in 16 bits: the size before compression.
    "ids beyond 16 bits": SIZES + b"\x2c" + VALUES + b"\0" + b"\xf1" * 4_368 + b"\xd5\x7e" + b"\0",
    "a checksum of 6 bytes": SIZES + b"\x15" + b"\x80" * 5 + b"\0" + b"\x1c" + VALUES + b"\0\0",
    "a checksum of 7 bytes": SIZES + b"\x15" + b"\x80" * 6 + b"\0" + b"\x1c" + VALUES + b"\0\0",
    "a skipped number of 6 bytes": SIZES + b"\x2c" + VALUES + b"\x15" + b"\x80" * 5 + b"\0" + b"\0\0",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_headers_that_thrift_reads_otherwise_are_damage(case: str):
    """Otherwise pyarrow could read other sizes than those for which memory is claimed."""
    usual = SIZES + b"\x2c" + VALUES + b"\0\0" + b"x"
    assert pages._sizes_of_usual_headers(memoryview(usual)) == pages.sizes(memoryview(usual)) == (1, 1)
    for ending in (b"x", b"xx", b"x" + usual):
        with pytest.raises(DamagedError, match="page 0"):
            pages.sizes(memoryview(HOSTILE[case] + ending))


# --- sizes that are wrong --------------------------------------------------------------------------------

MOST_INT32 = 2**31 - 1
COUNT = 1_000


def made(column: pa.Array, declared_bytes: int | None = None, **options: Any) -> tuple[ParsedFooter, bytes]:
    """Return the footer and the only chunk of a file. The footer declares `declared_bytes` uncompressed bytes, or the
    correct number."""
    file = io.BytesIO()
    pq.write_table(pa.table({"x": column}), file, **options)
    content = file.getvalue()
    chunk = pq.read_metadata(file).row_group(0).column(0)
    start, length = place_of(chunk)
    end = content[-8 - int.from_bytes(content[-8:-4], "little") : -8]
    if declared_bytes is not None:
        sizes = struct({5: i64(chunk.num_values), 6: i64(chunk.total_uncompressed_size), 7: i64(length)}).data[3:-1]
        assert end.count(sizes) == 1
        end = end.replace(sizes, struct({5: i64(0), 6: i64(declared_bytes), 7: i64(length)}).data[2:-1])
    footer = footers.parse(end + len(end).to_bytes(4, "little") + b"PAR1")
    return footer, content[start : start + length]


def with_page(chunk: bytes, number: int, **changed: int) -> bytes:
    """Change the numbers in one page header of a chunk."""
    found = pages.read(memoryview(chunk))
    page = found[number]._replace(**changed)
    begin = 0 if number == 0 else found[number - 1].start + found[number - 1].stored_bytes
    first = page.stored_bytes if "stored_bytes" in changed else found[number].stored_bytes
    encodings = {2: i32(page.encoding), 3: i32(3), 4: i32(3)}
    of_values: dict[int, dict[int, Wire | None]] = {
        pages.DATA_PAGE: {5: struct({1: i32(page.values), **encodings})},
        pages.DICTIONARY_PAGE: {7: struct({1: i32(page.values), 2: i32(page.encoding)})},
    }
    header = struct({1: i32(page.kind), 2: i32(page.plain_bytes), 3: i32(first), **of_values[page.kind]}).data
    return chunk[:begin] + header + chunk[page.start :]


def claimed(footer: ParsedFooter, chunk: bytes) -> int:
    return row_memory.reading(footer, lambda offset, nbytes: memoryview(chunk), [0], [0], 1 << 17).nbytes


NUMBERS = pa.array(np.random.default_rng(1).integers(0, 2**60, COUNT))


@pytest.mark.parametrize("declared_bytes", [0, 1, -(10**12)])
def test_sizes_come_from_the_page_headers_not_from_the_footer(declared_bytes: int):
    options = {"use_dictionary": False, "compression": "zstd"}
    honest, forged = made(NUMBERS, **options), made(NUMBERS, declared_bytes, **options)
    assert forged[1] == honest[1]
    assert claimed(*forged) == claimed(*honest) > 8 * COUNT
    assert row_memory.estimate(forged[0], [0], [0], COUNT) > 0


def test_declared_sizes_beyond_64_bits_are_added_up():
    footer, _ = made(NUMBERS, 2**62)
    assert row_memory.estimate(footer, [0, 0], [0, 0], COUNT) > 0


def test_a_page_is_as_large_as_its_header_declares():
    footer, chunk = made(NUMBERS, 1, use_dictionary=False)
    assert claimed(footer, with_page(chunk, 0, plain_bytes=MOST_INT32)) > MOST_INT32


def test_values_of_a_dictionary_take_memory():
    """pyarrow allocates them by the number in the header before it decodes one."""
    for column in (pa.array([7] * COUNT), pa.array(["a"] * COUNT)):
        footer, chunk = made(column)
        assert claimed(footer, with_page(chunk, 0, values=MOST_INT32)) > 16 * MOST_INT32


def test_values_of_lists_are_counted_by_pages():
    for column in (pa.array([[7]] * COUNT), pa.array([["a"]] * COUNT)):
        footer, chunk = made(column)
        assert claimed(footer, with_page(chunk, 1, values=MOST_INT32)) > MOST_INT32


def test_memory_is_claimed_before_a_dictionary_is_decompressed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pages, "longest", lambda *_: pytest.fail("decompressed"))
    footer, chunk = made(pa.array(["a"] * COUNT), 1, compression="zstd")
    large = with_page(chunk, 0, plain_bytes=MOST_INT32)

    def refuse(nbytes: int) -> None:
        assert nbytes > MOST_INT32
        raise MemoryError

    with pytest.raises(MemoryError):
        row_memory.reading(footer, lambda offset, nbytes: memoryview(large), [0], [0], COUNT, refuse)


def test_both_readers_of_headers_agree():
    """Also about broken headers, unless only the slow reader refuses them."""
    rng = random.Random(1)
    quick = 0
    for options in ({}, {"data_page_version": "2.0"}, {"write_page_checksum": True}, {"write_statistics": False}):
        for column in (NUMBERS, pa.array([str(number % 9) * 20 for number in range(COUNT)]), pa.array([[1, 2]] * 9)):
            _, chunk = made(column, data_page_size=1_000, **options)
            starts = [0, *(page.start + page.stored_bytes for page in pages.read(memoryview(chunk)))]
            for broken in range(200):
                content = bytearray(chunk)
                if broken:
                    content[min(rng.choice(starts) + rng.randrange(20), len(chunk) - 1)] ^= 1 << rng.randrange(8)
                try:
                    found = pages.read(memoryview(content))
                except DamagedError:
                    continue
                quick += pages._sizes_of_usual_headers(memoryview(content)) is not None if not broken else 0
                assert pages.sizes(memoryview(content)) == (
                    sum(page.decoded_bytes for page in found),
                    sum(page.values for page in found if page.kind != pages.DICTIONARY_PAGE),
                )
    assert quick == 12
