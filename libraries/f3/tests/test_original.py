"""Files of the original are read as specified. Impossible files are rejected with the reason."""

import struct

import pyarrow as pa
import pytest
import xxhash

from libraries.f3.errors import F3Error
from libraries.f3.tests import originals
from libraries.f3.tests.originals import (
    BLOBS,
    CASCADE,
    LOCAL,
    SHARED,
    Original,
    blob,
    opened,
    plain,
    prepended_lz4,
    streamed_zstd,
    u8,
    unit,
)

INT, TEXT = pa.int32(), pa.string()


def numbers(values, arrow_type=INT, **described):
    return unit(plain(values, arrow_type), len(values), **described)


def texts(values, **described):
    return unit(plain(values, TEXT), len(values), module=1, **described)


def flat_file(**described):
    """Return a file with two row groups and an empty third.

    Unit and IOUnit boundaries differ between its two columns.
    """
    file = Original(pa.schema({"a": INT, "b": TEXT}))
    a = [file.chunk([numbers([1, None]), numbers([3])], 3, **described), file.chunk([numbers([4, 5])], 2, **described)]
    b = [file.chunk([texts(["p"]), texts(["q", None, "s", "t"])], 5, **described)]
    file.group(5, a, b)
    file.group(2, [file.chunk([numbers([6, 7])], 2, **described)], [file.chunk([texts(["u"]), texts(["v"])], 2)])
    return file.group(0, [], [])


FLAT_TABLE = pa.table(
    {"a": pa.array([1, None, 3, 4, 5, 6, 7], INT), "b": pa.array(["p", "q", None, "s", "t", "u", "v"])}
)


def test_units_that_end_elsewhere_in_each_column_are_read():
    file = opened(flat_file().bytes(), verify="file")
    assert file.num_rows == 7
    assert file.read().equals(FLAT_TABLE)
    assert pa.Table.from_batches(list(file.batches())).equals(FLAT_TABLE)


@pytest.mark.parametrize("row", range(7))
def test_each_row_is_found(row):
    assert opened(flat_file().bytes()).read(rows=[row]).equals(FLAT_TABLE.slice(row, 1).combine_chunks())
    following = opened(flat_file().bytes()).read(["b"], rows=slice(row, 6))
    assert following.equals(FLAT_TABLE.select(["b"]).slice(row, 6 - row))


def test_checksums_of_io_units_are_verified_when_they_are_there():
    data = bytearray(flat_file(checksum=True).bytes())
    assert opened(bytes(data)).read().equals(FLAT_TABLE)
    data[data.index(b"qst")] ^= 1
    with pytest.raises(F3Error, match="not match its checksum"):
        opened(bytes(data)).read()
    assert opened(bytes(data), verify="none").read()["b"][1].as_py() == "p"
    # The other column is valid.
    assert opened(bytes(data)).read(["a"]).equals(FLAT_TABLE.select(["a"]))


def with_its_checksum(data):
    """Return the file with a checksum that matches its changed bytes."""
    fitted = bytearray(data)
    struct.pack_into("<Q", fitted, len(data) - 22, xxhash.xxh64_intdigest(data[:-32]))
    return bytes(fitted)


def test_with_the_file_verified_a_flipped_bit_of_an_io_unit_is_found():
    whole = flat_file(checksum=True).bytes()
    assert with_its_checksum(whole) == whole
    flipped = bytearray(whole)
    flipped[flipped.index(b"qst")] ^= 1
    with pytest.raises(F3Error, match="the file's checksum is"):
        opened(bytes(flipped), verify="file")
    # The checksum of the whole file matches here, because it is computed after the change.
    file = opened(with_its_checksum(flipped), verify="file")
    assert file.read(["a"]).equals(FLAT_TABLE.select(["a"]))
    for read in (file.read, lambda: list(file.batches()), lambda: file.read(["b"], rows=[0])):
        with pytest.raises(F3Error, match=r"the IOUnit at \d+ does not match its checksum"):
            read()


@pytest.mark.parametrize("verify", ["units", "file"])
def test_a_wrong_checksum_of_an_io_unit_is_found_in_a_file_whose_own_is_right(verify):
    data = flat_file(checksum=7).bytes()
    with pytest.raises(F3Error, match="the IOUnit at 0 does not match its checksum"):
        opened(data, verify=verify).read()
    assert opened(data, verify="none").read().equals(FLAT_TABLE)


@pytest.mark.parametrize("verify", ["units", "file"])
def test_a_wrong_checksum_of_a_shared_dictionary_is_found(verify):
    file = shared_file()
    file.dictionary_chunks[0] |= {6: originals.u64(7)}
    with pytest.raises(F3Error, match=r"column a: the IOUnit at \d+ does not match its checksum"):
        opened(file.bytes(), verify=verify).read()
    assert opened(file.bytes(), verify="none").read()["b"].to_pylist() == ["x"] * 4


@pytest.mark.parametrize(("compression", "compress"), [(1, streamed_zstd), (2, prepended_lz4)])
def test_compressed_units_are_read(compression, compress):
    file = Original(pa.schema({"a": INT}))
    stored = compress(plain([1, None, 3], INT))
    file.group(3, [file.chunk([unit(stored, 3, compression=compression)], 3)])
    assert opened(file.bytes()).read()["a"].to_pylist() == [1, None, 3]


@pytest.mark.parametrize(
    ("compression", "stored", "told"),
    [
        (1, b"not zstd at all", "cannot be decompressed"),
        (1, streamed_zstd(bytes(2**28)), "exceeds the limit"),
        (1, pa.compress(bytes(2**28), codec="zstd", asbytes=True), "unpack to 268435456, which exceeds the limit"),
        (2, prepended_lz4(bytes(100))[:-3], "cannot be decompressed"),
        (2, b"\xff\xff\xff\xff" + bytes(10), "claim to unpack to 4294967295"),
        (2, b"abc", "too few for an LZ4 block"),
    ],
    ids=["zstd", "zstd bomb", "zstd bomb with its size", "lz4", "lz4 bomb", "lz4 length"],
)
def test_broken_compression_is_refused(compression, stored, told):
    file = Original(pa.schema({"a": INT}))
    file.group(3, [file.chunk([unit(stored, 3, compression=compression)], 3)])
    with pytest.raises(F3Error, match=f"column a: EncUnit at 0: .*{told}"):
        opened(file.bytes()).read()


def test_a_built_in_unit_without_code_is_refused_with_that_reason():
    file = Original(pa.schema({"a": INT, "b": TEXT}), modules=())
    file.group(1, [file.chunk([numbers([1], encoding=CASCADE, module=None)], 1)], [file.chunk([texts(["x"])], 1)])
    with pytest.raises(F3Error) as told:
        opened(file.bytes()).read()
    assert "column a: " in str(told.value)
    assert "write_built_in_wasm" in str(told.value)
    assert opened(file.bytes()).schema.names == ["a", "b"]


def test_a_built_in_unit_with_code_is_read():
    file = Original(pa.schema({"a": INT}))
    file.group(1, [file.chunk([numbers([1], encoding=CASCADE)], 1)])
    assert opened(file.bytes()).read()["a"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("described", "told"),
    [({"module": None}, "encoding 255 names no module"), ({"module": 2}, "module 2 is needed, .* 2 modules, counted")],
)
def test_a_unit_whose_module_is_not_there_is_refused(described, told):
    file = Original(pa.schema({"a": INT}))
    file.group(1, [file.chunk([numbers([1], **described)], 1)])
    with pytest.raises(F3Error, match=told):
        opened(file.bytes()).read()


def test_a_file_without_optional_sections_is_opened():
    file = Original(pa.schema({"a": INT}))
    file.group(1, [file.chunk([numbers([1])], 1)])
    assert opened(file.bytes(slot_3=None)).schema.names == ["a"]
    with pytest.raises(F3Error, match="module 0 is needed, but the file has only 0 modules"):
        opened(file.bytes(slot_3=None)).read()


# --- dictionaries --------------------------------------------------------------------------------------------------


def indices(values, width, rows=None):
    return unit(plain(values, width), len(values) if rows is None else rows)


def test_local_dictionaries_are_read_in_pairs():
    file = Original(pa.schema({"a": TEXT}))
    pairs = [texts(["x", "y"]), indices([1, None, 0], pa.uint8()), texts(["z"]), indices([0, 0], pa.uint8())]
    file.group(5, [file.chunk(pairs, 5, scope=LOCAL)])
    assert opened(file.bytes()).read()["a"].to_pylist() == ["y", None, "x", "z", "z"]
    assert opened(file.bytes()).read(rows=[3])["a"].to_pylist() == ["z"]


@pytest.mark.parametrize(("entries", "width"), [(255, pa.uint8()), (256, pa.uint16()), (65_536, pa.uint32())])
def test_the_width_of_indices_follows_the_dictionary(entries, width):
    file = Original(pa.schema({"a": INT}))
    pair = [numbers(range(entries)), indices([entries - 1, 0], width)]
    file.group(2, [file.chunk(pair, 2, scope=LOCAL)])
    assert opened(file.bytes()).read()["a"].to_pylist() == [entries - 1, 0]


def test_an_empty_local_dictionary_means_nulls_of_the_column_s_type():
    """The bytes of the dictionary, and the indices, are skipped."""
    file = Original(pa.schema({"a": TEXT}))
    pair = [unit(b"whatever stands here", 0, module=1), unit(b"neither", 3)]
    file.group(3, [file.chunk(pair, 3, scope=LOCAL)])
    read = opened(file.bytes()).read()
    assert read["a"].type == TEXT
    assert read["a"].to_pylist() == [None] * 3


def test_what_stands_at_a_null_index_means_nothing():
    payload = bytearray(plain([0, None], pa.uint8()))
    payload[-1] = 200
    file = Original(pa.schema({"a": TEXT}))
    file.group(2, [file.chunk([texts(["x"]), unit(bytes(payload), 2)], 2, scope=LOCAL)])
    assert opened(file.bytes()).read()["a"].to_pylist() == ["x", None]


def test_an_index_behind_the_dictionary_is_refused():
    file = Original(pa.schema({"a": TEXT}))
    file.group(1, [file.chunk([texts(["x"]), indices([1], pa.uint8())], 1, scope=LOCAL)])
    with pytest.raises(F3Error, match="column a: index 1 is out of range of a dictionary of 1 entries"):
        opened(file.bytes()).read()


def test_named_local_dictionaries_must_be_the_even_ones():
    pair = [texts(["x"]), indices([0], pa.uint8())]
    for ordinals, fine in (((0,), True), ((1,), False)):
        file = Original(pa.schema({"a": TEXT}))
        file.group(1, [file.chunk(pair, 1, scope=LOCAL, ordinals=ordinals)])
        if fine:
            assert opened(file.bytes()).read()["a"].to_pylist() == ["x"]
        else:
            with pytest.raises(F3Error, match="must be every second EncUnit"):
                opened(file.bytes()).read()


def shared_file(*, entries=("x", "y"), more=("z",), wanted=(0, 1, 2, None), types=TEXT, width=None):
    """Return a file with two dictionaries and a column for each. One dictionary has two IOUnits, the other only the
    first of them."""
    file = Original(pa.schema({"a": TEXT, "b": TEXT}))
    file.dictionary([0, 1], types)
    file.dictionary([0], types)
    width = pa.uint8() if width is None else width
    a = [file.chunk([indices(wanted, width)], len(wanted), scope=SHARED)]
    b = [file.chunk([indices([0] * len(wanted), pa.uint8())], len(wanted), scope=SHARED, dictionary=1)]
    file.group(len(wanted), a, b)
    file.dictionary_chunks = [file.chunk([texts(list(part))], len(part)) for part in (entries, more)]
    return file


def test_shared_dictionaries_of_two_io_units_are_read():
    read = opened(shared_file().bytes()).read()
    assert read.to_pydict() == {"a": ["x", "y", "z", None], "b": ["x"] * 4}


def test_the_width_of_shared_indices_follows_all_parts():
    many = [f"t{number}" for number in range(200)]
    file = shared_file(entries=many, more=[f"u{number}" for number in range(56)], wanted=(255, 0), width=pa.uint16())
    assert opened(file.bytes()).read()["a"].to_pylist() == ["u55", "t0"]


def test_an_empty_shared_dictionary_means_nulls():
    file = Original(pa.schema({"a": TEXT}))
    number = file.dictionary([0], TEXT)
    file.group(2, [file.chunk([unit(b"anything", 2)], 2, scope=SHARED, dictionary=number)])
    file.dictionary_chunks = [file.chunk([unit(b"something", 0)], 0)]
    assert opened(file.bytes()).read()["a"].to_pylist() == [None, None]


def test_shared_dictionaries_lose_their_time_zone_and_are_read():
    zoned = pa.timestamp("us", "UTC")
    file = Original(pa.schema({"a": zoned}))
    file.dictionary([0], pa.timestamp("us"))
    file.group(2, [file.chunk([indices([1, 0], pa.uint8())], 2, scope=SHARED)])
    file.dictionary_chunks = [file.chunk([numbers([5, 7], zoned)], 2)]
    read = opened(file.bytes()).read()["a"]
    assert (read.type, read.cast(pa.int64()).to_pylist()) == (zoned, [7, 5])


def test_a_dictionary_of_another_type_is_refused():
    with pytest.raises(F3Error, match="column a: shared dictionary 0 must hold string, but holds int32"):
        opened(shared_file(types=pa.int32()).bytes()).read()


def test_a_dictionary_that_is_not_there_is_refused():
    file = Original(pa.schema({"a": TEXT}))
    file.group(1, [file.chunk([indices([0], pa.uint8())], 1, scope=SHARED, dictionary=4)])
    with pytest.raises(F3Error, match="shared dictionary 4 is needed, but the file has 0"):
        opened(file.bytes()).read()
    with pytest.raises(F3Error, match=r"shared dictionary 4 is needed|has no table of shared dictionaries"):
        opened(file.bytes(slot_5=None)).read()


# --- nested columns ------------------------------------------------------------------------------------------------


def list_unit(present, offsets, *rest):
    return b"".join([blob(plain(present, pa.bool_())), blob(plain(offsets, pa.int32())), *rest])


def test_lists_in_two_blobs_are_read():
    """The built-in decoder stores lists in two blobs (specification 10.4). The offsets of the second unit do not begin
    at 0."""
    file = Original(pa.schema({"a": pa.list_(INT)}), modules=[BLOBS], tree=[{0: u8(originals.LIST), 1: [{1: []}]}])
    lists = [unit(list_unit([True, False], [0, 2, 2]), 2), unit(list_unit([True, True], [7, 8, 8]), 2)]
    items = [unit(blob(plain([1, None], INT)), 2), unit(blob(plain([3], INT)), 1)]
    file.group(4, [file.chunk(lists, 4)], [file.chunk(items[:1], 2), file.chunk(items[1:], 1)])
    read = opened(file.bytes()).read()
    read.validate(full=True)
    assert read["a"].to_pylist() == [[1, None], None, [3], []]
    assert opened(file.bytes()).read(rows=slice(2, 3))["a"].to_pylist() == [[3]]


def pushed_file(second=(True, False)):
    """Return a file with pushed-down lists of structs between two flat columns."""
    leaf = {1: []}
    schema = pa.schema({"before": INT, "a": pa.list_(pa.struct({"x": INT, "y": INT})), "after": INT})
    file = Original(schema, modules=[BLOBS], tree=[leaf, {0: u8(originals.PUSHED_DOWN), 1: []}, leaf])
    x = unit(list_unit([True, False], [0, 2, 2], blob(plain([1, None], INT))), 2)
    y = unit(list_unit(second, [0, 2, 2], blob(plain([5, 6], INT))), 2)
    flat = unit(blob(plain([8, 9], INT)), 2)
    return file.group(2, *[[file.chunk([each], 2)] for each in (flat, x, y, flat)])


def test_lists_of_structs_without_columns_of_their_own_are_read():
    file = pushed_file().bytes()
    read = opened(file).read()
    read.validate(full=True)
    assert read.to_pydict() == {"before": [8, 9], "a": [[{"x": 1, "y": 5}, {"x": None, "y": 6}], None], "after": [8, 9]}
    assert opened(file).read(["a"], rows=[1, 0])["a"].to_pylist() == [None, read["a"][0].as_py()]
    assert [column.name for column in opened(file).describe().columns] == ["before", "a[].x", "a[].y", "after"]


def test_fields_with_other_lists_each_are_refused():
    with pytest.raises(F3Error, match="column a: its fields disagree on which lists are present"):
        opened(pushed_file(second=[True, True]).bytes()).read()


# --- contradictory counts ------------------------------------------------------------------------------


def test_a_column_with_other_rows_than_its_row_group_is_refused():
    file = Original(pa.schema({"a": INT}))
    file.group(3, [file.chunk([numbers([1, 2])], 2)])
    with pytest.raises(F3Error, match="column a: has 2 rows in row group 0, but that row group has 3"):
        opened(file.bytes()).read()


def test_an_io_unit_with_other_rows_than_its_units_is_refused():
    file = Original(pa.schema({"a": INT}))
    file.group(3, [file.chunk([numbers([1, 2])], 3)])
    with pytest.raises(F3Error, match=r"the IOUnit at \d+ has 3 rows, but its units have 2"):
        opened(file.bytes()).read()


def test_lists_with_other_items_than_their_unit_are_refused():
    file = Original(pa.schema({"a": pa.list_(INT)}), modules=[BLOBS])
    lists = [unit(list_unit([True], [0, 2]), 1)]
    file.group(1, [file.chunk(lists, 1)], [file.chunk([unit(blob(plain([1], INT)), 1)], 1)])
    with pytest.raises(F3Error, match=r"column a\[\]: unit 0 has 1 rows, but unit 0 of the parent column refers to 2"):
        opened(file.bytes()).read()


def test_items_without_a_unit_are_refused():
    file = Original(pa.schema({"a": pa.list_(INT)}), modules=[BLOBS])
    file.group(1, [file.chunk([unit(list_unit([True], [0, 2]), 1)], 1)], [])
    with pytest.raises(F3Error, match="unit 0 of a column is needed, but the column has 0 units, counted from 0"):
        opened(file.bytes()).read()


def test_columns_in_one_place_are_refused():
    file = Original(pa.schema({"a": INT, "b": INT}))
    chunk = file.chunk([numbers([1])], 1)
    file.group(1, [chunk], [chunk])
    with pytest.raises(F3Error, match="inside another IOUnit"):
        opened(file.bytes()).read()
    assert opened(file.bytes()).read(["a"])["a"].to_pylist() == [1]


def test_a_unit_of_more_rows_than_are_read_is_refused():
    file = Original(pa.schema({"a": INT}))
    file.group(2**25, [file.chunk([unit(plain([1], INT), 2**25)], 2**25)])
    with pytest.raises(F3Error, match="exceeds the limit of 16777216"):
        opened(file.bytes()).read()


def test_an_io_unit_that_reaches_into_the_metadata_is_refused():
    file = Original(pa.schema({"a": INT}), modules=())
    chunk = file.chunk([numbers([1])], 1)
    size = len(file.data)
    longer = unit(plain([1], INT) + bytes(50), 1)[1]
    chunk |= {1: originals.u32(size + 50), 5: [longer]}
    # The directory of modules, which is between the data and the metadata, is smaller than this.
    with pytest.raises(F3Error, match="reaches into the metadata"):
        opened(file.group(1, [chunk]).bytes()).read()


@pytest.mark.parametrize("change", [-1, 1, 32])
@pytest.mark.parametrize("place", [32, 28])
def test_a_postscript_with_other_sizes_is_refused(place, change):
    """No checksum covers the sizes. However, the metadata must fill all bytes up to the footer."""
    data = bytearray(flat_file().bytes())
    (size,) = struct.unpack_from("<I", data, len(data) - place)
    struct.pack_into("<I", data, len(data) - place, size + change)
    with pytest.raises(F3Error):
        opened(bytes(data), verify="none").schema  # noqa: B018 - opening is what fails


def test_units_without_rows_are_not_looked_at():
    file = Original(pa.schema({"a": INT}))
    nothing = unit(b"whatever stands here", 0)
    file.group(2, [file.chunk([nothing, numbers([1]), nothing, numbers([2]), nothing], 2)])
    assert opened(file.bytes()).read()["a"].to_pylist() == [1, 2]


def test_offsets_that_are_missing_are_refused():
    file = Original(pa.schema({"a": pa.list_(INT)}), modules=[BLOBS])
    lists = [unit(list_unit([True, True], [0, None, 1]), 2)]
    file.group(2, [file.chunk(lists, 2)], [file.chunk([unit(blob(plain([1], INT)), 1)], 1)])
    with pytest.raises(F3Error, match="column a: the offsets of lists contain nulls"):
        opened(file.bytes()).read()
