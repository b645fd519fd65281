"""Chunks of columns survive a round trip, have the same bytes as in Parquet, and are refused if broken."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libraries.document_store import kernels, messagepack
from libraries.document_store.encodings import (
    decimals,
    decode_coded,
    decode_column,
    delta,
    encode_column,
    hybrid,
    strings,
)
from libraries.document_store.encodings.bits import varint, zigzag
from libraries.document_store.errors import CorruptError
from libraries.document_store.schema import Schema
from libraries.document_store.shredding import CodedColumn, Column, Texts, key_column, shred
from libraries.document_store.tests.random_documents import documents
from libraries.document_store.values import ValueKind

WAYS = [False, pytest.param(True, marks=pytest.mark.skipif(not kernels.NATIVE, reason="python -m libraries.build"))]
KEY, TEXT_KEY = (Schema.new("id", kind).leaves[0] for kind in (ValueKind.INTEGER, ValueKind.TEXT))


def in_parquet(array, encoding):
    """Write a file of one column in that encoding."""
    file = io.BytesIO()
    options = {"use_dictionary": False, "column_encoding": {"a": encoding}, "compression": "none"}
    pq.write_table(
        pa.table({"a": array}, schema=pa.schema([pa.field("a", array.type, nullable=False)])), file, **options
    )
    return file.getvalue()


def integers(dice, count):
    walk = np.cumsum(dice.integers(-3, 4, count))
    return [walk, walk << 40, dice.integers(-(2**63), 2**63 - 1, count), np.zeros(count, np.int64)]


@pytest.mark.parametrize("count", [1, 2, 33, 128, 129, 1000])
def test_integers_are_parquets(count):
    for values in integers(np.random.default_rng(5), count):
        # Arrow uses blocks of 128 integers only for its 32-bit type.
        small = (values >> 40).astype(np.int32)
        assert delta.encode(small) in in_parquet(pa.array(small), "DELTA_BINARY_PACKED")


def test_texts_are_parquets():
    texts = [b"", b"same", b"same", b"sampled", b"x" * 1000, b"x" * 999 + b"y", *(b"%d" % n for n in range(500))]
    assert strings.encode_delta(Texts.of(texts)) in in_parquet(pa.array(texts), "DELTA_BYTE_ARRAY")


def column_of(kind, values, name="a"):
    found = [{"id": number, name: value} for number, value in enumerate(values)]
    columns = shred([messagepack.encode(document) for document in found], Schema.new("id", ValueKind.INTEGER)).columns
    return next(column for column in columns[1:] if column.leaf.kind is kind)


def assert_alike(one, two):
    assert one.leaf == two.leaf
    assert one.levels.tobytes() == two.levels.tobytes()
    if isinstance(one.values, Texts):
        assert one.values.offsets.tobytes() == two.values.offsets.tobytes()
        assert one.values.data.tobytes() == two.values.data.tobytes()
    else:
        assert (one.values.dtype, one.values.tobytes()) == (two.values.dtype, two.values.tobytes())


def of_all_kinds():
    dice = np.random.default_rng(6)
    yield from (column_of(ValueKind.INTEGER, values.tolist()) for values in integers(dice, 700))
    yield column_of(ValueKind.INTEGER, [dice.integers(-9, 9, size).tolist() for size in dice.integers(0, 5, 300)])
    yield column_of(ValueKind.INTEGER, [[], [[-(2**63)], [2**63 - 1, -(2**63), 5]], [[None, 7], None, [{}, 8]]])
    yield column_of(ValueKind.DOUBLE, [*dice.random(300).tolist(), float("nan"), -0.0, float("inf")])
    yield column_of(ValueKind.DOUBLE, [number / 1e7 for number in dice.integers(-(10**9), 10**9, 700).tolist()])
    yield column_of(ValueKind.DOUBLE, [[0.5, -1.25], None, [], [3e9, 1e-15]])
    yield column_of(ValueKind.BOOLEAN, [*(dice.random(700) < 0.5).tolist(), *[True] * 900, *[False] * 3])
    yield column_of(ValueKind.TEXT, [*map(str, range(300)), "", "x" * 5000, "x" * 5000, None, "é"])
    yield column_of(ValueKind.BINARY, [bytes(dice.integers(0, 256, length, np.uint8)) for length in range(90)])
    yield column_of(ValueKind.TEXT, [[str(n) for n in range(dice.integers(0, 9))] for _ in range(300)])
    yield column_of(ValueKind.NULL, [None] * 1000)
    yield key_column(KEY, [-(2**63), 5, 2**63 - 1], np.array([False, True, False]))
    yield key_column(TEXT_KEY, ["", "é", "x" * 300], np.array([True, True, False]))


@pytest.mark.parametrize("use_native", WAYS)
def test_columns_of_all_kinds(use_native):
    for column in of_all_kinds():
        data = encode_column(column, use_native=use_native)
        assert data == encode_column(column, use_native=False)
        assert_alike(column, decode_column(column.leaf, data, use_native=use_native))
        # Bytes after a chunk are ignored.
        assert_alike(column, decode_column(column.leaf, memoryview(data + b"more"), use_native=use_native))


@pytest.mark.parametrize("use_native", WAYS)
def test_integers_whose_steps_have_any_number_of_bits(use_native):
    dice = np.random.default_rng(8)
    for bits in range(1, 65):
        above = dice.integers(0, 2**64, 300, np.uint64) >> np.uint64(64 - bits)
        above[:2] = 0, 2**bits - 1
        values = np.cumsum(above - np.uint64(2 ** (bits - 1))).view(np.int64)
        column = column_of(ValueKind.INTEGER, values.tolist())
        data = encode_column(column, use_native=use_native)
        assert data == encode_column(column, use_native=False)
        assert_alike(column, decode_column(column.leaf, data, use_native=use_native))


@pytest.mark.parametrize("use_native", WAYS)
def test_steps_of_more_than_64_bits_are_refused(use_native):
    """Even if another part is narrow enough for the bytes to suffice."""
    values = [-(2**63), 2**62] * 32 + [-(2**63)]
    column = column_of(ValueKind.INTEGER, values)
    data = encode_column(column, use_native=use_native)
    widths = data.index(bytes([64, 64, 0, 0]))
    forged = data[:widths] + bytes([65, 63]) + data[widths + 2 :]
    with pytest.raises(CorruptError):
        decode_column(column.leaf, forged, use_native=use_native)


@pytest.mark.parametrize(
    ("values", "places"),
    [
        ([0.0, 3.0, -(2.0**51)], 0),
        ([49.3727335, 18.3471324, -0.5], 7),
        ([0.1, 0.2, 0.1 + 0.2], decimals.PLAIN),
        ([1e-15, 2.0], 15),
        ([1e-16], decimals.PLAIN),
        ([2.0**51 + 1], decimals.PLAIN),
        # With that many places the first value exceeds the exact integers of a double.
        ([1e12, 1e-7], decimals.PLAIN),
        *(([1.5, odd], decimals.PLAIN) for odd in (-0.0, float("nan"), float("inf"), -float("inf"), 5e-324, 1.8e308)),
        ([1.5] * 5000 + [1.25] * 3, 2),
    ],
)
@pytest.mark.parametrize("use_native", WAYS)
def test_doubles_are_decimals_or_plain_to_the_last_bit(values, places, use_native):
    column = column_of(ValueKind.DOUBLE, values)
    data = encode_column(column, use_native=use_native)
    assert decimals.encode(np.array(values))[0] == places
    assert decimals.encode(np.array(values)) in data
    assert_alike(column, decode_column(column.leaf, data, use_native=use_native))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.one_of(st.floats(), st.decimals(-(10**9), 10**9, places=4).map(float)), min_size=1, max_size=9)
    | st.lists(st.decimals(-(10**6), 10**6, places=9).map(float), min_size=1, max_size=300)
)
def test_any_doubles_come_back(values):
    column = column_of(ValueKind.DOUBLE, values)
    data = encode_column(column)
    assert data == encode_column(column, use_native=False)
    for use_native in (False, kernels.NATIVE):
        assert_alike(column, decode_column(column.leaf, data, use_native=use_native))


@pytest.mark.parametrize("use_native", WAYS)
@pytest.mark.parametrize("places", [16, 17, 254])
def test_decimals_of_too_many_places_are_refused(places, use_native):
    column = column_of(ValueKind.DOUBLE, [0.5, 0.25])
    data = bytearray(encode_column(column))
    data[data.index(decimals.encode(column.values))] = places
    with pytest.raises(CorruptError):
        decode_column(column.leaf, bytes(data), use_native=use_native)


def spelled_out(column):
    """Return the plain column of a coded one; a plain column is returned unchanged."""
    if isinstance(column, Column):
        return column
    different = column.different.tolist()
    assert len(set(different)) == len(different)
    assert ((column.codes == len(different)) == (column.levels != column.leaf.max_level)).all()
    codes = column.codes[column.levels == column.leaf.max_level].tolist()
    return Column(column.leaf, column.levels, Texts.of([different[code] for code in codes]))


def test_codes_stand_for_the_texts():
    for column in of_all_kinds():
        assert_alike(column, spelled_out(decode_coded(column.leaf, encode_column(column))))


@pytest.mark.skipif(not kernels.NATIVE, reason="python -m libraries.build")
def test_texts_of_which_few_differ_are_coded():
    dice = np.random.default_rng(8)
    ends = ["", "a", "ab", "x" * 256, "x" * 255 + "y", *(f"app.feed.{number}" for number in range(20))]
    chosen = [ends[place] for place in dice.integers(0, len(ends), 500)]
    for texts, coded in (
        (chosen, True),
        ([*chosen, *chosen[-1:] * 50, None, "", ""], True),
        ([[], chosen[:7], None, ["", ""], chosen], True),
        ([str(number) for number in range(254)] * 2, True),
        ([str(number) for number in range(255)], False),
        (["x" * 257], False),
    ):
        column = column_of(ValueKind.TEXT, texts)
        found = decode_coded(column.leaf, encode_column(column))
        assert isinstance(found, CodedColumn) is coded
        assert_alike(column, spelled_out(found))


@settings(max_examples=40, deadline=None)
@given(documents())
def test_columns_of_random_documents(found):
    rows = [messagepack.encode(document) for document in found]
    for column in shred(rows, Schema.new("id", ValueKind.INTEGER)).columns:
        data = encode_column(column)
        assert data == encode_column(column, use_native=False)
        assert_alike(column, decode_column(column.leaf, data))
        assert_alike(column, spelled_out(decode_coded(column.leaf, data)))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 40)), max_size=30))
def test_runs_and_groups(runs):
    values = np.repeat(*np.array(runs, np.int64).reshape(-1, 2).T).astype(np.uint8)
    data = hybrid.encode(values, 2)
    assert hybrid.decode(memoryview(data), 2, len(values)).tolist() == values.tolist()


def test_jumps_between_arrays_do_not_widen_the_steps_within():
    """Walks of +-3 with random starts: 3 bits per step, and 8 bytes per array."""
    dice = np.random.default_rng(7)
    walks = np.cumsum(dice.integers(-3, 4, (50, 200)), axis=1) + dice.integers(-(2**60), 2**60, (50, 1))
    column = column_of(ValueKind.INTEGER, walks.tolist())
    assert len(encode_column(column)) < 50 * 200 * 3 / 8 * 1.2 + 50 * 12


def test_runs_cost_as_little_as_they_say():
    assert len(hybrid.encode(np.zeros(100_000, np.uint8), 3)) == 4


@pytest.mark.parametrize("use_native", WAYS)
def test_a_chunk_cut_short_is_refused_at_every_byte(use_native):
    for column in of_all_kinds():
        data = encode_column(column)
        for length in [*range(min(len(data), 40)), len(data) - 1]:
            with pytest.raises(CorruptError):
                decode_column(column.leaf, data[:length], use_native=use_native)
            forged = length.to_bytes(4, "little") + data[4:length]
            with pytest.raises(CorruptError):
                decode_column(column.leaf, forged, use_native=use_native)


@pytest.mark.parametrize("use_native", WAYS)
def test_lengths_that_nobody_believes(use_native):
    """Texts that all repeat a long one decode to many times the stored size."""
    leaf = column_of(ValueKind.TEXT, ["x"]).leaf
    prefixes, suffixes = np.full(20_000, 60_000), np.zeros(20_000, np.int64)
    prefixes[0], suffixes[0] = 0, 60_000
    values = delta.encode(prefixes) + delta.encode(suffixes) + b"x" * 60_000
    levels = hybrid.encode(np.ones(20_000, np.uint8), 2)
    body = zigzag(1) + zigzag(len(levels)) + zigzag(20_000) + levels + varint(len(values)) + values
    with pytest.raises(CorruptError):
        decode_column(leaf, (4 + len(body)).to_bytes(4, "little") + body, use_native=use_native)


@pytest.mark.parametrize("use_native", WAYS)
def test_a_column_is_not_read_as_that_of_another_leaf(use_native):
    flat, deep = column_of(ValueKind.INTEGER, [1, 2]), column_of(ValueKind.INTEGER, [[1], [2]])
    with pytest.raises(CorruptError):
        decode_column(flat.leaf, encode_column(deep), use_native=use_native)
    with pytest.raises(CorruptError):
        decode_column(column_of(ValueKind.DOUBLE, [1.0]).leaf, encode_column(flat), use_native=use_native)
