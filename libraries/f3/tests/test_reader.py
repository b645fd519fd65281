"""Written tables are read back completely, by columns, by rows and in batches, and no unneeded bytes are read."""

import functools
import io
import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash

from libraries import f3
from libraries.f3.columns import plan, shredding, values
from libraries.f3.container import io as f3_io
from libraries.f3.container import metadata
from libraries.f3.decoders import native
from libraries.f3.tests import plain_coding
from libraries.f3.tests.tables import opened, stored, varied

SMALL = {"rows_per_unit": 64, "unit_bytes": 500}
TABLE = varied()


@functools.cache
def written(dictionary: str, coding: Any = None) -> bytes:
    """Return the table in several row groups, written once for all tests that read it in this form."""
    out = io.BytesIO()
    f3.write(TABLE, out, **SMALL, row_group_rows=300, dictionary=dictionary, **({"coding": coding} if coding else {}))
    return out.getvalue()


@pytest.mark.parametrize(("way", "dictionary"), list(enumerate(["none", "local", "shared", "best"])))
@pytest.mark.parametrize(("number", "codec"), list(enumerate([None, "zstd", "lz4"])))
def test_a_table_comes_back(way, dictionary, number, codec):
    """The table is stored in one row group or in two, with each dictionary scope and each codec."""
    table = TABLE.slice(0, 400)
    groups = {"row_group_rows": 300 if (way + number) % 2 else None, "scope_rows": 256}
    file = stored(table, **SMALL, **groups, dictionary=dictionary, codec=codec, checksums=True)
    for verify in ("units", "file", "none"):
        read = opened(file, verify=verify).read()
        read.validate(full=True)
        assert read.equals(table)
    assert pa.Table.from_batches(list(opened(file).batches())).equals(table)


ROWS = [
    slice(10, 20),
    slice(100, 900),
    slice(-3, None),
    slice(None, None, 7),
    slice(None, None, -1),
    slice(500, 500),
    range(3, 990),
    range(63, 65),
    range(300, 301),
    [5, 5, 999, 0, 500],
    np.array([1], np.uint8),
    [],
]


@pytest.mark.parametrize("rows", ROWS, ids=str)
@pytest.mark.parametrize("dictionary", ["none", "local", "shared"])
def test_some_rows_of_some_columns_come_back(rows, dictionary):
    file = written(dictionary, plain_coding)
    names = ["struct", "list", "text", "deep"]
    numbers = range(1000)[rows] if isinstance(rows, slice) else rows
    expected = TABLE.select(names).take(pa.array(numbers, pa.int64()))
    read = opened(file).read(names, rows)
    read.validate(full=True)
    assert read.equals(expected)


def test_row_groups_become_one_array():
    read = opened(stored(TABLE, **SMALL, row_group_rows=300)).read()
    assert {column.num_chunks for column in read.columns} == {1}


@pytest.mark.parametrize("at_once_bytes", [1, 2000])
@pytest.mark.parametrize("prefer", ["native", "wasm"])
@pytest.mark.parametrize("dictionary", ["none", "local", "shared"])
def test_a_local_file_is_read_into_the_same_memory_again_and_again(
    tmp_path, monkeypatch, at_once_bytes, prefer, dictionary
):
    monkeypatch.setattr(f3_io._LocalSource, "at_once_bytes", at_once_bytes)
    monkeypatch.setattr(plan, "_GROUP_BYTES", 0)
    buffers = []
    whole = f3_io._in_large_pages
    monkeypatch.setattr(f3_io, "_in_large_pages", lambda size_bytes: buffers.append(size_bytes) or whole(size_bytes))
    (tmp_path / "t.f3").write_bytes(written(dictionary))
    with f3.open(tmp_path / "t.f3", prefer=prefer) as file:
        read = file.read()
        assert len(buffers) == 1
        assert file.read(rows=[3, 999, 500]).equals(TABLE.take([3, 999, 500]))
    read.validate(full=True)
    assert read.equals(TABLE)


def test_what_a_decoder_hands_out_of_the_file_is_not_written_over(tmp_path, monkeypatch):
    """A decoder of the user may return a part of the payload without copying it."""

    def lent(self, payload, arrow_type, rows):
        return pa.Array.from_buffers(arrow_type, rows, [None, pa.py_buffer(payload[4 + rows :])])

    monkeypatch.setattr(plain_coding.Decoder, "decode", lent)
    monkeypatch.setattr(f3_io._LocalSource, "at_once_bytes", 1)
    monkeypatch.setattr(plan, "_GROUP_BYTES", 0)
    table = pa.table({str(number): np.random.default_rng(number).integers(0, 1 << 60, 1000) for number in range(20)})
    f3.write(table, tmp_path / "t.f3", coding=plain_coding)
    read = opened(tmp_path / "t.f3").read()
    assert read.equals(table)


def test_what_is_too_long_for_one_array_becomes_several(monkeypatch):
    """The real limits are 2 GB of texts and 2 billion items. Here the limit is 400."""
    monkeypatch.setattr(shredding, "_MOST_ITEMS", 400)
    monkeypatch.setattr(values, "_MOST_SHORT_BYTES", 400)

    def refusing(self, payloads, arrow_type, rows, whole=plain_coding.Decoder.decode_into):
        array = whole(self, payloads, arrow_type, rows)
        if pa.types.is_string(arrow_type) and array.nbytes > 400:
            raise f3.F3Error("does not fit")
        return array

    monkeypatch.setattr(plain_coding.Decoder, "decode_into", refusing)
    read = opened(stored(TABLE, rows_per_unit=10)).read()
    assert read.equals(TABLE)
    assert {name: read[name].num_chunks > 1 for name in ("list", "text", "int")} == {
        "list": True, "text": True, "int": False,
    }  # fmt: skip


@pytest.mark.parametrize("prefer", ["native", "wasm"])
def test_numbers_that_are_too_many_for_one_array_become_several(monkeypatch, prefer):
    """The real limit is 4 GiB of numbers. Here it is 60 kB."""
    numbers = np.random.default_rng(1).integers(0, 1 << 40, 10_000)
    table = pa.table(
        {
            "number": numbers,
            "struct": pa.StructArray.from_arrays([pa.array(numbers)], ["field"]),
            "list": pa.ListArray.from_arrays(pa.array(range(0, 10_001, 2), pa.int32()), pa.array(numbers)).take(
                pa.array(list(range(5000)) * 2)
            ),
            "same": np.full(10_000, 7),
        }
    )
    file = io.BytesIO()
    f3.write(table, file, rows_per_unit=500)
    monkeypatch.setattr(native, "MOST_ARRAY_BYTES", 60_000)
    monkeypatch.setattr(values, "_MOST_RATIO", 16)
    opened = f3.open(file, prefer=prefer)
    read = opened.read(["number", "struct", "list"])
    assert read.equals(table.drop_columns("same"))
    assert min(column.num_chunks for column in read.columns) > 1
    # Columns that take hardly any bytes in the file are rejected, because they could request any amount of memory.
    with pytest.raises(f3.F3Error, match="column same: 10000 rows of 80000 bytes"):
        opened.read(["same"])


def test_texts_of_a_shared_dictionary_that_are_too_long_for_one_array_become_several(monkeypatch):
    def refusing(values, indices, whole=values.looked_up):
        array = whole(values, indices)
        if array.nbytes > 400:
            raise pa.ArrowInvalid("Take operation overflowed binary array capacity")
        return array

    monkeypatch.setattr(values, "looked_up", refusing)
    read = opened(stored(TABLE, dictionary="shared", rows_per_unit=10)).read(["text"])
    assert read.equals(TABLE.select(["text"]))
    assert read["text"].num_chunks > 1


def test_texts_that_are_asked_for_too_often_for_one_array_become_several(monkeypatch):
    def refusing(array, places, whole=plan.pc.take, **how):
        taken = whole(array, places, **how)
        if taken.nbytes > 400:
            raise pa.ArrowInvalid("Take operation overflowed binary array capacity")
        return taken

    file = opened(stored(TABLE, rows_per_unit=100))
    monkeypatch.setattr(plan.pc, "take", refusing)
    read = file.read(["text"], rows=[1, 999] * 100)
    assert read["text"].to_pylist() == TABLE["text"].to_pylist()[1:1000:998] * 100
    assert read["text"].num_chunks > 1


def test_metadata_of_the_schema_and_of_fields_come_back():
    schema = pa.schema([pa.field("a", pa.int32(), nullable=False, metadata={"unit": "m"})], metadata={"by": "us"})
    read = opened(stored(pa.table({"a": pa.array([1], pa.int32())}).cast(schema))).read()
    assert read.schema.equals(schema, check_metadata=True)
    assert opened(stored(read)).read(["a"]).schema.equals(schema, check_metadata=True)


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("dictionary", ["none", "local", "shared", "best"])
def test_tables_of_next_to_nothing_come_back(rows, dictionary):
    table = TABLE.slice(0, rows)
    file = opened(stored(table, dictionary=dictionary))
    assert file.read().equals(table)
    assert file.num_rows == rows
    assert sum(batch.num_rows for batch in file.batches()) == rows


@pytest.mark.parametrize("how", [{}, {"row_group_rows": 3}, {"rows_per_unit": 2}, {"dictionary": "shared"}])
def test_a_table_without_columns_keeps_its_rows(how):
    # These tables have rows but no columns. Other pyarrow calls lose their rows: replace_schema_metadata, and
    # to_batches after select([]).
    table = shredding.rows_alone(pa.schema([], metadata={"of": "rows alone"}), 10)
    (batch,) = table.to_batches()
    for data in (table, batch, pa.RecordBatchReader.from_batches(batch.schema, [batch.slice(0, 4), batch.slice(4, 6)])):
        file = opened(stored(data, **how))
        assert (file.num_rows, file.describe().rows) == (10, 10)
        assert (file.read().num_rows, file.read().schema.metadata) == (10, {b"of": b"rows alone"})
        assert file.read(rows=[9, 0, 9]).num_rows == 3
        assert file.read(rows=slice(4, 100)).num_rows == 6
        assert sum(batch.num_rows for batch in file.batches()) == 10
        with pytest.raises(f3.F3Error, match="row 10 does not exist; the file has 10 rows"):
            file.read(rows=[10])


def test_a_table_without_columns_may_come_piece_by_piece():
    table = TABLE.select([])
    out = io.BytesIO()
    with f3.Writer(out, table.schema, rows_per_unit=400, coding=plain_coding) as writer:
        for rows in (1, 399, 400, 0, 401):
            writer.write_table(table.slice(0, rows))
    assert opened(out).read().num_rows == 1201


def test_no_columns_of_a_table_have_its_rows():
    table = pa.table({})
    assert opened(stored(table)).read().equals(table)
    assert [batch.num_rows for batch in opened(stored(TABLE, row_group_rows=600)).batches([])] == [600, 400]
    assert opened(stored(TABLE)).read([]).num_rows == len(TABLE)
    assert opened(stored(TABLE)).read([], rows=slice(0, 5)).num_rows == 5


def test_columns_of_the_same_name_come_back_and_cannot_be_told_apart():
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2.0])], names=["a", "a"])
    file = opened(stored(table))
    assert file.read().equals(table)
    with pytest.raises(f3.F3Error, match="2 columns are named 'a'"):
        file.read(["a"])


def test_a_column_may_be_asked_for_twice():
    assert opened(stored(TABLE)).read(["text", "text"]).column(1).equals(TABLE["text"])


def test_unknown_columns_are_told_with_those_that_there_are():
    with pytest.raises(f3.F3Error, match=r"no columns are named 'nope'; the file has: int, float, .*, long, \.\.\."):
        opened(stored(TABLE)).read(["nope"])
    with pytest.raises(f3.F3Error, match="must be a list of names"):
        opened(stored(TABLE)).read("int")


@pytest.mark.parametrize("columns", [3, [3], [None], [b"int"]], ids=str)
def test_columns_that_are_no_names_are_refused(columns):
    with pytest.raises(f3.F3Error, match="must be a list of names"):
        opened(stored(TABLE)).read(columns)


@pytest.mark.parametrize("rows", [[1000], [-1], range(990, 1001), range(-1, 3), [0, 10**12]])
def test_rows_that_there_are_none_of_are_refused(rows):
    with pytest.raises(f3.F3Error, match="the file has 1000 rows, counted from 0"):
        opened(stored(TABLE)).read(rows=rows)


@pytest.mark.parametrize(
    ("rows", "asked"),
    [
        (np.array([2**63], np.uint64), f"row {2**63} does not exist"),
        (np.array([2**64 - 1, 3], np.uint64), rf"row {2**64 - 1} .* \(wanted: rows from 3 to {2**64 - 1}\)"),
        ([2**63], f"row {2**63} does not exist"),
        ([2, 2**64 - 1], rf"row {2**64 - 1} .* \(wanted: rows from 2 to {2**64 - 1}\)"),
        ([-1, 2**64], rf"row -1 .* \(wanted: rows from -1 to {2**64}\)"),
        (pa.array([2**64 - 1], pa.uint64()), f"row {2**64 - 1} does not exist"),
        (range(0, 2**64, 2**63), rf"row {2**63} .* \(wanted: rows from 0 to {2**63}\)"),
        (range(2**64), rf"row {2**64 - 1} .* \(wanted: rows from 0 to {2**64 - 1}\)"),
        (range(2**64, -1, -1), rf"row {2**64} .* \(wanted: rows from 0 to {2**64}\)"),
    ],
)
def test_errors_name_rows_beyond_64_bits_as_they_were_asked_for(rows, asked):
    with pytest.raises(f3.F3Error, match=f"^an open file: {asked}; the file has 1000 rows"):
        opened(stored(TABLE)).read(rows=rows)


@pytest.mark.parametrize(
    "rows",
    [
        np.array([5, 2], np.uint64), [np.uint64(5), 2], [np.uint64(5), np.int64(2)], np.array([5, 2], object),
        range(5, 2, -3 - 2**64), range(5, 1, -3), slice(np.uint64(5), np.uint64(6)), slice(5, 6, 2**64),
    ],
)  # fmt: skip
def test_row_numbers_may_be_of_any_type_of_whole_numbers(rows):
    wanted = [5, 2] if not isinstance(rows, slice) and len(rows) == 2 else [5]
    assert opened(stored(TABLE)).read(["int"], rows=rows).equals(TABLE.select(["int"]).take(wanted))


@pytest.mark.parametrize("rows", [[1.5], [2.0], [None], {1}, [True, False], [[1], [2]], [[1], [2, 3]], ["a"], 7])
def test_rows_that_are_no_numbers_are_refused(rows):
    with pytest.raises(f3.F3Error, match="must be a slice, range or list of row numbers"):
        opened(stored(TABLE)).read(rows=rows)


def test_a_number_of_threads_may_be_one_of_numpy():
    assert opened(stored(TABLE), threads=np.uint64(2)).read().equals(TABLE)


@pytest.mark.parametrize("parameter", [{"verify": "all"}, {"prefer": "fast"}])
def test_unknown_parameters_are_refused(parameter):
    with pytest.raises(f3.F3Error, match=r" must be '.*got "):
        opened(stored(TABLE), **parameter)


class Watched(io.BytesIO):
    """A file that records its reads."""

    def __init__(self, data):
        super().__init__(data)
        self.reads = []

    def read(self, size=-1):
        start = self.tell()
        data = super().read(size)
        self.reads.append((start, start + len(data)))
        return data


class Counting:
    """The plain coding, with a count of the units that it decodes."""

    encode, modules = staticmethod(plain_coding.encode), staticmethod(plain_coding.modules)

    def __init__(self):
        self.decoded = []
        outer = self

        class Decoder(plain_coding.Decoder):
            def decode(self, payload, arrow_type, rows):
                outer.decoded.append((str(arrow_type), rows))
                return super().decode(payload, arrow_type, rows)

        self.Decoder = Decoder


def test_only_units_that_hold_the_rows_are_decoded():
    coding = Counting()
    file = f3.open(stored(TABLE, rows_per_unit=100), coding=coding)
    file.read(["int"], rows=[250])
    assert coding.decoded == [("int64", 100)]
    coding.decoded.clear()
    file.read(["float"], rows=slice(199, 301))
    assert coding.decoded == [("double", 100)] * 3


def test_a_projection_reads_its_columns_alone():
    wide = pa.table({f"c{number}": np.arange(20_000) + number for number in range(40)})
    data = Watched(stored(wide).getvalue())
    file = opened(data)
    data.reads.clear()
    assert file.read(["c7"])["c7"].equals(wide["c7"])
    assert sum(stop - start for start, stop in data.reads) < 1.2 * len(data.getvalue()) / 40


def test_a_row_reads_its_unit_alone_unless_the_whole_is_verified():
    numbers = pa.table({"a": np.arange(100_000)})
    for checksums, most in ((False, 20_000), (True, 1_000_000)):
        data = Watched(stored(numbers, rows_per_unit=1000, checksums=checksums).getvalue())
        file = opened(data)
        data.reads.clear()
        assert file.read(rows=[54_321])["a"].to_pylist() == [54_321]
        assert most / 20 < sum(stop - start for start, stop in data.reads) < most


def test_scattered_rows_read_their_units_alone(monkeypatch):
    """Units between the requested ones are not read, although they are in the same IOUnit."""
    monkeypatch.setattr(f3_io._OpenSource, "near_bytes", 0)
    random = np.random.default_rng(5)
    table = pa.table({"a": random.random(200_000), "b": random.random(200_000)})
    data = Watched(stored(table, rows_per_unit=1_000).getvalue())
    file = opened(data)
    data.reads.clear()
    rows = np.array([150_500, 10, 100_100, 20])
    assert file.read(rows=rows).equals(table.take(pa.array(rows)))
    # The sum of three units of each of two columns, at 8 bytes a value, and the metadata of 400 units.
    assert sum(stop - start for start, stop in data.reads) < 2 * 3 * 1_000 * 8 + 30_000


@pytest.mark.parametrize("call", [lambda file: file.read(), lambda file: list(file.batches())])
def test_no_byte_of_data_is_read_twice(call, monkeypatch):
    # Otherwise a gap between two units could be read twice.
    monkeypatch.setattr(f3_io._OpenSource, "near_bytes", 0)
    data = Watched(stored(TABLE, **SMALL, checksums=True).getvalue())
    file = opened(data)
    data.reads.clear()
    call(file)
    ranges = sorted(data.reads)
    assert all(first[1] <= second[0] for first, second in pairwise(ranges))


def test_batches_hold_the_io_units_of_one_batch():
    """Iterating over a file of many IOUnits keeps only a few of them in memory."""
    table = pa.table({"a": np.arange(200_000)})
    file = opened(stored(table, rows_per_unit=1000, unit_bytes=20_000))
    batches = file.batches()
    next(batches)
    before = pa.total_allocated_bytes()
    for batch in batches:
        assert batch.num_rows == 1000
        assert pa.total_allocated_bytes() - before < 200_000


def test_batches_of_columns_with_other_units_each():
    """Columns of other writers may have different unit boundaries. Batches follow the column with the largest units."""
    read = opened(stored(TABLE, **SMALL)).batches(["int", "text"])
    assert {batch.num_rows for batch in read} == {64, 1000 % 64}


def test_describe_tells_how_a_file_is_made():
    file = opened(stored(TABLE, **SMALL, codec="zstd", row_group_rows=300, checksums=True))
    told = file.describe()
    assert (told.rows, told.row_groups, told.checksums) == (1000, 4, True)
    assert [column.name for column in told.columns] == [
        "int", "float", "text", "bool", "list", "list[]", "deep", "deep[]", "deep[][]", "deep[][].x", "deep[][].y",
        "struct", "struct.a", "struct.b", "struct.b[]", "long", "time",
    ]  # fmt: skip
    text = told.columns[2]
    # 300 rows are four units of 64 rows and one of 44. The last 100 rows are in two units.
    assert (text.rows, text.enc_units, text.scopes, text.modules) == (1000, 17, ("none",), (1,))
    assert text.codecs == ("zstd",)
    assert told.codecs == ("zstd",)
    assert [module.xxh64 for module in told.modules] == [
        xxhash.xxh64_intdigest(code) for code in plain_coding.MODULES.values()
    ]


def test_a_path_is_opened_and_given_back(tmp_path):
    path = tmp_path / "table.f3"
    path.write_bytes(stored(TABLE).getvalue())
    with opened(path) as file:
        read = file.read()
    path.write_bytes(b"")
    assert read.equals(TABLE)
    with pytest.raises(f3.F3Error) as raised:
        file.read(rows=[1])
    assert str(raised.value) == f"{path}: is closed; open it again"


def test_what_is_no_file_is_told(tmp_path):
    with pytest.raises(FileNotFoundError):
        f3.open(tmp_path / "nothing.f3", coding=plain_coding)
    with pytest.raises(f3.F3Error, match="is not a file but a folder"):
        f3.open(tmp_path, coding=plain_coding)
    (tmp_path / "short.f3").write_bytes(b"F3")
    with pytest.raises(f3.F3Error, match=r"short\.f3: 2 bytes are too few"):
        f3.open(tmp_path / "short.f3", coding=plain_coding)


def test_a_file_of_fsspec_is_read_and_written():
    name = "memory://f3-tests/table.f3"
    f3.write(TABLE, name, coding=plain_coding)
    with opened(name) as file:
        assert file.read().equals(TABLE)


def test_too_little_memory_is_told_with_its_place(monkeypatch):
    file = opened(stored(TABLE))
    monkeypatch.setattr(plain_coding.Decoder, "decode", lambda *arguments: bytearray(2**62))
    with pytest.raises(f3.F3Error, match="column int: not enough memory"):
        file.read()


# --- threads -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(("number", "dictionary"), list(enumerate(["none", "local", "shared"])))
def test_any_number_of_threads_reads_the_same(tmp_path, monkeypatch, threads, number, dictionary):
    """The table is read natively and by Wasm, with each number of threads and each dictionary scope."""
    prefer = "wasm" if (threads + number) % 2 else "native"
    monkeypatch.setattr(plan, "_PARALLEL_BYTES", 0)
    monkeypatch.setattr(plan, "_GROUP_BYTES", 0)
    monkeypatch.setattr(plan, "_LEAST_PART_BYTES", 0)
    monkeypatch.setattr(plan, "_PARTS_PER_THREAD", 30)
    (tmp_path / "t.f3").write_bytes(written(dictionary))
    with f3.open(tmp_path / "t.f3", prefer=prefer, threads=threads) as file:
        for _ in range(3):
            read = file.read()
            assert read.equals(TABLE)
        assert (max(column.num_chunks for column in read.columns) > 1) == (threads > 1 and prefer == "native")
        assert file.read(rows=slice(250, 777)).equals(TABLE.slice(250, 527))
        assert file.read(rows=[3, 999, 500]).equals(TABLE.take([3, 999, 500]))


def test_a_fault_in_a_thread_names_its_place(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "_PARALLEL_BYTES", 0)
    monkeypatch.setattr(plan, "_GROUP_BYTES", 0)
    f3.write(TABLE, tmp_path / "t.f3", **SMALL)
    monkeypatch.setattr(values.Values, "array", _failing(values.Values.array))
    with f3.open(tmp_path / "t.f3", threads=2) as file, pytest.raises(f3.F3Error, match=r"t\.f3: column .*: broken"):
        file.read()


def _failing(whole):
    calls = []

    def array(self, *arguments):
        calls.append(1)
        if len(calls) == 3:
            raise f3.F3Error("broken")
        return whole(self, *arguments)

    return array


def test_a_thread_that_asks_while_another_reads_the_list_of_modules_sees_all_of_it(monkeypatch):
    contents = opened(stored(TABLE))._contents
    whole, seen = metadata.read_modules, []

    def read_modules(data):
        if not seen:
            seen.append(None)
            with ThreadPoolExecutor(1) as threads:
                seen[0] = len(threads.submit(lambda: contents.module_sections).result())
        return whole(data)

    monkeypatch.setattr(metadata, "read_modules", read_modules)
    assert len(contents.module_sections) == seen[0] > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_reads_with_threads_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "_PARALLEL_BYTES", 0)
    f3.write(TABLE, tmp_path / "t.f3", **SMALL)
    assert f3.open(tmp_path / "t.f3", threads=2).read().equals(TABLE)
    child = os.fork()
    if not child:
        os._exit(0 if f3.open(tmp_path / "t.f3", threads=2).read().equals(TABLE) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_by_default_a_read_uses_all_cores_of_the_process(tmp_path, monkeypatch):
    f3.write(TABLE, tmp_path / "t.f3")
    for cores in (1, 3):
        monkeypatch.setattr(os, "sched_getaffinity", lambda process, cores=cores: set(range(cores)))
        with f3.open(tmp_path / "t.f3") as file:
            assert file._threads == cores


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_a_number_of_threads_is_one(tmp_path, threads):
    f3.write(pa.table({"a": [1]}), tmp_path / "t.f3")
    with pytest.raises(f3.F3Error, match="threads must be a whole number of at least 1"):
        f3.open(tmp_path / "t.f3", threads=threads)
