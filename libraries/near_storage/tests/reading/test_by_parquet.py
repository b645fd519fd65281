"""The Parquet reader (V1): matching rows, in stored order, from checked chunks."""

import functools
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from libraries.filters.binding import bind
from libraries.filters.tree import And, Comparison, Constant, IsNull, Literal, Not, Prefix
from libraries.near_storage.errors import DamagedError, RequestError
from libraries.near_storage.reading import by_parquet
from libraries.near_storage.tests.reading.stored import Stored, stored

ROWS = 1000
GROUP = 300
INT64 = pa.int64()


@functools.cache
def table():
    random = np.random.default_rng(3)
    reals = random.random(ROWS)
    reals[::7] = math.nan
    return pa.table(
        {
            "number": np.arange(ROWS),
            "real": pa.array(reals, mask=random.random(ROWS) < 0.1),
            "word": pa.array([f"word {number}" for number in random.integers(0, 50, ROWS)]).dictionary_encode(),
            "nested": pa.array([{"x": number, "y": [number] * (number % 3)} for number in range(ROWS)]),
            "long": pa.array([str(number) * 100 for number in range(ROWS)]),
        }
    )


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "table.parquet"
    pq.write_table(table(), path, row_group_size=GROUP)
    return path


@pytest.fixture(scope="module")
def unchanged_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("unchanged") / "table.parquet"
    pq.write_table(table(), path, row_group_size=GROUP)
    return path


def compare(operator, column, value, type=INT64):
    return Comparison(operator, column, Literal(value, type))


def read(file: Stored, columns, where=None, groups=(0, 1, 2, 3), **options):
    chunks = by_parquet.StoredChunks(file.fd, file.compact, file.digests)
    bound = None if where is None else bind(where, file.footer.schema)
    found = list(by_parquet.batches(chunks, file.footer, list(groups), columns, bound, **options))
    schema = pa.schema([file.footer.schema.field(name) for name in columns])
    return pa.Table.from_batches(found, schema) if columns else found, chunks.read_bytes


@functools.cache
def rows():
    return table().to_pylist()


@functools.cache
def written_out(where, *columns):
    """Return the matching rows as text, because NaN does not equal itself."""
    return str(matching(WHERES[where][1], list(columns)).to_pydict())


def matching(test, columns):
    return table().filter(pa.array([test(row) for row in rows()])).select(columns)


WHERES = {
    "none": (None, lambda row: True),
    "few": (compare("==", "number", 650), lambda row: row["number"] == 650),
    "not a number": (
        compare("!=", "real", 0.25, pa.float64()),
        lambda row: row["real"] is not None and row["real"] != 0.25,
    ),
    "no number below": (
        Not(compare("<=", "real", 0.5, pa.float64())),
        lambda row: row["real"] is not None and not row["real"] <= 0.5,
    ),
    "null": (IsNull("real"), lambda row: row["real"] is None),
    "two columns": (
        And((compare("==", "word", "word 7", pa.string()), compare(">", "number", 400))),
        lambda row: row["word"] == "word 7" and row["number"] > 400,
    ),
    "nothing": (compare("<", "number", -1), lambda row: False),
    "all": (compare(">=", "number", 0), lambda row: True),
    "constant": (Constant(True), lambda row: True),
    "null constant": (Constant(None), lambda row: False),
}


@pytest.mark.parametrize("where", WHERES)
@pytest.mark.parametrize("columns", [["number"], ["nested", "real"], ["long", "word", "number", "nested", "real"]])
@pytest.mark.parametrize("options", [{}, {"batch_rows": 77}, {"batch_rows": 450}, {"batch_bytes": 9000}])
def test_the_rows_that_match_in_stored_order(unchanged_path, where, columns, options):
    with stored(unchanged_path) as file:
        found, _ = read(file, columns, WHERES[where][0], **options)
    assert str(found.to_pydict()) == written_out(where, *columns)
    assert found.schema.names == columns


@pytest.mark.parametrize("where", WHERES)
def test_rows_without_columns_are_counted(unchanged_path, where):
    predicate, test = WHERES[where]
    with stored(unchanged_path) as file:
        found, _ = read(file, [], predicate, batch_rows=90)
    assert sum(batch.num_rows for batch in found) == matching(test, ["number"]).num_rows


def test_a_batch_without_rows_comes_where_none_of_many_match(path):
    """It lets the reader do other work, or stop."""
    with stored(path) as file:
        for columns in ([], ["number"], ["nested", "word"]):
            chunks = by_parquet.StoredChunks(file.fd, file.compact, file.digests)
            nothing = compare("==", "word", "no such word", pa.string())
            found = list(by_parquet.batches(chunks, file.footer, [0, 1], columns, nothing, batch_rows=50))
            assert len(found) > 5
            assert {(batch.num_rows, *batch.schema.names) for batch in found} == {(0, *columns)}


def test_columns_beside_each_other_are_cut_each_by_its_own_width(tmp_path):
    """A pyarrow reader has one number of rows for all of its batches, of any columns."""
    path = tmp_path / "wide.parquet"
    texts = pa.array(["a" * 100_000, "b" * 100_000])
    wide = texts.take(pa.array([row % 2 for row in range(4_000)]))
    pq.write_table(pa.table({"id": range(4_000), "wide": wide.dictionary_encode()}), path, store_schema=False)
    assert path.stat().st_size < 100_000
    claimed = []
    for where, columns, expected in (
        (Prefix("wide", "b"), ["id"], 2_000),
        (compare("==", "id", 3_999), ["wide"], 1),
        (None, ["id", "wide"], 4_000),
    ):
        with stored(path) as file:
            chunks = by_parquet.StoredChunks(file.fd, file.compact, file.digests)
            before = pa.total_allocated_bytes()
            most = rows = 0
            claim = lambda nbytes, what: claimed.append(nbytes)  # noqa: E731
            for batch in by_parquet.batches(chunks, file.footer, [0], columns, where, claim=claim):
                most = max(most, pa.total_allocated_bytes() - before)
                rows += batch.num_rows
        assert rows == expected
        assert most < max(claimed) < 150_000_000


def test_a_limit_decodes_no_more_than_its_rows(path):
    with stored(path) as file:
        chunks = by_parquet.StoredChunks(file.fd, file.compact, file.digests)
        first = next(by_parquet.batches(chunks, file.footer, [0, 1], ["number"], limit=3))
    assert first.num_rows == 3


def test_batches_are_bounded(path):
    with stored(path) as file:
        for options, most_rows, most_bytes in (({"batch_rows": 50}, 50, 10**9), ({"batch_bytes": 5000}, 1000, 10_000)):
            chunks = by_parquet.StoredChunks(file.fd, file.compact, file.digests)
            for batch in by_parquet.batches(chunks, file.footer, [0, 1, 2, 3], ["number", "long"], **options):
                assert batch.num_rows <= most_rows
                assert batch.nbytes <= most_bytes


def test_few_bytes_that_decode_to_many_come_in_bounded_batches(tmp_path):
    path = tmp_path / "long.parquet"
    words = pa.table({"word": ["x" * 10_000] * 1000})
    pq.write_table(words, path)
    assert path.stat().st_size < 30_000
    with stored(path) as file:
        found = list(
            by_parquet.batches(
                by_parquet.StoredChunks(file.fd, file.compact, file.digests),
                file.footer, [0], ["word"], batch_bytes=50_000,
            )
        )  # fmt: skip
    assert max(batch.nbytes for batch in found) <= 100_000
    assert pa.Table.from_batches(found).equals(words)


def sizes(path, column, groups):
    metadata = pq.read_metadata(path)
    return sum(metadata.row_group(group).column(column).total_compressed_size for group in groups)


def test_columns_besides_the_filter_are_read_of_groups_with_a_match_only(path):
    where = compare("==", "number", 650)
    with stored(path) as file:
        _, read_bytes = read(file, ["long"], where, batch_rows=GROUP)
    assert read_bytes == sizes(path, 0, range(4)) + sizes(path, 5, [2])


def test_row_groups_of_which_all_rows_match_are_not_filtered(path):
    where = compare(">=", "number", 400)
    with stored(path) as file:
        found, read_bytes = read(file, ["real"], where, [1, 2, 3], all_match=[False, True, True], batch_rows=GROUP)
    assert read_bytes == sizes(path, 0, [1]) + sizes(path, 1, [1, 2, 3])
    assert found.num_rows == 600


def test_one_row_group_that_is_filtered_beside_others_that_are_not(path):
    """They are decoded together, because they are small."""
    where = compare(">=", "number", 400)
    with stored(path) as file:
        found, _ = read(file, ["number"], where, [1, 2, 3], all_match=[False, True, True])
    assert found["number"].to_pylist() == list(range(400, 1000))


def test_nothing_is_read_to_count_what_all_matches(path):
    with stored(path) as file:
        found, read_bytes = read(file, [], compare(">=", "number", 0), [0, 1, 2], all_match=[True] * 3)
    assert (sum(batch.num_rows for batch in found), read_bytes) == (900, 0)


def test_reading_stops_when_nobody_asks(path):
    with stored(path) as file:
        chunks = by_parquet.StoredChunks(file.fd, file.compact, file.digests)
        batches = by_parquet.batches(chunks, file.footer, [0, 1, 2, 3], ["number"], batch_rows=GROUP)
        next(batches)
        batches.close()
        assert chunks.read_bytes == sizes(path, 0, [0])


def test_a_flipped_bit_never_reaches_the_decoder(path):
    content = bytearray(path.read_bytes())
    column = pq.read_metadata(path).row_group(1).column(5)
    with stored(path) as file:
        for place in (column.dictionary_page_offset, column.data_page_offset + 40):
            content[place] ^= 16
            path.write_bytes(content)
            with pytest.raises(DamagedError, match="changed since they were stored"):
                read(file, ["long"])
            assert read(file, ["long"], groups=[0, 2, 3])[0].num_rows == 700
            content[place] ^= 16


def test_chunks_of_other_row_groups_are_no_answer(path):
    with stored(path) as file:
        chunks = by_parquet.StoredChunks(file.fd, file.compact, file.digests)
        column = file.footer.metadata.row_group(1).column(0)
        place = column.dictionary_page_offset, column.total_compressed_size
        chunks.hold([1])
        assert len(chunks.read(*place)) == place[1]
        chunks.hold([2, 3])
        with pytest.raises(DamagedError, match=f"{place[1]} bytes at byte {place[0]}"):
            chunks.read(*place)


def test_unknown_columns_are_refused(path):
    with stored(path) as file, pytest.raises(RequestError, match="no column 'x'"):
        read(file, ["x"])


def test_streams_that_are_cut_differently_are_put_side_by_side():
    def stream(*sizes):
        numbers = iter(range(100))
        return (pa.record_batch({"n": pa.array([next(numbers) for _ in range(size)], pa.int64())}) for size in sizes)

    rows = by_parquet._Rows(stream(3, 1, 0, 6, 2), 2)
    taken = [rows.next(count)["n"].to_pylist() for count in (2, 2, 5, 0, 3)]
    assert taken == [[0, 1], [2, 3], [4, 5, 6, 7, 8], [], [9, 10, 11]]
    with pytest.raises(DamagedError, match="different numbers of rows"):
        rows.next(1)
    rows = by_parquet._Rows(stream(3, 1, 0, 6, 2), 2)
    rows.skip(5)
    assert rows.next(3)["n"].to_pylist() == [5, 6, 7]
