"""Rows read with a filter are those that Arrow's own filter keeps, and zones in which no row can match are not read."""

import datetime
import io
import math
import random
import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import xxhash

from libraries import f3
from libraries.f3 import filtering
from libraries.f3.container import zones
from libraries.f3.decoders import native
from libraries.f3.tests.tables import opened, stored
from libraries.filters.codes import HIGHEST, LOWEST
from libraries.filters.filter_evaluation import mask
from libraries.filters.tree import Comparison, Literal

ROWS, ZONE_ROWS = 300, 9
NAN = math.nan
UNIVERSES = {
    "int8": (pa.int8(), [-128, -1, 0, 1, 127]),
    "uint8": (pa.uint8(), [0, 1, 255]),
    "int64": (pa.int64(), [-(2**63), -5, 0, 5, 2**63 - 1]),
    "uint64": (pa.uint64(), [0, 1, 2**63, 2**64 - 1]),
    "float32": (pa.float32(), [-math.inf, -1.5, -0.0, 0.0, 0.1, math.inf, NAN]),
    "float64": (pa.float64(), [-math.inf, -1.5, -0.0, 0.0, 0.1, math.inf, NAN]),
    "bool": (pa.bool_(), [False, True]),
    "string": (pa.string(), ["", "\0", "a", "a\0", "é", "prefix-8", "prefix-80", "prefix-81", "\U0001f600"]),
    "large_string": (pa.large_string(), ["", "abcdefgh", "abcdefghi", "abcdefgi"]),
    "binary": (pa.binary(), [b"", b"\0", b"\xff", b"\xff" * 9]),
    "date": (pa.date32(), [datetime.date(1, 1, 1), datetime.date(1970, 1, 1), datetime.date(9999, 12, 31)]),
    "time": (pa.time64("us"), [datetime.time(0), datetime.time(12, 30, 1), datetime.time(23, 59, 59, 999999)]),
    "timestamp": (pa.timestamp("ms"), [datetime.datetime(1900, 1, 1), datetime.datetime(2026, 11, 28, 1, 2, 3)]),
    "zoned": (
        pa.timestamp("us", "Europe/Prague"),
        [datetime.datetime(1990, 1, 1, tzinfo=datetime.UTC), datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)],
    ),
    "decimal": (
        pa.decimal128(38, 2),
        [Decimal("-" + "9" * 28 + ".25"), Decimal("-0.01"), Decimal("0"), Decimal("12.50")],
    ),
    "hundreds": (pa.decimal128(5, -2), [Decimal(-500), Decimal(0), Decimal(100), Decimal(700)]),
    "wide decimal": (pa.decimal256(50, 3), [Decimal("-1" + "0" * 45), Decimal("0.001"), Decimal("1" + "0" * 46)]),
}


def universe_table(dice: random.Random, rows: int = ROWS) -> pa.Table:
    """Return columns of all types: clustered, so that zones differ, and zones with nulls or NaN alone occur."""
    columns = {}
    for name, (kind, values) in UNIVERSES.items():
        found: list = []
        while len(found) < rows:
            few = dice.sample([*values, None], dice.randint(1, 3))
            found += dice.choices(few, k=dice.randint(1, 40))
        columns[name] = pa.array(found[:rows], kind)
    return pa.table(columns)


def random_filter(dice: random.Random, depth: int = 0) -> pc.Expression:
    if depth < 2 and dice.random() < 0.5:
        left, right = random_filter(dice, depth + 1), random_filter(dice, depth + 1)
        return dice.choice([left & right, left | right, ~left])
    name = dice.choice(list(UNIVERSES))
    kind, values = UNIVERSES[name]
    column, value = pc.field(name), pa.scalar(dice.choice(values), kind)
    match dice.randrange(6):
        case 0:
            return column.is_null()
        case 1:
            return column.is_valid()
        case 2 if not pa.types.is_floating(kind):
            return column.isin(pa.array(dice.sample(values, 2), kind))
        case 3 if name in ("string", "large_string"):
            return pc.starts_with(column, pattern=dice.choice(values))
    compare = dice.choice(["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"])
    return getattr(column, compare)(pc.scalar(value))


def comparable(table: pa.Table) -> pa.Table:
    """Return a table with floats as text: Arrow's `equals` distinguishes NaN from NaN, and takes -0.0 for 0.0."""
    columns = [each.cast(pa.string()) if pa.types.is_floating(each.type) else each for each in table.columns]
    return pa.table(columns, names=table.column_names)


def same(left: pa.Table, right: pa.Table) -> bool:
    return left.schema.equals(right.schema, check_metadata=True) and comparable(left).equals(comparable(right))


@pytest.mark.parametrize("seed", range(5))
def test_filtered_rows_are_those_that_arrow_keeps(seed):
    dice = random.Random(seed)
    table = universe_table(dice)
    file = opened(stored(table, rows_per_unit=ZONE_ROWS, row_group_rows=dice.choice([None, 100])))
    assert file.describe().zones >= ROWS // ZONE_ROWS
    for _ in range(30):
        where = random_filter(dice)
        expected = table.filter(where)
        names = dice.sample(table.column_names, dice.randint(0, 3))
        assert same(file.read(where=where), expected), where
        found = file.read(names, where=where)
        assert found.num_rows == expected.num_rows, where
        assert same(found, expected.select(names)), where


@pytest.mark.parametrize("name", UNIVERSES)
def test_bounds_of_a_zone_are_those_of_its_values(name):
    kind, values = UNIVERSES[name]
    table = pa.table({"x": pa.array([*values, None] * 4, kind)})
    found = opened(stored(table, rows_per_unit=len(values) + 1))._contents.zones
    ordinary = sorted((value for value in values if value == value), key=lambda each: each)
    assert found.rows.tolist() == [len(values) + 1] * 4
    assert found.nulls.tolist() == [[1] * 4]
    for value in ordinary:
        assert filtering.prune(found, Comparison("==", "x", Literal(value, kind))).may_be_true.all()
    below = Comparison("<", "x", Literal(ordinary[0], kind))
    above = Comparison(">", "x", Literal(ordinary[-1], kind))
    # Codes have 64 bits, which cannot tell the largest decimals apart, nor texts that are longer than 8 bytes.
    assert not filtering.prune(found, below).may_be_true.any() or pa.types.is_decimal(kind)
    assert not filtering.prune(found, above).may_be_true.any() or pa.types.is_decimal(kind) or not_exact(kind)


def not_exact(kind):
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind)


def test_only_zones_that_may_match_are_tested(monkeypatch):
    tested = []
    monkeypatch.setattr(filtering, "mask", lambda bound, data: tested.append(len(data)) or mask(bound, data))
    table = pa.table({"x": range(10_000), "y": [f"{number:05}" for number in range(10_000)], "z": range(10_000)})
    file = opened(stored(table, rows_per_unit=1000))
    assert file.read(["z"], where=pc.field("x") == 4321)["z"].to_pylist() == [4321]
    assert file.read(["z"], where=pc.field("y") == "04321")["z"].to_pylist() == [4321]
    assert tested == [1000, 1000]
    # All rows of four zones match, so only the two at the ends are tested.
    assert file.read(["z"], where=(pc.field("x") >= 2500) & (pc.field("x") < 7500)).num_rows == 5000
    assert tested == [1000, 1000, 1000, 1000]
    assert file.read(where=pc.field("x") < 0).num_rows == 0
    assert file.read(where=pc.field("x").is_null()).num_rows == 0
    assert len(tested) == 4


def test_a_file_of_one_zone_has_no_zone_maps():
    table = pa.table({"x": range(100)})
    file = opened(stored(table))
    assert file.describe().zones == 0
    assert file.read(where=pc.field("x") > 97)["x"].to_pylist() == [98, 99]
    assert opened(stored(pa.table({"s": [{"a": 1}] * 9}), rows_per_unit=3)).describe().zones == 0


def test_filters_on_nested_and_missing_columns_and_of_other_functions():
    table = pa.table({"s": [{"a": number} for number in range(50)], "x": range(50), "t": ["a"] * 50})
    file = opened(stored(table, rows_per_unit=7))
    assert file.read(["x"], where=pc.field("s", "a") > 47)["x"].to_pylist() == [48, 49]
    assert file.read(["x"], where=(pc.field("x") * 2 > 94) & (pc.field("x") < 49))["x"].to_pylist() == [48]
    for where, message in (
        (pc.field("nowhere") > 1, "no columns are named 'nowhere'"),
        (pc.field("t") > 1, "the filter does not fit the columns"),
        (pc.field("x"), "the filter does not fit the columns"),
        (5, "where must be a pyarrow expression"),
    ):
        with pytest.raises(f3.F3Error, match=message) as caught:
            file.read(where=where)
        assert str(caught.value).count("\n") == 0
    with pytest.raises(f3.F3Error, match="`rows` and `where` cannot be combined"):
        file.read(rows=[1], where=pc.field("x") > 1)


def test_text_bounds_are_the_same_without_the_native_library(monkeypatch):
    if native.library() is None:
        pytest.skip("the kernels are not built: python -m libraries.build")
    dice = random.Random(3)
    texts = [None, "", "\0", "a", "a\0b", "é" * 9, *("".join(dice.choices("a\0é\U0001f600", k=9)) for _ in range(50))]
    for kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        for _ in range(50):
            chosen = [*dice.choices(texts, k=9), "z"]
            column = pa.chunked_array([pa.array(chosen[:4], kind).slice(1), pa.array(chosen, kind).slice(2)])
            expected = zones._text_bounds(column, zones.kind_of_type(kind))
            with monkeypatch.context() as context:
                context.setattr(native, "library", lambda: None)
                assert zones._text_bounds(column, zones.kind_of_type(kind)) == expected


def forged(change) -> io.BytesIO:
    """Return a file of three zones whose section of zone maps is changed."""
    data = bytearray(stored(pa.table({"x": range(30), "y": range(30)}), rows_per_unit=10).getvalue())
    place = data.index(b"F3ZM")
    end = place + 16 + 4 * (3 + 2) + 21 * 3 * 2
    change(data, place)
    struct.pack_into("<Q", data, end, xxhash.xxh64_intdigest(bytes(data[place:end])))
    return io.BytesIO(bytes(data))


@pytest.mark.parametrize(
    ("offset", "number", "message"),
    [
        (0, 7, "begins with .* expected b'F3ZM'"),
        (8, 4, "4 zones of 2 columns need"),
        (12, 2**32 - 1, "3 zones of 4294967295 columns need"),
        (16, 11, "zones have 31 rows"),
        (16, 0, "a zone has 0 rows"),
        (28, 1, r"ascend and be less than 2 \(got \[1, 1\]\)"),
        (32, 9, r"ascend and be less than 2 \(got \[0, 9\]\)"),
    ],
)
def test_broken_zone_maps_are_refused(offset, number, message):
    def change(data, place):
        struct.pack_into("<I", data, place + offset, number)

    file = opened(forged(change), verify="none")
    assert file.read().num_rows == 30
    with pytest.raises(f3.F3Error, match=message):
        file.read(where=pc.field("x") > 5)


def test_a_flipped_bit_of_a_bound_is_noticed():
    data = bytearray(stored(pa.table({"x": range(30)}), rows_per_unit=10).getvalue())
    data[data.index(b"F3ZM") + 16 + 4 * (3 + 1) + 8 * 3 + 1] ^= 1
    file = opened(bytes(data))
    with pytest.raises(f3.F3Error, match="does not match its checksum"):
        file.read(where=pc.field("x") == 5)
    assert any("checksum" in fault for fault in file.describe().faults)
    assert file.read().num_rows == 30


def test_columns_by_their_places_and_equal_names():
    table = pa.table({"b": range(20), "a": range(20, 0, -1)})
    file = opened(stored(table, rows_per_unit=5))
    assert file.read(where=pc.field(0) > 15).equals(table.filter(pc.field(0) > 15))
    twice = pa.table([range(9), range(9, 18), range(9)], names=["x", "x", "y"])
    file = opened(stored(twice, rows_per_unit=2))
    for where in (pc.field("y") > 6, pc.field("y") >= 0, pc.field("y") == 3, pc.field("y") > 99):
        assert spelled_columns(file.read(where=where)) == spelled_columns(twice.filter(where))
    assert file.read(["y", "y"], where=pc.field("y") > 6).column_names == ["y", "y"]


def spelled_columns(table: pa.Table) -> list:
    return [table.column_names, *(column.to_pylist() for column in table.columns)]


@pytest.mark.parametrize("share", [0, 0.001, 0.1, 0.13, 0.5, 0.99, 1])
def test_ranges_with_many_matches_are_read_whole(share, monkeypatch):
    random_numbers = np.random.default_rng(8).random(4000)
    table = pa.table({"u": random_numbers, "v": range(4000), "k": range(4000)})
    for at_once in (300, 10_000):
        monkeypatch.setattr(filtering, "_AT_ONCE_ROWS", at_once)
        file = opened(stored(table, rows_per_unit=700))
        for where in (pc.field("u") < share, pc.field("k") < int(4000 * share), pc.add(pc.field("u"), 0.0) < share):
            expected = table.filter(where)
            assert file.read(where=where).equals(expected)
            assert file.read(["v", "u"], where=where).equals(expected.select(["v", "u"]))
            assert file.read(["u"], where=where).equals(expected.select(["u"]))
            assert file.read([], where=where).num_rows == expected.num_rows


def test_zone_maps_of_a_later_version_are_ignored():
    def change(data, place):
        struct.pack_into("<I", data, place + 4, 2)

    assert opened(forged(change), verify="none").read(where=pc.field("x") > 27)["x"].to_pylist() == [28, 29]


def test_zones_without_ordinary_values_have_empty_bounds():
    table = pa.table({"x": pa.array([NAN, NAN, None, None, 1.0, None], pa.float64())})
    found = opened(stored(table, rows_per_unit=2))._contents.zones
    assert found.codes[0, 0].tolist()[:2] == [HIGHEST, HIGHEST]
    assert found.codes[1, 0].tolist()[:2] == [LOWEST, LOWEST]
    assert found.nulls[0].tolist() == [0, 2, 1]
    assert np.all(found.codes[0, 0, 2] <= found.codes[1, 0, 2])
