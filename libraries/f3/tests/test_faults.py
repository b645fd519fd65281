"""Files with the two faults of the original's writer are read if they are unambiguous, else rejected with the reason.

From the second row group on, the writer marks local dictionaries as absent. It also marks units of shared dictionaries
as compressed but stores them raw.
"""

import dataclasses
import io
import random

import pyarrow as pa
import pytest

from libraries import f3
from libraries.f3.columns.dictionaries import in_first_appearance_order
from libraries.f3.container import faults, framing, units
from libraries.f3.container.compression import compress
from libraries.f3.container.metadata import LZ4, NO_DICTIONARY, ZSTD, EncUnit
from libraries.f3.errors import F3Error
from libraries.f3.tests import mutations, plain_coding
from libraries.f3.tests.originals import BLOBS, LOCAL, SHARED, Coding, Original, blob, opened, plain, u64, unit

INT, TEXT, CODE = pa.int32(), pa.string(), pa.uint8()


def pair(entries, indices, arrow_type=TEXT):
    module = 1 if arrow_type == TEXT else 0
    return [unit(plain(entries, arrow_type), len(entries), module=module), unit(plain(indices, CODE), len(indices))]


FIRST = pair(["x", "y"], [0, None, 1, 0])
SECOND_START = sum(len(stored) for stored, _ in FIRST)
SECOND = [*pair(["z", "x"], [0, 1, None]), *pair(["x"], [0, 0])]


# --- local dictionaries in several row groups ----------------------------------------------------------------------


def local_file(second=SECOND, rows=5, first_scope=LOCAL, **described):
    file = Original(pa.schema({"a": TEXT}))
    first = [file.chunk(FIRST, 4 if first_scope == LOCAL else 6, scope=first_scope)]
    file.group(4 if first_scope == LOCAL else 6, first)
    return file.group(rows, [file.chunk(second, rows, **described)]).bytes()


VALUES = ["x", None, "y", "x", "z", "x", None, "x", "x"]


def test_pairs_that_are_marked_as_none_are_read():
    file = opened(local_file())
    assert file.read()["a"].to_pylist() == VALUES
    assert [row for batch in file.batches() for row in batch["a"].to_pylist()] == VALUES
    # To read only the second row group, the metadata of the first are needed as well.
    assert opened(local_file()).read(rows=slice(5, 8))["a"].to_pylist() == VALUES[5:8]


def test_describe_reports_pairs_that_are_marked_as_none():
    (told,) = opened(local_file()).describe().faults
    assert told == (
        f"column a: 1 IOUnits, the first at {SECOND_START}, are marked as having no dictionary but hold pairs of a "
        "dictionary and its indices; they are read as pairs"
    )
    assert opened(local_file(scope=LOCAL)).describe().faults == ()


def test_rows_of_nulls_alone_are_read_from_pairs_that_are_marked_as_none():
    """The dictionaries of such units are empty, so the row counts would also fit units without dictionaries."""
    nulls = [unit(b"skipped", 0, module=1), unit(plain([None, None], CODE), 2)]
    assert opened(local_file(nulls, 2)).read(rows=[4, 5])["a"].to_pylist() == [None, None]


def test_files_of_our_writer_with_that_fault_are_read(monkeypatch):
    """The file also has checksums, structs, several IOUnits per row group, and lists, which never have pairs."""
    table = pa.table(
        {
            "text": [None if row % 7 == 0 else f"v{row % 30}" for row in range(400)],
            "struct": [{"a": row % 9, "b": f"{row % 11}"} if row % 5 else None for row in range(400)],
            "list": [[row % 3] * (row % 4) for row in range(400)],
            "int": pa.array([row % 20 for row in range(400)], INT),
        }
    )
    described = f3.writer.metadata.packed_column
    columns = 0

    def marked(chunks):
        nonlocal columns
        group, columns = columns // 7, columns + 1
        return described([dataclasses.replace(chunk, scope=NO_DICTIONARY) if group else chunk for chunk in chunks])

    parameters = {"rows_per_unit": 30, "unit_bytes": 300, "row_group_rows": 150, "coding": plain_coding}
    monkeypatch.setattr(f3.writer.metadata, "packed_column", marked)
    out = io.BytesIO()
    f3.write(table, out, **parameters, dictionary="local", codec="zstd", checksums=True)
    assert columns == 3 * 7
    file = opened(out.getvalue())
    assert file.read().equals(table)
    assert file.read(rows=[399, 160, 3]).equals(table.take([399, 160, 3]))
    assert [fault.split(":")[0] for fault in file.describe().faults] == [
        f"column {name}" for name in ("text", "struct.a", "struct.b", "list[]", "int")
    ]


def test_counts_of_pairs_where_the_column_has_none_are_refused_with_the_cause():
    """The sums of the rows would be the only evidence for pairs."""
    data = local_file(first_scope=NO_DICTIONARY)
    for call in (lambda file: file.read(), lambda file: file.describe()):
        with pytest.raises(F3Error) as told:
            call(opened(data))
        for part in (
            f"metadata of column 0, row group 1: the IOUnit at {SECOND_START} ",
            "its units have 8 rows instead of 5",
            "the F3 authors' writer",
            "write the file again with one row group, or without local dictionaries",
        ):
            assert part in str(told.value)


@pytest.mark.parametrize(
    "second",
    [
        pair(["z", "x"], [1, 0, None, 0, 0]),
        pair(["z", "x"], [0, 0, None, 0, 0]),
        pair(["z", "x"], [0, 2, 1, 0, 0]),
        pair(["z", None], [0, 1, 0, 0, 0]),
        [unit(b"", 0, module=1), unit(plain([None, 0, None, None, None], CODE), 5)],
    ],
    ids=["other order", "an entry unused", "an index outside", "a null entry", "an empty dictionary"],
)
def test_units_whose_values_are_no_pairs_are_refused(second):
    with pytest.raises(F3Error, match=r"column a: EncUnit at \d+: does not hold indices into the EncUnit before it"):
        opened(local_file(second, 5)).read()


@pytest.mark.parametrize(
    ("second", "rows"),
    [(SECOND[:3], 5), (SECOND, 6), (pair(["p", "q", "r"], [0, 1]), 2)],
    ids=["not pairs", "other rows", "more entries than indices"],
)
def test_other_counts_that_do_not_fit_are_refused_as_ever(second, rows):
    with pytest.raises(F3Error, match=r"row group 1: the IOUnit at \d+ has \d rows, but its units have \d"):
        opened(local_file(second, rows)).read()


def test_units_without_a_dictionary_beside_local_ones_are_read_as_what_they_are():
    second = [unit(plain([value], TEXT), 1, module=1) for value in ("p", "q", "r", "s")]
    assert opened(local_file(second, 4)).read()["a"].to_pylist()[4:] == ["p", "q", "r", "s"]


@pytest.mark.parametrize(
    ("indices", "entries", "expected"),
    [
        ([0, 1, None, 0, 2], 3, True),
        ([0, 1, None, 0, 2], 4, False),
        ([1, 0], 2, False),
        ([0, 2, 1], 3, False),
        ([None], 0, True),
        ([None], 1, False),
        ([0], 0, False),
        ([255], 256, False),
        ([2**64 - 1], 1, False),
    ],
)
def test_the_order_of_first_appearance_is_told(indices, entries, expected):
    assert in_first_appearance_order(pa.array(indices, pa.uint64()), entries) is expected


def test_an_unmarked_unit_is_of_a_local_dictionary():
    described = EncUnit(4, 2, 255, 0, 0)
    chunk = units.Chunk(0, 8, 2, NO_DICTIONARY, (described, described))
    (found,) = units.stored_column([chunk], "a column", 8, local=True).units
    assert found.unmarked
    assert found.kind[0] == LOCAL


def test_a_local_dictionary_of_more_entries_than_are_read_is_refused():
    """The dictionary is rejected whatever the indices are, because a few bytes could request any amount of memory."""
    entries, indices = EncUnit(4, units.MOST_UNIT_ROWS + 1, 255, 0, 0), EncUnit(4, 2, 255, 0, 0)
    chunk = units.Chunk(0, 8, 2, LOCAL, (entries, indices))
    with pytest.raises(F3Error, match="a column: an EncUnit of 16777217 rows exceeds the limit"):
        units.stored_column([chunk], "a column", 8)


# --- shared dictionaries with a codec ------------------------------------------------------------------------------


def shared_file(stored, rows, compression, modules=(BLOBS,), **described):
    """Return a file of two row groups that share a dictionary with this unit."""
    file = Original(pa.schema({"a": INT}), modules=modules)
    file.dictionary([0], INT)
    for _ in range(2):
        packed = blob(plain([1, None, 0], CODE), 3) if BLOBS in modules else plain([1, None, 0], CODE)
        file.group(3, [file.chunk([unit(packed, 3)], 3, scope=SHARED)])
    file.dictionary_chunks = [file.chunk([unit(stored, rows, compression=compression)], rows, **described)]
    return file


RAW = blob(plain([5, 7], INT), 2)


@pytest.mark.parametrize("compression", [ZSTD, LZ4])
def test_raw_blobs_that_are_marked_as_packed_are_read(compression):
    shared = shared_file(RAW, 2, compression, checksum=True)
    start = len(shared.data) - len(RAW)
    file = opened(shared.bytes())
    assert file.read()["a"].to_pylist() == [7, None, 5] * 2
    name = {ZSTD: "zstd", LZ4: "lz4"}[compression]
    (told,) = file.describe().faults
    assert told == (
        f"shared dictionaries: 1 of 1 examined EncUnits, the first at {start}, are marked compressed "
        f"(the first as {name}) but are not; those that are blobs of the built-in encoding are read as blobs"
    )
    with pytest.raises(F3Error, match="does not match its checksum"):
        opened(shared_file(RAW, 2, compression, checksum=7).bytes()).read()


@pytest.mark.parametrize(("codec", "compression"), [("zstd", ZSTD), ("lz4", LZ4)])
def test_dictionaries_that_are_packed_as_they_are_marked_have_no_fault(codec, compression):
    stored, marked = compress(RAW, codec)
    assert marked == compression
    file = opened(shared_file(stored, 2, compression).bytes())
    assert file.read()["a"].to_pylist() == [7, None, 5] * 2
    assert file.describe().faults == ()


PAYLOAD = plain([5, 7], INT)
PLAIN = [plain_coding.MODULES["plain"]]


@pytest.mark.parametrize(
    ("stored", "compression", "modules", "told", "described"),
    [
        (PAYLOAD, ZSTD, PLAIN, "marked zstd and begins with 02000000, but a zstd frame begins with 28b52ffd; the", 1),
        # The first bytes, which are all that `describe` reads, could be those of a compressed unit.
        (PAYLOAD, LZ4, PLAIN, "marked lz4 and begins with 02000000; the F3 authors' writer", 0),
        (RAW + b"\0", ZSTD, [BLOBS], "only blobs of the built-in encoding can be read: write .* without a codec", 1),
        (RAW[:-1], LZ4, [BLOBS], "write the file again without a codec", 1),
        (blob(PAYLOAD, 3), ZSTD, [BLOBS], "write the file again without a codec", 1),
        (b"", ZSTD, [BLOBS], "write the file again without a codec", 1),
        (b"", LZ4, [BLOBS], "too few for an LZ4 block", 0),
    ],
    ids=["zstd", "lz4", "a byte more", "a byte less", "other rows", "nothing as zstd", "nothing as lz4"],
)
def test_raw_units_that_are_not_certain_are_refused_with_the_cause(stored, compression, modules, told, described):
    file = opened(shared_file(stored, 2, compression, modules).bytes())
    with pytest.raises(F3Error, match=rf"column a: EncUnit at \d+: .*{told}"):
        file.read()
    assert len(file.describe().faults) == described


def test_a_broken_frame_is_not_taken_for_that_fault():
    stored, _ = compress(RAW, "zstd")
    with pytest.raises(F3Error, match="cannot be decompressed") as told:
        opened(shared_file(stored[:-3], 2, ZSTD).bytes()).read()
    assert "authors" not in str(told.value)


def test_values_that_are_raw_and_marked_as_packed_are_refused():
    """The original compresses these values correctly, so this file has another fault."""
    file = Original(pa.schema({"a": INT}), modules=[BLOBS])
    file.group(2, [file.chunk([unit(RAW, 2, compression=ZSTD)], 2)])
    with pytest.raises(F3Error, match="cannot be decompressed"):
        opened(file.bytes()).read()


def test_describe_reports_impossible_dictionaries():
    file = shared_file(RAW, 2, ZSTD)
    file.dictionary_chunks[0] |= {2: u64(3)}
    told = opened(file.bytes()).describe().faults
    assert told == ("shared dictionary IOUnit 0: the IOUnit at 640 has 3 rows, but its units have 2",)


def test_describe_may_be_asked_again_and_again():
    """Each walk over the footer's tables uses up part of a budget. Repeated calls must not exhaust it."""
    file = opened(shared_file(RAW, 2, ZSTD).bytes())
    for _ in range(1000):
        assert file.describe().faults
    assert file.read().num_rows == 6


@pytest.mark.parametrize("size", [0, 1, 15, 70, 255, 256, 19_200, 70_000])
@pytest.mark.parametrize("data", [bytes, lambda size: random.Random(size).randbytes(size)], ids=["zeros", "noise"])
@pytest.mark.parametrize(("codec", "compression"), [("zstd", ZSTD), ("lz4_raw", LZ4)])
def test_packed_units_are_never_taken_for_raw_ones(size, data, codec, compression):
    packed = pa.compress(data(size), codec=codec, asbytes=True)
    if compression == LZ4:
        packed = size.to_bytes(4, "little") + packed
    assert not faults.is_no_packed_unit(packed[:4], EncUnit(len(packed), 1, 255, 0, compression))
    assert not framing.is_blob(memoryview(packed), 1)


WHOLE = {"pairs": local_file(), "zstd": shared_file(RAW, 2, ZSTD).bytes(), "lz4": shared_file(RAW, 2, LZ4).bytes()}


@pytest.mark.parametrize(("fault", "first", "step"), [("pairs", 0, 2), ("zstd", 0, 4), ("lz4", 2, 4)])
def test_a_changed_byte_of_a_file_with_a_fault_ends_in_a_table_or_an_error(fault, first, step):
    """Every second byte is changed. Two of the files differ only in the number of the codec: each of these bytes is
    changed in one of the two."""
    whole = WHOLE[fault]
    assert len(WHOLE["zstd"]) == len(WHOLE["lz4"])
    for place in range(first, len(whole), step):
        changed = whole[:place] + bytes((whole[place] ^ 1 << place % 8,)) + whole[place + 1 :]
        assert mutations.outcome(changed, mutations.Way(Coding), "none") in ("table", "F3Error")
