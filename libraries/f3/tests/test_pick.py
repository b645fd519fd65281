"""Rows picked from a payload equal the rows of the decoded payload, in memory and in a file, for any bytes."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from libraries import f3
from libraries.f3.decoders import native
from libraries.f3.decoders.native import PICKED, PickedRows, pick, pick_columns
from libraries.f3.encodings import encoders, unit_codec
from libraries.f3.encodings.nodes import Tag, header
from libraries.f3.errors import F3Error
from libraries.f3.tests.arrays import PATTERNS, TYPES, assert_same, made

pytestmark = pytest.mark.skipif(native.library() is None, reason="the kernels are not built: python -m libraries.build")
ROWS = 2500
TEXTS = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


@pytest.fixture
def stored(tmp_path):
    """Return a function that puts payloads in a file, and gives its descriptor and their offsets."""
    opened = []

    def store(payloads):
        path = tmp_path / "payloads"
        path.write_bytes(b"front" + b"".join(payloads))
        opened.append(os.open(path, os.O_RDONLY))
        return opened[-1], 5 + np.cumsum([0, *map(len, payloads)])[:-1]

    yield store
    for each in opened:
        os.close(each)


WASM = unit_codec.Decoder(unit_codec.modules()["core"], prefer="wasm")


def picked(payloads, arrow_type, rows, wanted, stored=None, by_wasm=False):
    """Pick rows (one array of row numbers per payload) from payloads in memory, or in a file if `stored` is given, or
    in the sandbox."""
    held = [pa.py_buffer(payload) for payload in payloads]
    units = np.zeros(len(payloads), PICKED)
    descriptor = -1
    if stored is None:
        units["memory"] = [each.address for each in held]
    else:
        descriptor, units["offset"] = stored(payloads)
    units["size_bytes"], units["rows"] = list(map(len, payloads)), rows
    units["count"] = list(map(len, wanted))
    units["first"] = np.cumsum(units["count"]) - units["count"]
    numbers = np.concatenate(wanted).astype(np.uint32)
    if by_wasm:
        return WASM.pick(units, -1, numbers, arrow_type)
    return pick(native.library(), units, descriptor, numbers, arrow_type)


@pytest.mark.parametrize("arrow_type", TYPES, ids=str)
def test_picked_rows_are_those_of_the_array(arrow_type, stored):
    rng = np.random.default_rng(21)
    for pattern in PATTERNS:
        for nulls in (0.0, 0.3):
            array = made(arrow_type, pattern, ROWS, rng, nulls)
            parts = [array, array.slice(7, 1100), array.slice(3, 1)]
            payloads = [unit_codec.encode(part).payload for part in parts]
            wanted = [rng.integers(0, len(part), count) for part, count in zip(parts, (30, 1, 2), strict=True)]
            wanted[0][:3] = [0, ROWS - 1, 1023]
            expected = pa.concat_arrays([part.take(pa.array(each)) for part, each in zip(parts, wanted, strict=True)])
            for place, by_wasm in ((None, False), (stored, False), (None, True)):
                found = picked(payloads, arrow_type, list(map(len, parts)), wanted, place, by_wasm)
                found.validate(full=found.type in TEXTS)
                assert_same(found, expected)


def test_every_choice_of_encodings_is_picked_from():
    rng = np.random.default_rng(22)
    for number in range(400):
        arrow_type = TYPES[number % len(TYPES)]
        allow = frozenset(name for name in encoders.NAMES if rng.random() < 0.6)
        array = made(arrow_type, PATTERNS[rng.integers(len(PATTERNS))], int(rng.integers(1, 3000)), rng, 0.1)
        payload = unit_codec.encode(array, allow=allow).payload
        wanted = rng.integers(0, len(array), 9)
        for by_wasm in (False, True):
            found = picked([payload], arrow_type, [len(array)], [wanted], by_wasm=by_wasm)
            assert_same(found, array.take(pa.array(wanted)))


def test_long_strings_are_picked_although_their_memory_was_guessed_too_small():
    array = pa.array(["x" * 5000 + str(row) for row in range(40)] + [None, ""])
    payload = unit_codec.encode(array).payload
    wanted = np.array([39, 40, 3, 3, 41])
    for by_wasm in (False, True):
        assert picked([payload], array.type, [42], [wanted], by_wasm=by_wasm).equals(array.take(pa.array(wanted)))


def test_changed_payloads_give_errors_or_values_and_never_a_crash():
    """Whatever a decoder of all rows accepts, picking gives the same rows or refuses, natively and in the sandbox."""
    rng = np.random.default_rng(23)
    reasons, agreed = [], 0
    for number in range(3000):
        arrow_type = TYPES[number % len(TYPES)]
        array = made(arrow_type, PATTERNS[rng.integers(len(PATTERNS))], int(rng.integers(1, 1500)), rng, 0.1)
        payload = bytearray(unit_codec.encode(array).payload)
        for _ in range(int(rng.integers(1, 4))):
            payload[rng.integers(0, min(len(payload), 200))] = rng.integers(0, 256)
        wanted = rng.integers(0, len(array), 5)
        by_wasm = number % 8 == 0
        try:
            found = picked([bytes(payload)], arrow_type, [len(array)], [wanted], by_wasm=by_wasm)
        except F3Error as error:
            reasons.append(str(error))
            continue
        found.validate(full=found.type in TEXTS)
        try:
            expected = unit_codec.Decoder(unit_codec.modules()["core"]).decode(bytes(payload), arrow_type, len(array))
        except F3Error:
            continue  # A fault in rows that are not wanted is not seen.
        agreed += 1
        assert_same(found, expected.take(pa.array(wanted)))
    assert len(reasons) > 250
    assert agreed > 250
    # The sandbox stops a read outside its memory, which natively would be anywhere.
    assert not [reason for reason in reasons if "out of bounds" in reason]


def test_columns_are_picked_together_and_a_fault_in_one_leaves_the_others():
    rng = np.random.default_rng(24)
    arrays = [made(kind, PATTERNS[rng.integers(len(PATTERNS))], 1200, rng, 0.2) for kind in TYPES]
    arrays += [pa.array(["x" * 500] * 1200), pa.array([True, False, None] * 400)]
    payloads = [pa.py_buffer(unit_codec.encode(array).payload) for array in arrays]
    wanted = rng.integers(0, 1200, 11).astype(np.uint32)
    broken = 3
    columns = []
    for number, (array, payload) in enumerate(zip(arrays, payloads, strict=True)):
        units = np.zeros(1, PICKED)
        units["memory"], units["size_bytes"] = payload.address, 20 if number == broken else payload.size
        units["rows"], units["count"] = 1200, len(wanted)
        columns.append(PickedRows(units, wanted, array.type))
    found = pick_columns(native.library(), columns, -1)
    # The strings of 500 bytes do not fit into the memory for 64 bytes each.
    assert [number for number, array in enumerate(found) if array is None] == [broken, len(TYPES)]
    for array, picked_array in zip(arrays, found, strict=True):
        if picked_array is not None:
            picked_array.validate(full=picked_array.type in TEXTS)
            assert_same(picked_array, array.take(pa.array(wanted)))


def test_a_row_behind_the_end_is_refused():
    payload = unit_codec.encode(pa.array([1, 2, 3])).payload
    for by_wasm in (False, True):
        with pytest.raises(F3Error, match="index out of range"):
            picked([payload], pa.int64(), [3], [np.array([3])], by_wasm=by_wasm)


def test_a_file_that_became_shorter_is_an_error_of_the_device(stored, tmp_path):
    payload = unit_codec.encode(pa.array(np.random.default_rng(1).random(4000))).payload

    def cut(payloads):
        descriptor, offsets = stored(payloads)
        os.truncate(tmp_path / "payloads", 1000)
        return descriptor, offsets

    with pytest.raises(OSError, match="was made shorter"):
        picked([payload], pa.float64(), [4000], [np.array([3999])], cut)


# --- through a file --------------------------------------------------------------------------------------------------


def wide_table(rows=20_000):
    rng = np.random.default_rng(31)
    texts = np.array([f"a text that occurs often, number {number * 7919:x}" for number in range(3000)])
    return pa.table(
        {
            "number": pa.array(rng.integers(0, 10**6, rows), mask=rng.random(rows) < 0.1),
            "shared": texts[rng.integers(0, 3000, rows)],
            "packed": [f"{'a phrase that zstd finds, ' * 3}{number}" for number in rng.integers(0, 10**9, rows)],
            "blob": [rng.bytes(100) for _ in range(rows)],
            "flag": rng.random(rows) < 0.5,
            "list": [[number] * (number % 3) for number in range(rows)],
            "struct": [{"a": number, "b": str(number)} for number in range(rows)],
        }
    )


TABLE = wide_table()
WANTED = [
    np.array([19_999, 3, 3, 12_345]), np.array([7]), slice(5000, 5003), range(19_000, 100, -4000),
    np.sort(np.random.default_rng(32).integers(0, 20_000, 300)),
]  # fmt: skip


@pytest.mark.parametrize("prefer", ["native", "wasm"])
@pytest.mark.parametrize("checksums", [False, True])
@pytest.mark.parametrize("is_open", [False, True])
def test_a_take_gives_the_rows_that_were_written(prefer, checksums, is_open, tmp_path):
    path = tmp_path / "t.f3"
    f3.write(TABLE, path, rows_per_unit=4096, row_group_rows=15_000, checksums=checksums)
    with path.open("rb") as opened, f3.open(opened if is_open else path, prefer=prefer) as file:
        scopes = {column.name: column.scopes for column in file.describe().columns}
        codecs = {column.name: column.codecs for column in file.describe().columns}
        assert "shared" in scopes["shared"]
        assert "zstd" in codecs["packed"]
        for wanted in WANTED:
            numbers = np.arange(20_000)[wanted]
            assert file.read(rows=wanted).equals(TABLE.take(pa.array(numbers)))
            assert file.read(["blob", "number"], rows=wanted).equals(TABLE.select(["blob", "number"]).take(numbers))


@pytest.mark.parametrize("prefer", ["native", "wasm"])
def test_a_take_decodes_no_unit_whole(prefer, tmp_path, monkeypatch):
    table = TABLE.drop_columns(["list", "struct"])
    f3.write(table, tmp_path / "t.f3", rows_per_unit=4096)
    with f3.open(tmp_path / "t.f3", prefer=prefer) as file:
        first = file.read(rows=[1])  # shared dictionaries are decoded once
        monkeypatch.setattr(unit_codec.Decoder, "decode_into", lambda *arguments: pytest.fail("units are decoded"))
        monkeypatch.setattr(unit_codec.Decoder, "decode", lambda *arguments: pytest.fail("a unit is decoded"))
        assert first.equals(table.slice(1, 1))
        for wanted in WANTED[:3]:
            assert file.read(rows=wanted).equals(table.take(pa.array(np.arange(20_000)[wanted])))


def test_a_broken_unit_is_named_as_when_all_rows_are_read(tmp_path):
    path = tmp_path / "t.f3"
    f3.write(TABLE.select(["blob"]), path, rows_per_unit=4096)
    data = bytearray(path.read_bytes())
    data[4] ^= 1  # the number of rows in the first unit's header
    path.write_bytes(data)
    with f3.open(path) as file:
        with pytest.raises(F3Error, match="column blob: EncUnit 0 of 1: the payload has another number of rows"):
            file.read(rows=[5])
        assert file.read(rows=[15_000]).equals(TABLE.select(["blob"]).slice(15_000, 1))


def test_a_closed_file_gives_no_rows_of_the_file_that_has_its_number_now(tmp_path):
    for name, first in (("one", 0), ("other", 10**6)):
        f3.write(pa.table({"a": np.arange(first, first + 200_000) % 9973}), tmp_path / name, rows_per_unit=65_536)
    file = f3.open(tmp_path / "one")
    assert file.read(rows=[5])["a"].to_pylist() == [5]
    file.close()
    with (tmp_path / "other").open("rb"), pytest.raises(F3Error, match="is closed; open it again"):
        file.read(rows=[5])


def test_long_strings_that_are_wanted_often_come_in_several_arrays(tmp_path, monkeypatch):
    """The real limit of an array is 2 GB of strings. Here it is 2 MB."""

    def limited(values, indices, take=pc.take, **options):
        found = take(values, indices, **options)
        if found.nbytes > 2_000_000:
            raise pa.ArrowInvalid("offset overflow while concatenating arrays")
        return found

    monkeypatch.setattr(pc, "take", limited)
    texts = [f"v{number % 7}" for number in range(65_536)]
    texts[5] = "x" * 300
    f3.write(pa.table({"s": texts}), tmp_path / "t.f3", dictionary="shared")
    read = f3.open(tmp_path / "t.f3").read(rows=[5] * 7500)["s"]
    assert read.num_chunks > 1
    assert len(read) == 7500
    assert read[7499].as_py() == texts[5]


def test_the_bytes_of_strings_are_checked_also_if_the_first_guess_held_them(monkeypatch):
    payload = unit_codec.encode(pa.array(["ab"] * 50)).payload
    checked = []
    monkeypatch.setattr(native, "check_size", lambda shape, rows, size: checked.append((rows, size)) or size)
    picked([payload], pa.string(), [50], [np.arange(20)])
    assert checked == [(20, 40)]


def test_a_payload_of_few_bytes_asks_for_no_work_without_end():
    """One entry of 20 MB, in few bytes, for every row."""
    lengths = encoders.node(Tag.CONSTANT, (20_000_000).to_bytes(4, "little"))
    entries = encoders.node(Tag.PLAIN, lengths + encoders.node(Tag.CONSTANT, b"x"))
    body = encoders.u32(1) + encoders.u32(20_000_000) + encoders.node(Tag.CONSTANT, b"\0") + entries
    payload = header(2, 0, 5000, nullable=False, data_bytes=2**31 - 1) + encoders.node(Tag.DICTIONARY, body, 1)
    with pytest.raises(F3Error, match="more decoding work"):
        picked([payload], pa.string(), [5000], [np.arange(5000)])


def test_a_file_that_became_shorter_gives_the_error_of_a_whole_read(tmp_path):
    path = tmp_path / "t.f3"
    f3.write(pa.table({"a": np.random.default_rng(3).random(200_000)}), path)
    with f3.open(path) as file:
        assert file.read(rows=[3]).num_rows == 1
        os.truncate(path, 1000)
        with pytest.raises(F3Error, match=r"became shorter after it was opened: .* none from \d+ on"):
            file.read(rows=[199_999])
