"""Compact metadata: contents, size, serialization, and concatenation for many files."""

from __future__ import annotations

import io
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from libraries.filters.codes import CodeKind, code
from libraries.filters.pruning import EXACT, HAS_NULLS, MAY_HOLD_NAN
from libraries.near_storage.errors import DamagedError, RequestError
from libraries.near_storage.parquet.compact import CompactColumn, CompactMetadata, from_footer, load, together
from libraries.near_storage.parquet.footer import parse_footer, read_footer
from libraries.near_storage.tests.parquet.footers import TYPE_ORDER, chunk, file_metadata, leaf, root, row_group

SEED = 210
GIB = 1 << 30


def written(table: pa.Table, rows_a_group: int, **options) -> io.BytesIO:
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=rows_a_group, **options)
    return file


def compact(table: pa.Table, rows_a_group: int = 10, **options) -> CompactMetadata:
    return from_footer(read_footer(written(table, rows_a_group, **options)))


def some_table(rows: int = 95, start: int = 0) -> pa.Table:
    numbers = np.arange(start, start + rows)
    return pa.table(
        {
            "number": pa.array(numbers, mask=numbers % 30 == 7),
            "text": [f"text {number}" for number in numbers],
            "float": numbers / 2,
            "list": [[number] for number in numbers],
        }
    )


def same(one: CompactMetadata, other: CompactMetadata) -> bool:
    return (one.columns, one.files) == (other.columns, other.files) and all(
        np.array_equal(first, second) and first.dtype == second.dtype
        for first, second in zip(one._arrays(), other._arrays(), strict=True)
    )


def test_all_that_it_holds():
    file = written(some_table(), 10)
    found = from_footer(read_footer(file))
    metadata = pq.read_metadata(file)
    assert [column.path for column in found.columns] == [
        ("number",),
        ("text",),
        ("float",),
        ("list", "list", "element"),
    ]
    assert [column.name for column in found.columns] == ["number", "text", "float", "list.list.element"]
    assert [column.flat for column in found.columns] == [True, True, True, False]
    assert found.columns[0] == CompactColumn(("number",), CodeKind("signed", bits=64), True)
    assert found.rows.tolist() == [10] * 9 + [5]
    for group in range(10):
        for number in range(4):
            theirs = metadata.row_group(group).column(number)
            start = theirs.dictionary_page_offset or theirs.data_page_offset
            place = found.chunks[group, number]
            assert int(found.base[group]) + int(place["offset"]) == start
            assert place["length"] == theirs.total_compressed_size
        assert found.codes[:, 0, group].tolist() == [
            code(CodeKind("signed", bits=64), bound)
            for bound in (
                metadata.row_group(group).column(0).statistics.min,
                metadata.row_group(group).column(0).statistics.max,
            )
        ]
    assert found.flag(HAS_NULLS, 0).tolist() == [group in (0, 3, 6) for group in range(10)]
    assert found.flag(MAY_HOLD_NAN, 2).all()
    assert not found.flag(MAY_HOLD_NAN, 0).any()
    assert found.flag(EXACT, 0).all()
    assert found.flag(EXACT, 1).all()


def test_24_bytes_and_three_bits_a_chunk():
    found = compact(some_table(800))
    assert found.places.nbytes + found.codes.nbytes == 24 * 80 * 4
    assert found.flags.nbytes == 3 * 4 * 80 // 8
    per_group = found.rows.nbytes + found.base.nbytes + found.file.nbytes
    assert per_group == 20 * 80
    assert found.nbytes == len(found.save()) - 40


def test_a_base_of_64_bits():
    groups = [row_group([chunk(start=start), chunk(["b"], start=start + 4 * GIB - 1)]) for start in (4, 100 * GIB)]
    metadata = file_metadata([root(2), leaf("a"), leaf("b")], groups, 10, [TYPE_ORDER] * 2)
    found = from_footer(parse_footer(metadata, 200 * GIB))
    assert found.base.tolist() == [4, 100 * GIB]
    assert found.chunks["offset"].tolist() == [[0, 4 * GIB - 1]] * 2


def test_a_base_is_the_first_byte_wherever_it_is():
    groups = [row_group([chunk(start=50), chunk(["b"], start=20, dictionary=14)])]
    metadata = file_metadata([root(2), leaf("a"), leaf("b")], groups, 5, [TYPE_ORDER] * 2)
    found = from_footer(parse_footer(metadata, 1000))
    assert (found.base.tolist(), found.chunks["offset"].tolist()) == ([14], [[36, 0]])


@pytest.mark.parametrize("rows", [0, 5, 80, 95])
def test_to_bytes_and_back(rows):
    found = compact(some_table(100).slice(0, rows))
    assert same(load(found.save()), found)


def test_a_file_without_columns():
    found = compact(pa.table({}))
    assert same(load(found.save()), found)
    assert found.columns == ()


def test_every_damaged_byte_is_found():
    data = compact(some_table(20)).save()
    rng = random.Random(SEED)
    for place in (*range(20), *rng.sample(range(len(data)), 200), len(data) - 1):
        broken = bytearray(data)
        broken[place] ^= 1 << rng.randrange(8)
        with pytest.raises(DamagedError):
            load(bytes(broken))
    for end in (0, 10, 31, 32, 40, len(data) - 1):
        with pytest.raises(DamagedError):
            load(data[:end])
    with pytest.raises(DamagedError):
        load(data + b"\0")


@pytest.mark.parametrize("body", [b"", b"NSM1", b"NSM1\xff\xff\xff\x7f", b"NSM2" + bytes(20), b"NSM1\1\0\0\0\xc0"])
def test_a_right_digest_of_something_else(body):
    from hashlib import blake2b

    with pytest.raises(DamagedError):
        load(body + blake2b(body, digest_size=32).digest())


def test_many_files_in_one():
    parts = [compact(some_table(100, start).slice(0, rows)) for start, rows in ((0, 95), (7, 0), (100, 5), (200, 83))]
    found = together(parts)
    assert found.files == 4
    assert found.file.tolist() == [0] * 10 + [1] + [2] + [3] * 9
    assert found.rows.sum() == 183
    for index, part in enumerate(parts):
        assert same(found.of_file(index), part)
        for which in range(3):
            for number in range(4):
                assert np.array_equal(found.of_file(index).flag(which, number), part.flag(which, number))


def test_together_counts_files_on():
    two = together([compact(some_table(20))] * 2)
    found = together([two, two])
    assert (found.files, found.file.tolist()) == (4, [0, 0, 1, 1, 2, 2, 3, 3])
    assert same(found.of_file(3), compact(some_table(20)))


def test_files_with_other_columns_are_not_put_together():
    one = compact(some_table(20))
    for other in (some_table(20).select([0, 1]), some_table(20).rename_columns(["a", "text", "float", "list"])):
        with pytest.raises(RequestError, match="part 1 has other columns"):
            together([one, compact(other)])
    with pytest.raises(RequestError, match="nothing"):
        together([])


@pytest.mark.parametrize("file", [-1, 1])
def test_a_file_that_is_not_there(file):
    with pytest.raises(RequestError, match=r"no file -?\d"):
        compact(some_table(20)).of_file(file)


def test_it_costs_what_it_may():
    """At most 30 % of the raw footer, here of 93 columns in 60 row groups; for the parsed footer see selfbench."""
    rng = np.random.default_rng(SEED)
    rows = 60 * 4
    values = [rng.integers(0, 1 << 40, rows), rng.random(rows), rng.integers(0, 100, rows).astype("i4")]
    texts = [f"user{number:012d}" for number in rng.integers(0, 10**6, rows)]
    columns = {f"column_{number}": texts if number % 4 == 3 else values[number % 4] for number in range(93)}
    footer = read_footer(written(pa.table(columns), 4))
    found = from_footer(footer)
    assert (found.groups, len(found.columns)) == (60, 93)
    assert found.nbytes <= 0.30 * footer.length
    assert found.nbytes <= 26 * 60 * 93
