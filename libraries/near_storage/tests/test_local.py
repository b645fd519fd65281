"""The ways of reading over files of a folder: all give the same answer; what each of them reads."""

import itertools
import math
import os
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import duckdb
import fastparquet
import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from libraries.filters.tree import And, Comparison, Constant, In, IsNull, Literal, Not, Or, Prefix
from libraries.near_storage.errors import DamagedError, PredicateError, RequestError, StaleError
from libraries.near_storage.local import LocalFiles
from libraries.near_storage.query import Aggregate, Query
from libraries.near_storage.storing.partition_metadata import describe_apart

WAYS = list(itertools.product(("v1", "v2", "all"), ("cached", "parsed")))
ROWS, GROUP = 1000, 150


def table(rows=ROWS):
    random = np.random.default_rng(7)
    reals = random.normal(size=rows).round(1)
    reals[random.random(rows) < 0.1] = math.nan
    return pa.table(
        {
            "number": np.arange(rows) // 3,
            "real": pa.array(reals, mask=random.random(rows) < 0.1),
            "word": pa.array([f"word {n}" for n in random.integers(0, 60, rows)], mask=random.random(rows) < 0.2),
            "flag": pa.array(random.random(rows) < 0.01),
            "nothing": pa.nulls(rows, pa.int64()),
        }
    )  # fmt: skip


def by_pyarrow(rows, path):
    pq.write_table(rows, path, row_group_size=GROUP)


def by_pyarrow_otherwise(rows, path):
    options = {"data_page_version": "2.0", "use_dictionary": False, "write_statistics": ["number", "word"]}
    pq.write_table(rows, path, row_group_size=GROUP, compression="zstd", data_page_size=500, **options)


def by_duckdb(rows, path):
    duckdb.sql(f"COPY rows TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")


def by_polars(rows, path):
    polars.from_arrow(rows).write_parquet(path, row_group_size=GROUP)


def by_fastparquet(rows, path):
    frame = rows.drop_columns(["nothing"]).to_pandas()
    frame["nothing"] = np.full(len(frame), math.nan)
    fastparquet.write(str(path), frame, row_group_offsets=GROUP, stats=True)


WRITERS = [by_pyarrow, by_pyarrow_otherwise, by_duckdb, by_polars, by_fastparquet]


def compare(operator, column, value, type):
    return Comparison(operator, column, Literal(value, type))


def number(operator, value):
    return compare(operator, "number", value, pa.int64())


REAL_NOT = compare("!=", "real", 0.5, pa.float64())
WHERES = {
    "all": (None, lambda row: True),
    "few": (number("==", 111), lambda row: row["number"] == 111),
    "range": (
        And((number(">=", 100), number("<", 200))),
        lambda row: 100 <= row["number"] < 200,
    ),
    "none": (number(">", 1000), lambda row: False),
    "not a number": (REAL_NOT, lambda row: row["real"] is not None and row["real"] != 0.5),
    "neither": (
        Not(Or((compare("<=", "real", 9.0, pa.float64()), IsNull("real")))),
        lambda row: row["real"] is not None and math.isnan(row["real"]),
    ),
    "words": (
        Or((Prefix("word", "word 1"), compare("==", "flag", True, pa.bool_()))),
        lambda row: (row["word"] or "").startswith("word 1") or row["flag"],
    ),
    "listed": (
        And((In("number", tuple(Literal(value, pa.int64()) for value in (1, 50, 333))), Not(IsNull("word")))),
        lambda row: row["number"] in (1, 50, 333) and row["word"] is not None,
    ),
    "null": (Constant(None), lambda row: False),
}  # fmt: skip


@pytest.fixture(scope="module", params=WRITERS, ids=lambda writer: writer.__name__)
def written(request, tmp_path_factory):
    """Write three files with one writer and prepare them; return them, the table as read by pyarrow, and its rows."""
    folder = tmp_path_factory.mktemp(request.param.__name__)
    paths = [folder / f"{number}.parquet" for number in range(3)]
    whole = table()
    for start, path in zip((0, 400, 410), paths, strict=True):
        request.param(whole.slice(start, {0: 400, 400: 10, 410: 590}[start]), path)
    stored = pa.concat_tables([pq.ParquetFile(path).read() for path in paths])
    return LocalFiles.prepare(paths), stored, stored.to_pylist()


@pytest.mark.parametrize("where", WHERES)
def test_every_way_gives_the_rows_in_stored_order(written, where):
    files, stored, every_row = written
    predicate, test = WHERES[where]
    rows = [row for row in every_row if test(row)]
    for columns in (None, ("word", "number"), ("nothing",)):
        shown = stored.schema.names if columns is None else list(columns)
        # As text, because NaN does not equal itself.
        expected = str({name: [row[name] for row in rows] for name in shown})
        for way, footers in WAYS:
            found, report = files.query(Query("t", columns, predicate), way, footers)
            assert found.schema.names == shown
            assert found.schema.types == [stored.schema.field(name).type for name in shown]
            assert str(found.to_pydict()) == expected
            assert report.row_groups_chosen <= report.row_groups


def test_rows_with_nan_are_not_lost_where_pyarrow_loses_them(tmp_path):
    path = tmp_path / "nan.parquet"
    pq.write_table(pa.table({"real": [1.0, math.nan, 5.0, 6.0]}), path, row_group_size=2)
    files = LocalFiles.prepare([path])
    one = Literal(1.0, pa.float64())
    for where in (Comparison("!=", "real", one), Not(Comparison("<=", "real", one))):
        for way, footers in WAYS:
            found, _ = files.query(Query("t", None, where), way, footers)
            assert str(found["real"].to_pylist()) == "[nan, 5.0, 6.0]"


@pytest.fixture
def paths(tmp_path):
    paths = [tmp_path / f"{number}.parquet" for number in range(4)]
    for start, path in enumerate(paths):
        by_pyarrow(table().slice(start * 250, 250), path)
    return paths


def chunk_bytes(path, groups, columns):
    metadata = pq.read_metadata(path)
    return sum(metadata.row_group(group).column(column).total_compressed_size for group in groups for column in columns)


def test_what_no_file_can_answer_touches_no_file(paths, monkeypatch):
    files = LocalFiles.prepare(paths)
    opened = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *rest: opened.append(path) or real(path, *rest))
    nothing = Query("t", None, number(">", 10_000))
    for way, footers in (("v2", "cached"), ("v2", "parsed"), ("v1", "cached")):
        found, report = files.query(nothing, way, footers)
        assert (found.num_rows, found.schema) == (0, files.schema)
        assert (report.row_groups, report.row_groups_chosen, report.files, report.opened) == (8, 0, 4, 0)
    assert opened == []
    _, report = files.query(nothing, "v1", "parsed")
    assert (report.footers_parsed, report.read_bytes, len(opened)) == (4, 0, 4)
    _, report = files.query(nothing, "all")
    assert report.read_bytes == files.stored_bytes == sum(path.stat().st_size for path in paths)


def test_exactly_the_chunks_of_kept_row_groups_and_asked_columns_are_read(paths):
    files = LocalFiles.prepare(paths)
    # File 1 has the numbers 83 to 166; those from 133 on are in its second row group.
    query = Query("t", ("word", "real"), And((number(">=", 134), number("<=", 140))))
    expected = chunk_bytes(paths[1], [1], [0, 1, 2])
    for way in ("v1", "v2"):
        found, report = files.query(query, way)
        assert found.num_rows == 21
        assert (report.row_groups_chosen, report.read_bytes) == (1, expected)
    assert sum(len(batch) for batch in files.parts(query)) == 3
    # All rows of the group match, so V1 need not read the filter's column.
    _, report = files.query(Query("t", ("real",), number(">=", 300)), "v1")
    assert report.read_bytes == chunk_bytes(paths[3], [1], [1])


def test_footers_are_parsed_once_or_for_each_query(paths):
    files = LocalFiles.prepare(paths)
    query = Query("t", ("number",), number("<", 10))
    for way, footers, parsed in (
        ("v2", "cached", 1), ("v2", "cached", 0), ("v1", "cached", 0), ("v2", "parsed", 1), ("v1", "parsed", 4),
        ("all", "cached", 3), ("all", "cached", 0), ("all", "parsed", 4),
    ):  # fmt: skip
        assert files.query(query, way, footers)[1].footers_parsed == parsed


def test_kept_footers_are_all_there_before_the_first_query(paths):
    files = LocalFiles.prepare(paths)
    files.keep_footers()
    for way in ("v1", "v2", "all"):
        assert files.query(Query("t", ("number",)), way)[1].footers_parsed == 0


def test_a_changed_footer_is_not_kept(paths):
    files = LocalFiles.prepare(paths)
    content = bytearray(paths[2].read_bytes())
    content[-20] ^= 1
    before = paths[2].stat()
    with paths[2].open("r+b") as file:
        file.write(content)
    os.utime(paths[2], ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(DamagedError, match="digest"):
        files.keep_footers()


@pytest.mark.parametrize("way", ["v1", "v2", "all"])
def test_a_limit_stops_reading(paths, way):
    files = LocalFiles.prepare(paths)
    for limit in (0, 1, 200, 260, 5000):
        found, report = files.query(Query("t", ("number",), number(">=", 1), limit=limit), way)
        assert found["number"].to_pylist() == (np.arange(3, 1000) // 3)[:limit].tolist()
        assert found.schema == pa.schema([("number", pa.int64())])
        assert report.opened == {0: 0, 1: 2, 200: 2, 260: 4, 5000: 8}[limit]
        files = LocalFiles.prepare(paths)


@pytest.mark.parametrize(("way", "footers"), WAYS)
def test_files_are_closed_whatever_becomes_of_a_query(paths, way, footers):
    files = LocalFiles.prepare(paths)
    before = len(os.listdir("/proc/self/fd"))
    files.query(Query("t"), way, footers)
    files.query(Query("t", limit=1), way, footers)
    with paths[3].open("ab") as file:
        file.write(b"x")
    with pytest.raises(StaleError):
        files.query(Query("t"), way, footers)
    parts = files.parts(Query("t"))
    next(parts)
    parts.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_many_threads_ask_at_once(paths):
    files = LocalFiles.prepare(paths)
    low = [0, 50, 120, 250, 300, 333, 900, 20]

    def ask(number_):
        way, footers = WAYS[number_ % len(WAYS)]
        bound = low[number_ % len(low)]
        return bound, files.query(Query("t", ("number",), number(">=", bound)), way, footers)[0]["number"].to_pylist()

    with ThreadPoolExecutor(8) as pool:
        for bound, found in pool.map(ask, range(96)):
            assert found == [value for value in (np.arange(ROWS) // 3).tolist() if value >= bound]


@pytest.mark.parametrize(("way", "footers"), WAYS)
def test_aggregates_of_the_rows_that_match(paths, way, footers):
    files = LocalFiles.prepare(paths)
    rows = [row for row in table().to_pylist() if 20 <= row["number"] < 250]
    where = And((number(">=", 20), number("<", 250)))
    asked = (
        Aggregate("count", None, "rows"), Aggregate("count", "word", "words"), Aggregate("sum", "number", "sum"),
        Aggregate("min", "word", "first"), Aggregate("max", "number", "last"), Aggregate("avg", "number", "mean"),
    )  # fmt: skip
    found, _ = files.query(Query("t", None, where, asked), way, footers)
    words = [row["word"] for row in rows if row["word"] is not None]
    numbers = [row["number"] for row in rows]
    assert found.to_pylist() == [
        {
            "rows": len(rows), "words": len(words), "sum": sum(numbers), "first": min(words), "last": 249,
            "mean": sum(numbers) / len(numbers),
        }
    ]  # fmt: skip
    found, _ = files.query(Query("t", ("flag",), where, asked[:1], ("flag",)), way, footers)
    assert {row["flag"]: row["rows"] for row in found.to_pylist()} == Counter(row["flag"] for row in rows)
    found, _ = files.query(Query("t", None, number(">", 10_000), asked[:3]), way, footers)
    assert found.to_pylist() == [{"rows": 0, "words": 0, "sum": None}]


def test_rows_that_all_match_are_counted_without_reading(paths):
    files = LocalFiles.prepare(paths)
    count = Query("t", None, number(">=", 0), (Aggregate("count", None, "rows"),))
    for query in (count, replace(count, where=None)):
        found, report = files.query(query, "v1")
        assert (found.to_pylist(), report.read_bytes) == ([{"rows": ROWS}], 0)


@pytest.mark.parametrize("way", ["v1", "v2"])
def test_without_the_filter_whole_row_groups_come(paths, way):
    files = LocalFiles.prepare(paths)
    query = Query("t", ("number",), And((number(">=", 134), number("<=", 140))))
    found, _ = files.query(query, way, refilter=False)
    assert found["number"].to_pylist() == (np.arange(400, 500) // 3).tolist()


@pytest.mark.parametrize(("way", "footers"), WAYS)
def test_columns_of_the_answer_alone(paths, way, footers):
    files = LocalFiles.prepare(paths)
    found, _ = files.query(Query("t", (), number("<", 100)), way, footers)
    assert (found.num_rows, found.num_columns) == (300, 0)
    found, _ = files.query(Query("t", ("word", "number"), None, limit=3), way, footers)
    assert found.schema.names == ["word", "number"]


@pytest.mark.parametrize(("way", "footers"), WAYS)
def test_a_file_that_was_replaced_is_noticed(paths, way, footers, tmp_path):
    files = LocalFiles.prepare(paths)
    files.query(Query("t"), way, footers)
    other = tmp_path / "other"
    shutil.copy2(paths[1], other)
    other.replace(paths[1])
    with pytest.raises(StaleError, match=r"1\.parquet: was replaced or changed"):
        files.query(Query("t"), way, footers)


def test_a_file_that_was_written_to_is_noticed(paths):
    files = LocalFiles.prepare(paths)
    found = paths[2].stat()
    with paths[2].open("r+b") as file:
        file.write(b"PAR1")
    os.utime(paths[2], ns=(found.st_atime_ns, found.st_mtime_ns + 1))
    with pytest.raises(StaleError, match=r"2\.parquet"):
        files.query(Query("t"))


@pytest.mark.parametrize(("way", "footers"), WAYS)
def test_flipped_bits_are_never_an_answer(paths, way, footers):
    """Bits that flip on a disk do not change the times of the file."""
    files = LocalFiles.prepare(paths)
    times = paths[0].stat()
    content = bytearray(paths[0].read_bytes())
    expected, refused = str(table().to_pylist()), 0
    for place in range(4, len(content), 97):
        content[place] ^= 4
        paths[0].write_bytes(content)
        os.utime(paths[0], ns=(times.st_atime_ns, times.st_mtime_ns))
        try:
            found = files.query(Query("t"), way, footers)[0]
        except DamagedError:
            refused += 1
        else:
            assert str(found.to_pylist()) == expected
        content[place] ^= 4
    assert refused > 20


def test_files_of_other_columns_are_refused(paths, tmp_path):
    with pytest.raises(RequestError, match="no files"):
        LocalFiles.prepare([])
    other = tmp_path / "other.parquet"
    pq.write_table(table().set_column(0, "number", pa.array([1.0] * ROWS)), other)
    with pytest.raises(RequestError, match=r"other\.parquet: has other columns than 0\.parquet"):
        LocalFiles.prepare([*paths, other])


def test_metadata_of_the_schema_do_not_make_another_table(paths, tmp_path):
    other = tmp_path / "other.parquet"
    by_pyarrow(table().replace_schema_metadata({"pandas": "{}"}), other)
    files = LocalFiles.prepare([*paths, other])
    for way, footers in WAYS:
        assert files.query(Query("t", ("number",)), way, footers)[0].num_rows == 2 * ROWS


def test_unknown_columns_are_refused(paths):
    files = LocalFiles.prepare(paths)
    with pytest.raises(RequestError, match="no column 'x'"):
        files.query(Query("t", ("x",)))
    with pytest.raises(PredicateError, match="x"):
        files.query(Query("t", None, compare("<", "x", 1, pa.int64())))


def test_files_without_rows(tmp_path):
    paths = [tmp_path / f"{number}.parquet" for number in range(3)]
    for rows, path in zip((0, 5, 0), paths, strict=True):
        by_pyarrow(table().slice(0, rows), path)
    for some, count in ((paths, 5), (paths[:1], 0)):
        files = LocalFiles.prepare(some)
        for way, footers in WAYS:
            found, _ = files.query(Query("t"), way, footers)
            assert (found.num_rows, found.schema) == (count, table().schema)


def test_nested_columns_come_whole(tmp_path):
    path = tmp_path / "nested.parquet"
    rows = pa.table(
        {
            "number": range(100),
            "s": [{"a": value, "b": [str(value)] * (value % 3)} if value % 5 else None for value in range(100)],
            "s.a": [str(value) for value in range(100)],
            "map": pa.array([[("k", value)] for value in range(100)], pa.map_(pa.string(), pa.int64())),
        }
    )
    pq.write_table(rows, path, row_group_size=30)
    files = LocalFiles.prepare([path])
    for way, footers in WAYS:
        for columns in (None, ("s",), ("s.a",), ("map", "s")):
            found, _ = files.query(Query("t", columns, number(">", 60)), way, footers)
            assert found.equals(rows.slice(61) if columns is None else rows.slice(61).select(columns))
        assert files.query(Query("t", None, IsNull("s")), way, footers)[0].equals(rows.take(pa.array(range(0, 100, 5))))
        with pytest.raises(PredicateError):
            files.query(Query("t", None, compare("==", "s", 1, pa.int64())), way, footers)


def test_links_are_described_once(paths, tmp_path, monkeypatch):
    links = [tmp_path / f"link {number}" for number in range(5)]
    for link in links:
        link.hardlink_to(paths[0])
    files = LocalFiles.prepare([paths[0], *links, paths[1]])
    assert len({id(file.compact) for file in files._files}) == 2
    found, report = files.query(Query("t", ("number",)))
    assert found["number"].to_pylist() == (np.arange(250) // 3).tolist() * 6 + (np.arange(250, 500) // 3).tolist()
    assert report.footers_parsed == 2


def test_kept_descriptions_are_enough(paths, monkeypatch):
    infos = [describe_apart(path, "0" * 64) for path in paths]
    opened = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *rest: opened.append(path) or real(path, *rest))
    files = LocalFiles.of(zip(paths, infos, strict=True))
    assert files.query(Query("t", None, number("<", 0)))[0].num_rows == 0
    assert opened == []
    prepared = LocalFiles.prepare(paths)
    for way, footers in WAYS:
        query = Query("t", None, number(">", 100))
        (found, report), (same, alike) = (each.query(query, way, footers) for each in (files, prepared))
        assert (str(found.to_pylist()), report) == (str(same.to_pylist()), alike)
    with paths[0].open("ab") as file:
        file.write(b"x")
    with pytest.raises(StaleError, match=r"0\.parquet: has \d+ bytes"):
        LocalFiles.of(zip(paths, infos, strict=True))
