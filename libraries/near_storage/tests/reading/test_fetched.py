"""Whole files that arrive in pieces: every chunk is right for any split, and changed chunks are refused."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from libraries.filters.binding import bind
from libraries.filters.tree import Comparison, Literal
from libraries.near_storage.errors import DamagedError
from libraries.near_storage.reading import by_parquet, footers
from libraries.near_storage.reading.fetched import FetchedChunks
from libraries.near_storage.tests.reading.stored import Stored, stored

TABLE = pa.table({"number": range(1000), "text": [f"text {number}" * 5 for number in range(1000)]})


@pytest.fixture
def file(tmp_path) -> Iterator[Stored]:
    pq.write_table(TABLE, tmp_path / "table.parquet", row_group_size=300)
    with stored(tmp_path / "table.parquet") as opened:
        yield opened


def pieces_of(content: bytes, size: int) -> list[memoryview]:
    return [memoryview(content[start : start + size]) for start in range(0, len(content), size)]


def rows(file: Stored, pieces: list[memoryview], where=None, columns=("number", "text")) -> pa.Table:
    fetched = FetchedChunks(pieces)
    footer = footers.parse(fetched.footer_bytes())
    fetched.expect(footer, range(len(TABLE.column_names)), file.digests)
    found = by_parquet.batches(fetched, footer, range(4), columns, where)
    return pa.Table.from_batches(found, TABLE.select(columns).schema)


@pytest.mark.parametrize("size", [1, 7, 1000, 10**9])
def test_pieces_of_any_size(file: Stored, tmp_path, size: int):
    content = (tmp_path / "table.parquet").read_bytes()
    assert rows(file, pieces_of(content, size)).equals(TABLE)
    assert rows(file, [memoryview(b""), *pieces_of(content, size), memoryview(b"")]).equals(TABLE)


def test_columns_that_are_not_needed_are_not_looked_at(file: Stored, tmp_path):
    content = bytearray((tmp_path / "table.parquet").read_bytes())
    where = bind(Comparison("<", "number", Literal(10, pa.int64())), TABLE.schema)
    text_of_last = int(file.compact.base[3] + file.compact.chunks["offset"][3, 1])
    content[text_of_last + 9] ^= 1
    pieces = pieces_of(bytes(content), 100)
    assert rows(file, pieces, where, ("number",)).equals(TABLE.slice(0, 10).select(["number"]))
    with pytest.raises(DamagedError, match="changed"):
        rows(file, pieces, where)


@pytest.mark.parametrize("left", [0, 6, 100, 0.5])
def test_files_of_which_the_front_is_missing(file: Stored, tmp_path, left: float):
    content = (tmp_path / "table.parquet").read_bytes()
    left = int(len(content) * left) if 0 < left < 1 else int(left)
    with pytest.raises(DamagedError, match=r"are needed|changed"):
        rows(file, pieces_of(content[len(content) - left :], 50))
