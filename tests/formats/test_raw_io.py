"""Raw I/O keeps the contract."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from adapters.errors import AdapterError
from bench_runner.machine.linux import evict_file, fsync_all, io_bytes, resident_file_bytes
from formats.raw_io import RawIO
from tests.contracts.tabular import TabularFormatContract, ordinary_table


class TestFloor(TabularFormatContract):
    variant = "raw-io"


def saved(location: Path) -> RawIO:
    yardstick = RawIO()
    yardstick.load_library()
    yardstick.save(ordinary_table(), location)
    return yardstick


@pytest.mark.rule(16)
def test_the_file_is_the_buffers_and_little_more(tmp_path: Path) -> None:
    saved(tmp_path / "t")
    assert ordinary_table().nbytes < (tmp_path / "t").stat().st_size < ordinary_table().nbytes + 4_096


def test_a_part_of_a_table_is_stored_as_that_part(tmp_path: Path) -> None:
    yardstick = saved(tmp_path / "whole")
    yardstick.save(ordinary_table().slice(7, 10), tmp_path / "part")
    assert yardstick.read(tmp_path / "part").equals(ordinary_table().slice(7, 10))
    assert (tmp_path / "part").stat().st_size < (tmp_path / "whole").stat().st_size / 10


def test_buffers_keep_the_alignment_of_arrow(tmp_path: Path) -> None:
    table: pa.Table = saved(tmp_path / "t").read(tmp_path / "t")
    addresses = [buffer.address for column in table.columns for buffer in column.chunk(0).buffers() if buffer]
    assert [address % 8 for address in addresses] == [0] * len(addresses)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    yardstick = saved(tmp_path / "t")
    (tmp_path / "other").write_bytes(b"PAR1" * 40)
    with pytest.raises(AdapterError, match="not a raw I/O file"):
        yardstick.read(tmp_path / "other")


COLUMNS_OF_MANY_BUFFERS = {
    "nulls alone": pa.nulls(4),
    "views": pa.array(["a", None, "longer than a view can hold itself", ""], pa.string_view()),
    "dictionary": pa.array(["a", None, "b", "a"]).dictionary_encode(),
    "lists": pa.array([["a"], None, [], [None, None, "b"]], pa.list_(pa.string())),
    "lists of a size": pa.array([[1, 2], None, [3, 4], [5, 6]], pa.list_(pa.int16(), 2)),
    "structs": pa.array([{"a": 1, "b": ["x"]}, None, {"a": None, "b": None}, {"a": 2, "b": []}]),
    "views in structs": pa.array(
        [{"a": "longer than a view can hold itself", "b": b"also longer than that", "c": 1}, None, {"a": ""}, {}],
        pa.struct({"a": pa.string_view(), "b": pa.binary_view(), "c": pa.int8()}),
    ),
    "maps": pa.array([[("k", 1)], None, [], [("l", None)]], pa.map_(pa.string(), pa.int64())),
    "booleans": pa.array([True, None, False, True]),
    "bytes of a size": pa.array([b"ab", None, b"cd", b"ef"], pa.binary(2)),
}

OF_VIEWS = {"views", "views in structs"}


@pytest.mark.parametrize("name", COLUMNS_OF_MANY_BUFFERS)
def test_each_column_is_found_among_the_buffers_of_all(name: str, tmp_path: Path) -> None:
    """In two batches with different dictionaries."""
    first = pa.table(COLUMNS_OF_MANY_BUFFERS)
    other = first.set_column(2, "dictionary", pa.array(["c", "d", None, "c"]).dictionary_encode())
    table = pa.concat_tables([first, other])
    yardstick = RawIO()
    yardstick.load_library()
    yardstick.save(table, tmp_path / "t")
    handle = yardstick.open(tmp_path / "t")
    assert handle.project is not None
    projected = handle.project([name, "booleans"] if name != "booleans" else [name])
    handle.close()
    projected.validate(full=True)
    assert projected[name].equals(yardstick.read(tmp_path / "t")[name])


@pytest.mark.parametrize(
    "name", sorted({*COLUMNS_OF_MANY_BUFFERS, "lists of lists of sizes", "texts of other letters"} - OF_VIEWS)
)
@pytest.mark.rule(16)
def test_rows_of_each_column_are_found_by_their_bytes(name: str, tmp_path: Path) -> None:
    """In batches, some of which have no nulls, values or rows. pyarrow cannot take rows of views."""
    kinds = {name: column for name, column in COLUMNS_OF_MANY_BUFFERS.items() if name not in OF_VIEWS}
    kinds["lists of lists of sizes"] = pa.array(
        [[[1, 2], [3, 4]], None, [], [None, [5, None]]], pa.list_(pa.list_(pa.int16(), 2))
    )
    kinds["texts of other letters"] = pa.array(["ä", None, "", "列車"], pa.large_string())
    table = pa.table(kinds)
    first = table.slice(0, 1)
    parts = [table.slice(0, 0), first, table, table.slice(2, 0), table.slice(1, 3), first, table]
    yardstick = RawIO()
    yardstick.load_library()
    yardstick.save(pa.concat_tables(parts), tmp_path / "t")
    read = yardstick.read(tmp_path / "t")
    numbers = np.array([12, 0, 3, 3, 4, 5, 6, 7, 2, 11, 10, 9, 8, 1, 0], np.int64)
    handle = yardstick.open_rows(tmp_path / "t")
    assert handle.take is not None
    taken = handle.take(numbers, [name])
    nothing = handle.take(numbers[:0], [name])
    handle.close()
    taken.validate(full=True)
    assert taken[name].to_pylist() == [read[name][number].as_py() for number in numbers.tolist()]
    assert taken.schema == read.select([name]).schema
    assert nothing.num_rows == 0


@pytest.mark.rule(16)
def test_a_take_reads_the_bytes_of_its_rows_and_no_others(tmp_path: Path) -> None:
    """Neighbours share one call."""
    table = pa.table({"vector": pa.FixedSizeListArray.from_arrays(np.arange(4_096_000, dtype=np.float32), 1_024)})
    yardstick = RawIO()
    yardstick.load_library()
    yardstick.save(table, tmp_path / "t")
    handle = yardstick.open_rows(tmp_path / "t")
    assert handle.take is not None
    numbers = np.array([7, 8, 9, 3_000, 5], np.int64)
    before = io_bytes()
    taken = handle.take(numbers, ["vector"])
    after = io_bytes()
    handle.close()
    assert taken.equals(table.take(numbers))
    assert after.asked_since(before) == 5 * 4_096


@pytest.mark.disk
def test_of_a_cold_copy_nothing_is_read_along(tmp_path: Path) -> None:
    """Otherwise a take would measure the read-ahead of the device."""
    table = pa.table({"vector": pa.FixedSizeListArray.from_arrays(np.arange(4_096_000, dtype=np.float32), 1_024)})
    yardstick = RawIO()
    yardstick.load_library()
    yardstick.save(table, tmp_path / "t")
    fsync_all(tmp_path / "t")
    evict_file(tmp_path / "t")
    assert resident_file_bytes(tmp_path / "t") == 0
    handle = yardstick.open_rows(tmp_path / "t")
    assert handle.take is not None
    handle.take(np.arange(0, 4_000, 200), ["vector"])
    handle.close()
    # Twenty rows of a page in size, not aligned to pages, and what opening needs.
    assert resident_file_bytes(tmp_path / "t") <= (2 * 20 + 16) * 4_096


def test_a_file_that_shrank_while_it_was_open_is_an_error(tmp_path: Path) -> None:
    yardstick = saved(tmp_path / "t")
    handle = yardstick.open_rows(tmp_path / "t")
    assert handle.take is not None
    os.truncate(tmp_path / "t", 600)
    with pytest.raises(AdapterError, match="the file ends too early"):
        handle.take(np.array([ordinary_table().num_rows - 1]), ordinary_table().column_names)
    handle.close()


def test_dictionaries_are_appended_with_their_rows(tmp_path: Path) -> None:
    first, other = (pa.table({"d": pa.array(words).dictionary_encode()}) for words in (["a", "b"], ["c", None, "a"]))
    yardstick = RawIO()
    yardstick.load_library()
    yardstick.save(first, tmp_path / "t")
    yardstick.append(other, tmp_path / "t")
    assert yardstick.read(tmp_path / "t")["d"].to_pylist() == ["a", "b", "c", None, "a"]
    yardstick.stored(tmp_path / "t")


@pytest.mark.parametrize("cut", [1, 1_000])
def test_a_file_cut_short_is_refused(cut: int, tmp_path: Path) -> None:
    yardstick = saved(tmp_path / "t")
    whole = (tmp_path / "t").read_bytes()
    (tmp_path / "t").write_bytes(whole[:-cut])
    for look in (yardstick.read, yardstick.open, yardstick.stored):
        with pytest.raises(AdapterError, match="the save did not finish"):
            look(tmp_path / "t")
