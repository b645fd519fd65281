"""Written files: order of sections, sizes, checksums, no incomplete file under the final name, and bounded memory."""

import errno
import io
import os
import stat
import struct
import subprocess
import sys

import fsspec
import numpy as np
import pyarrow as pa
import pytest
import xxhash

from libraries import f3
from libraries.f3.container import metadata
from libraries.f3.container.layout import read_postscript
from libraries.f3.encodings import encoders
from libraries.f3.tests import plain_coding
from libraries.f3.tests.tables import opened, stored, varied

NUMBERS = pa.table({"a": np.arange(1000)})


def test_sections_stand_in_the_order_of_the_specification():
    data = stored(varied(300), dictionary="shared", checksums=True).getvalue()
    postscript = read_postscript(data[-32:], len(data))
    footer_start = len(data) - 32 - postscript.footer_bytes
    footer = metadata.Footer(memoryview(data)[footer_start:-32])
    columns = [footer.column(0, number) for number in range(footer.columns(0))]
    chunks = [chunk for each in columns for chunk in metadata.read_column(_section(data, each), "column")]
    parts = sorted({part for number in range(footer.dictionaries) for part in footer.dictionary(number)})
    dictionary_chunks = [footer.dictionary_chunk(part) for part in parts]
    modules_at = footer.optional_section(metadata.WASM_SECTION)
    modules = metadata.read_modules(_section(data, modules_at))

    expected = 0
    data_chunks = sorted([*chunks, *dictionary_chunks], key=lambda chunk: chunk.offset)
    for part in [*data_chunks, *modules, modules_at, *columns]:
        assert part.offset == expected
        expected += part.size_bytes
    assert expected == footer_start
    assert columns[0].offset == len(data) - 32 - postscript.metadata_bytes
    assert [bytes(_section(data, module)) for module in modules] == list(plain_coding.MODULES.values())
    assert all(chunk.checksum == xxhash.xxh64_intdigest(_section(data, chunk)) for chunk in chunks + dictionary_chunks)


def _section(data, section):
    return memoryview(data)[section.offset : section.offset + section.size_bytes]


def test_checksums_of_file_and_schema_are_the_specification_s():
    data = stored(NUMBERS).getvalue()
    postscript = read_postscript(data[-32:], len(data))
    schema = metadata.Footer(memoryview(data)[-32 - postscript.footer_bytes : -32]).schema
    assert postscript.data_checksum == xxhash.xxh64_intdigest(data[:-32])
    assert postscript.schema_checksum == xxhash.xxh64_intdigest(schema)
    framed = b"\xff\xff\xff\xff" + struct.pack("<I", len(schema)) + bytes(schema)
    assert pa.ipc.read_schema(pa.py_buffer(framed)).equals(NUMBERS.schema)


def test_units_have_the_rows_that_were_asked_for_however_rows_come():
    """Specification 14.2: all columns have the same unit boundaries, whatever the sizes of the batches."""
    table = varied(1000)
    out = io.BytesIO()
    with f3.Writer(out, table.schema, rows_per_unit=100, row_group_rows=350, coding=plain_coding) as writer:
        for start, stop in ((0, 30), (30, 30), (30, 777), (777, 778), (778, 1000)):
            writer.write_table(table.slice(start, stop - start))
    file = opened(out)
    assert file.read().equals(table)
    contents = file._contents
    contents.load((0, 1, 2), (0, 1))
    for column in (0, 1):
        units = [[unit.rows for unit in contents.column(group, column).units] for group in range(3)]
        assert units == [[100, 100, 100, 50], [100, 100, 100, 50], [100, 100, 100]]


def test_an_io_unit_exceeds_its_size_by_less_than_a_unit():
    file = opened(stored(NUMBERS, rows_per_unit=10, unit_bytes=300))
    file.read()
    sizes = [chunk.size_bytes for chunk in file._contents.column(0, 0).chunks]
    (unit,) = {unit.size_bytes for chunk in file._contents.column(0, 0).chunks for unit in chunk.units}
    assert all(300 < size <= 300 + unit for size in sizes[:-1])


def test_record_batches_and_streams_are_written():
    batches = NUMBERS.to_batches(max_chunksize=300)
    for data in (batches[0], pa.RecordBatchReader.from_batches(NUMBERS.schema, batches)):
        read = opened(stored(data)).read()
        assert read.equals(NUMBERS.slice(0, read.num_rows))
    assert read.num_rows == 1000


def test_a_file_is_not_there_before_it_is_complete(tmp_path):
    path = tmp_path / "table.f3"
    path.write_bytes(b"the one before")
    with f3.Writer(path, NUMBERS.schema, rows_per_unit=10, unit_bytes=100, coding=plain_coding) as writer:
        writer.write_table(NUMBERS)
        assert path.read_bytes() == b"the one before"
    assert opened(path).read().equals(NUMBERS)
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_gets_its_name_when_its_bytes_are_on_the_disk(tmp_path, monkeypatch):
    """Otherwise a power cut could leave an empty file in place of the previous one."""
    path, calls = tmp_path / "table.f3", []
    sync, rename = os.fsync, os.replace

    def synced(descriptor):
        sync(descriptor)
        status = os.fstat(descriptor)
        calls.append("the folder" if stat.S_ISDIR(status.st_mode) else status.st_size)

    def renamed(old, new):
        calls.append("the name")
        rename(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    f3.write(NUMBERS, path, coding=plain_coding)
    assert calls == [path.stat().st_size, "the name", "the folder"]


def test_a_folder_that_cannot_be_opened_keeps_the_previous_file(tmp_path, monkeypatch):
    """For example a folder of mode 0300, in which files can be created but which cannot be opened for reading."""
    path = tmp_path / "table.f3"
    path.write_bytes(b"the one before")
    opening = os.open

    def opened_files_only(name, flags, *mode, **options):
        if flags & os.O_DIRECTORY:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(name))
        return opening(name, flags, *mode, **options)

    monkeypatch.setattr(os, "open", opened_files_only)
    with pytest.raises(PermissionError) as raised:
        f3.write(NUMBERS, path, coding=plain_coding)
    monkeypatch.undo()
    assert raised.value.filename == str(path)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("table.f3", b"the one before")]


def test_an_error_leaves_what_was_there_before(tmp_path):
    path = tmp_path / "table.f3"
    path.write_bytes(b"the one before")
    with pytest.raises(f3.F3Error), f3.Writer(path, NUMBERS.schema, coding=plain_coding) as writer:
        writer.write_table(pa.concat_tables([NUMBERS] * 100).append_column("b", pa.array(range(100_000))))
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("table.f3", b"the one before")]


def test_an_error_while_it_is_completed_leaves_what_was_there_before(tmp_path, monkeypatch):
    monkeypatch.setattr(metadata, "packed_footer", lambda **parts: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        f3.write(NUMBERS, tmp_path / "table.f3", coding=plain_coding)
    assert list(tmp_path.iterdir()) == []


def test_a_killed_writer_leaves_nothing_under_the_name(tmp_path):
    script = (
        "import os, sys, pyarrow as pa\nfrom libraries import f3\nfrom libraries.f3.tests import plain_coding\n"
        "table = pa.table({'a': list(range(1000))})\n"
        "writer = f3.Writer(sys.argv[1], table.schema, rows_per_unit=10, unit_bytes=100, coding=plain_coding)\n"
        "writer.write_table(table)\nos.kill(os.getpid(), 9)\n"
    )
    path = tmp_path / "table.f3"
    killed = subprocess.run([sys.executable, "-c", script, str(path)], cwd=os.getcwd())
    assert killed.returncode == -9
    assert not path.exists()


def test_a_new_file_has_the_permissions_of_new_files(tmp_path):
    (tmp_path / "other").touch()
    f3.write(NUMBERS, tmp_path / "table.f3", coding=plain_coding)
    assert (tmp_path / "table.f3").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_failed_remote_file_is_not_there():
    name = "memory://f3-tests/failed.f3"
    with pytest.raises(KeyError), f3.Writer(name, NUMBERS.schema, coding=plain_coding):
        raise KeyError
    assert not fsspec.filesystem("memory").exists("/f3-tests/failed.f3")


def test_an_open_file_stays_open():
    out = io.BytesIO()
    f3.write(NUMBERS, out, coding=plain_coding)
    assert not out.closed


def test_nothing_is_added_to_a_complete_file():
    writer = f3.Writer(io.BytesIO(), NUMBERS.schema, coding=plain_coding)
    writer.close()
    writer.close()
    with pytest.raises(f3.F3Error, match="the file is complete"):
        writer.write_table(NUMBERS)


def test_other_columns_than_the_file_has_are_refused():
    writer = f3.Writer(io.BytesIO(), NUMBERS.schema, coding=plain_coding)
    with pytest.raises(f3.F3Error, match=r"column 0 of the new rows, .* must be a: int64, .* \(got b: int64\)"):
        writer.write_table(pa.table({"b": [1]}))
    with pytest.raises(f3.F3Error, match=r"must have 1 columns, as the file has \(got 2\)"):
        writer.write_table(pa.table({"a": [1], "b": [1]}))


def test_a_type_that_cannot_be_stored_is_refused_before_a_file_is_opened(tmp_path):
    with pytest.raises(f3.F3Error, match="column a: the type null cannot be stored"):
        f3.write(pa.table({"a": pa.nulls(3)}), tmp_path / "table.f3", coding=plain_coding)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "parameter",
    [{"codec": "gzip"}, {"codec": ["zstd"]}, {"dictionary": "global"}, {"dictionary": []}, {"rows_per_unit": 1.5},
     {"rows_per_unit": "8"}, {"unit_bytes": True},
     {"rows_per_unit": 0}, {"rows_per_unit": 2**25}, {"unit_bytes": 2**31},
     {"row_group_rows": 0}, {"row_group_rows": 2**32}, {"scope_rows": 0}],
)  # fmt: skip
def test_parameters_that_cannot_be_are_refused(parameter):
    (name,) = parameter
    with pytest.raises(f3.F3Error, match=f"^{name} must be "):
        stored(NUMBERS, **parameter)


@pytest.mark.parametrize("name", ["rows_per_unit", "row_group_rows", "scope_rows"])
def test_a_number_of_rows_may_be_one_of_numpy(name):
    """Adding to an np.uint8 would overflow, and rows would be counted wrongly."""
    file = stored(NUMBERS, **{name: np.uint8(200)}, dictionary="shared")
    assert file.getvalue() == stored(NUMBERS, **{name: 200}, dictionary="shared").getvalue()


@pytest.mark.parametrize("data", [None, {"a": [1]}, [1, 2], "table.csv"])
def test_data_that_is_not_a_table_is_refused(data, tmp_path):
    with pytest.raises(f3.F3Error, match=r"^data must be .*pa\.table"):
        f3.write(data, tmp_path / "table.f3", coding=plain_coding)
    with pytest.raises(f3.F3Error, match=r"^schema must be .*pa\.schema"):
        f3.Writer(tmp_path / "table.f3", data, coding=plain_coding)
    assert list(tmp_path.iterdir()) == []


def test_other_types_than_tables_and_batches_are_refused():
    writer = f3.Writer(io.BytesIO(), NUMBERS.schema, coding=plain_coding)
    with pytest.raises(f3.F3Error, match=r"^batch must be .*got Table"):
        writer.write_batch(NUMBERS)
    with pytest.raises(f3.F3Error, match=r"^table must be .*got NoneType"):
        writer.write_table(None)


@pytest.mark.parametrize("name", ["n" * 255, "\N{SNOWMAN}" * 85], ids=["ASCII", "three bytes each"])
def test_a_name_may_be_as_long_as_names_may_be(tmp_path, name):
    f3.write(NUMBERS, tmp_path / name, coding=plain_coding)
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_columns_that_differ_in_their_nulls_are_told_apart():
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    with pytest.raises(f3.F3Error, match=r"must be a: int64 not null, .* \(got a: int64\)"):
        f3.Writer(io.BytesIO(), schema, coding=plain_coding).write_table(NUMBERS)


FULL = """
import resource, signal, sys
import pyarrow as pa
from libraries import f3
from libraries.f3.tests import plain_coding
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
table = pa.table({"a": list(range(100_000))})
for case in sys.argv[1:]:
    path, most_bytes, unit_bytes = case.split(":")
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(most_bytes), resource.RLIM_INFINITY))
    try:
        f3.write(table, path, coding=plain_coding, unit_bytes=int(unit_bytes))
    except OSError as error:
        print(type(error).__name__, error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of a file's size here")
def test_a_full_disk_is_told_and_leaves_nothing(tmp_path):
    table, cases, paths = pa.table({"a": list(range(100_000))}), [], []
    # The errors occur while the file is written, and when its last bytes are written.
    for unit_bytes in (1000, 2**24):
        size = len(stored(table, unit_bytes=unit_bytes).getvalue())
        for missing_bytes in (500_000, 20):
            path = tmp_path / f"{unit_bytes} {missing_bytes}" / "table.f3"
            path.parent.mkdir()
            path.write_bytes(b"the one before")
            paths.append(path)
            cases.append(f"{path}:{size - missing_bytes}:{unit_bytes}")
    command = [sys.executable, "-c", FULL, *cases]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=os.getcwd())
    assert done.stdout == "".join(f"OSError [Errno 27] File too large: '{path}'\n" for path in paths)
    for path in paths:
        assert [(each.name, each.read_bytes()) for each in path.parent.iterdir()] == [(path.name, b"the one before")]


class Stopping:
    """The plain coding, which raises an error after some units."""

    modules, Decoder = staticmethod(plain_coding.modules), plain_coding.Decoder

    def __init__(self, error, after):
        self._error, self._left = error, after

    def encode(self, array, *, allow=None):
        self._left -= 1
        if self._left == 0:
            raise self._error
        return plain_coding.encode(array)


def test_an_interrupted_writer_leaves_what_was_there_before(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        f3.write(
            NUMBERS, tmp_path / "table.f3", rows_per_unit=10, unit_bytes=1, coding=Stopping(KeyboardInterrupt(), 50)
        )
    assert list(tmp_path.iterdir()) == []


def test_a_writer_that_failed_in_the_middle_of_a_table_writes_no_more(tmp_path):
    """Some columns then have rows that others lack, so a completed file would be broken."""
    table = pa.table({"a": range(100), "b": range(100)})
    writer = f3.Writer(
        tmp_path / "table.f3", table.schema, rows_per_unit=100, coding=Stopping(f3.F3Error("a value that cannot be"), 2)
    )
    with pytest.raises(f3.F3Error, match="a value that cannot be"):
        writer.write_table(table)
    with pytest.raises(f3.F3Error, match="given up after an error"):
        writer.write_table(table)
    writer.close()
    assert list(tmp_path.iterdir()) == []


def test_a_unit_holds_no_more_items_than_are_read(monkeypatch):
    """65,536 lists of 768 numbers have 50 million items. The test lowers the limit to 1,000."""
    monkeypatch.setattr(f3.writer, "MOST_UNIT_ROWS", 1000)
    lists = pa.table({"a": range(300), "b": [[row] * (row % 20) for row in range(300)]})
    file = opened(stored(lists, rows_per_unit=900, row_group_rows=200))
    told = file.describe().columns
    assert [(each.name, each.enc_units) for each in told] == [("a", 2), ("b", 3), ("b[]", 3)]
    assert file.read().equals(lists)
    with pytest.raises(f3.F3Error, match=r"column b\[\]: a row has 1001 items; an EncUnit holds at most 1000"):
        stored(pa.table({"b": [[1], [1] * 1001]}), rows_per_unit=900)


def test_units_decode_to_few_bytes_and_fill_ordinary_reads():
    """Each column is cut by its own bytes, so a row decodes a quarter of a mebibyte of strings, or one of numbers."""
    rng = np.random.default_rng(2)
    wide = pa.array([rng.bytes(4096) for _ in range(5000)])
    vectors = pa.array(list(rng.random((5000, 96), np.float32)), pa.list_(pa.float32()))
    table = pa.table({"wide": wide, "vector": vectors, "number": np.arange(5000)})
    file = opened(stored(table, unit_bytes=4 << 20))
    assert file.read().equals(table)
    units = {each.name: each.enc_units for each in file.describe().columns}
    assert units == {"wide": 80, "vector": 2, "vector[]": 2, "number": 1}
    chunks = file._contents.column(0, 0).chunks
    assert max(chunk.size_bytes for chunk in chunks) < 6 << 20
    assert file.read(rows=[4999, 7, 2500]).equals(table.take([4999, 7, 2500]))


def test_strings_of_few_values_stay_in_one_unit():
    """Each unit would repeat the distinct values. Others are cut at a quarter of a mebibyte."""
    few = [f"{number % 90} {'x' * 100}" for number in range(20_000)]
    many = [f"{number} {'x' * 100}" for number in range(20_000)]
    told = opened(stored(pa.table({"few": few, "many": many}))).describe().columns
    assert [column.enc_units for column in told] == [1, 10]


def test_wide_rows_are_written_before_they_fill_a_unit():
    """Rows arrive one by one. 65,536 of them would have 4 GB."""
    batch = pa.record_batch({"wide": [bytes(1 << 16)], "number": [1]})
    held = []
    with f3.Writer(io.BytesIO(), batch.schema, coding=plain_coding) as writer:
        for _ in range(2500):
            writer.write_batch(batch)
            held.append(writer._pending_bytes)
    assert 60 << 20 < max(held) < 70 << 20


def test_rows_that_come_one_by_one_are_joined_once_for_a_unit(monkeypatch):
    joined = []
    join = pa.concat_tables
    monkeypatch.setattr(pa, "concat_tables", lambda tables, **how: joined.append(len(tables)) or join(tables, **how))
    out = io.BytesIO()
    with f3.Writer(out, NUMBERS.schema, rows_per_unit=400, coding=plain_coding) as writer:
        for row in range(1000):
            writer.write_table(NUMBERS.slice(row, 1))
    assert joined == [400, 400, 200]
    assert opened(out).read().equals(NUMBERS)


def test_what_the_encoder_finds_wrong_is_told_with_the_column():
    class Refusing:
        modules, Decoder = staticmethod(plain_coding.modules), plain_coding.Decoder

        @staticmethod
        def encode(array, *, allow=None):
            if not pa.types.is_int64(array.type):
                return plain_coding.encode(array)
            raise f3.F3Error("a value that cannot be")

    with pytest.raises(f3.F3Error, match=r"column b\[\]: a value that cannot be"):
        f3.write(pa.table({"b": [[1]]}), io.BytesIO(), coding=Refusing)


def test_both_payloads_of_a_list_are_asked_of_the_own_module():
    """A unit names only one module, so an added encoding must not encode only one of the two payloads."""
    asked = []

    class Asked:
        modules, Decoder = staticmethod(plain_coding.modules), plain_coding.Decoder

        @staticmethod
        def encode(array, *, allow=None):
            asked.append((str(array.type), allow is not None))
            return plain_coding.encode(array)

    f3.write(pa.table({"a": [[1]]}), io.BytesIO(), coding=Asked)
    assert asked == [("bool", True), ("int32", True), ("int64", False)]


@pytest.mark.parametrize("text", ["urls", "noise"])
def test_zstd_is_used_by_default_where_it_saves_a_fifth(text):
    """Long texts that repeat phrases are left to zstd, which decodes faster than symbols and zstd together."""
    rng = np.random.default_rng(4)
    phrases = ["https://www.example.com/catalogue/", "summer-sale-", "article.html?reference=newsletter&number="]
    rows = [
        "".join(phrases[place] for place in rng.integers(0, 3, 4)) + str(rng.integers(10**9))
        if text == "urls" else rng.bytes(30).hex() for _ in range(9000)
    ]  # fmt: skip
    table = pa.table({"text": rows, "number": rng.integers(0, 2**63, 9000)})
    sizes = {}
    for codec in ("adaptive", None, "zstd"):
        out = io.BytesIO()
        f3.write(table, out, codec=codec)
        with f3.open(out) as file:
            assert file.read().equals(table)
            sizes[codec] = [column.size_bytes for column in file.describe().columns]
            if codec == "adaptive":
                assert [column.codecs for column in file.describe().columns][1] == ("none",)
                assert file.describe().columns[0].codecs == (("zstd",) if text == "urls" else ("none",))
    if text == "urls":
        assert sizes["adaptive"][0] < 0.5 * sizes[None][0]


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_units_that_a_codec_makes_no_smaller_are_stored_as_they_are(codec):
    random = np.random.default_rng(2)
    table = pa.table({"noise": random.integers(-(2**62), 2**62, 2000), "same": np.zeros(2000, np.int64)})
    told = opened(stored(table, codec=codec)).describe().columns
    assert told[0].codecs == (codec,)  # its presence is worth it
    table = pa.table({"a": [random.bytes(20_000)]})
    assert opened(stored(table, codec=codec)).describe().codecs == ("none",)


@pytest.mark.slow
def test_memory_does_not_grow_with_row_groups(tmp_path):
    """Memory holds only the open IOUnits, so four times the rows need no more memory."""

    def peak(groups):
        script = (
            "import sys, resource, numpy as np, pyarrow as pa\nfrom libraries import f3\n"
            "from libraries.f3.tests import plain_coding\n"
            "batch = pa.record_batch({str(n): np.arange(50_000) for n in range(4)})\n"
            "sizes = {'row_group_rows': 500_000, 'unit_bytes': 2**20}\n"
            "with f3.Writer(sys.argv[1], batch.schema, coding=plain_coding, **sizes) as writer:\n"
            f"    for _ in range({10 * groups}):\n        writer.write_batch(batch)\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
        )
        # The process is started by a shell, because the peak memory of a child process begins at that of its parent.
        done = subprocess.run(
            ["/bin/sh", "-c", 'exec "$0" -c "$1" "$2"', sys.executable, script, str(tmp_path / "t.f3")],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return int(done.stdout)

    assert peak(4) < 1.1 * peak(1)


def test_equal_tables_make_equal_files():
    for dictionary in ("none", "best"):
        files = {stored(varied(500), dictionary=dictionary, checksums=True).getvalue() for _ in range(2)}
        assert len(files) == 1


def test_no_file_takes_the_place_of_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(f3.F3Error, match="pipe: is a device, a pipe or a socket"):
        f3.write(pa.table({"a": [1]}), tmp_path / "pipe")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
    assert (tmp_path / "pipe").is_fifo()


def test_a_link_stays_one_and_leads_to_the_new_file(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.f3").symlink_to(tmp_path / "folder" / "table.f3")
    for table in (pa.table({"a": [1]}), pa.table({"a": [2]})):
        f3.write(table, tmp_path / "link.f3")
        assert (tmp_path / "link.f3").is_symlink()
        assert f3.open(tmp_path / "folder" / "table.f3").read().equals(table)


def test_what_packs_a_thousandfold_can_be_read_again():
    """A reader refuses small units that claim to be large. One string of 70 MB of sixteen letters is such a unit."""
    table = pa.table({"a": ["abcdefghijklmnop" * (70 * 2**16)]})
    for codec in ("adaptive", "zstd", "lz4"):
        out = io.BytesIO()
        f3.write(table, out, codec=codec)
        assert f3.open(out).read().equals(table)


def test_the_adaptive_codec_is_not_larger_than_none_for_texts_that_a_dictionary_holds():
    numbers = np.random.default_rng(6).integers(0, 500, 65_536)
    table = pa.table({"a": [f"https://example.com/p/{number * 7:06d}" for number in numbers]})
    sizes = {}
    for codec in ("adaptive", None):
        out = io.BytesIO()
        f3.write(table, out, codec=codec)
        sizes[codec] = out.tell()
    assert sizes["adaptive"] <= sizes[None]


def test_a_string_of_more_than_two_gigabytes_is_refused():
    """Its length was cut to 32 bits. The bytes are never touched."""
    size = 2**32 + 5
    offsets = pa.py_buffer(np.array([0, size], np.int64))
    array = pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, pa.py_buffer(np.zeros(size, np.uint8))])
    with pytest.raises(f3.F3Error, match="a string has 4294967301 bytes; an EncUnit holds at most 2147483647"):
        encoders.strings_of(array)
