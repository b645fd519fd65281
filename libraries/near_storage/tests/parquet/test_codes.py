"""Codes keep the order of values; a literal's codes bound the values below and above it; kinds of columns."""

from __future__ import annotations

import math
import random
import struct
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest

from libraries.filters.codes import HIGHEST, UNORDERED, CodeKind, code, literal_codes, literal_value, spelled_out
from libraries.filters.tree import Literal
from libraries.near_storage.parquet.column_kinds import bound_value, kind_of
from libraries.near_storage.parquet.schema import Logical
from libraries.near_storage.tests.parquet.universes import DECIMAL, UNIVERSES, Universe, column, int96

SEED = 21


def ordinary(universe: Universe) -> list:
    """Return the universe's values and some between them, ascending, without NaN."""
    rng = random.Random(SEED)
    values = [value for value in universe.values if value == value]
    first = values[0]
    if isinstance(first, bool):
        more: list = []
    elif isinstance(first, int):
        more = [rng.randint(values[0], values[-1]) for _ in range(200)]
    elif isinstance(first, Decimal):
        low, high = (int(value.scaleb(2)) for value in (values[0], values[-1]))
        more = [Decimal(rng.randint(low >> shift, high >> shift)).scaleb(-2) for shift in range(0, 80, 2)]
    elif isinstance(first, float):
        more = [float.fromhex(f"{sign}0x1p{power}") for power in range(-14, 15) for sign in ("", "-")]
    elif isinstance(first, str):
        more = ["".join(rng.choices("\0aé\U0001f600", k=rng.randint(0, 9))) for _ in range(200)]
    else:
        size = universe.column.length
        more = [bytes(rng.choices(b"\0a\xff", k=size or rng.randint(0, 10))) for _ in range(200)]
    return sorted(values + more, key=lambda value: value.encode() if isinstance(value, str) else value)


def code_of(universe: Universe, value: object) -> int:
    kind = kind_of(universe.column)
    stored = bound_value(universe.column, kind, universe.plain(value))
    assert stored is not None
    return code(kind, stored)


@pytest.mark.parametrize("universe", UNIVERSES, ids=lambda universe: universe.name)
def test_codes_keep_the_order(universe):
    codes = [code_of(universe, value) for value in ordinary(universe) if value != 0 or not universe.floating]
    assert codes == sorted(codes)
    assert 0 <= codes[0] <= codes[-1] <= HIGHEST


@pytest.mark.parametrize("universe", UNIVERSES, ids=lambda universe: universe.name)
def test_a_literals_codes_bound_what_is_below_and_above(universe):
    values = ordinary(universe)
    kind = kind_of(universe.column)
    for literal in values:
        codes = literal_codes(kind, Literal(literal, universe.type))
        assert codes is not None
        for value in values:
            own = code_of(universe, value)
            if value < literal:
                assert own <= codes.below, (value, literal)
            elif value > literal:
                assert own >= codes.above, (value, literal)
            else:
                assert codes.low <= own <= codes.high, (value, literal)


@pytest.mark.parametrize("universe", UNIVERSES, ids=lambda universe: universe.name)
def test_what_is_spelled_out_has_its_code_for_itself_among_all_up_to_it(universe):
    values = ordinary(universe)
    kind = kind_of(universe.column)
    for value in values:
        stored = bound_value(universe.column, kind, universe.plain(value))
        assert stored is not None
        if spelled_out(kind, stored):
            assert not [
                other for other in values if other < value and code_of(universe, other) == code_of(universe, value)
            ]


EXACT = {"boolean", "signed", "unsigned", "float16", "float32", "float64", "date", "time", "timestamp", "int96"}


@pytest.mark.parametrize("universe", UNIVERSES, ids=lambda universe: universe.name)
def test_which_kinds_have_one_code_a_value(universe):
    kind = kind_of(universe.column)
    values = dict.fromkeys(value for value in ordinary(universe))
    distinct = len({code_of(universe, value) for value in values})
    if kind.name in EXACT or universe.name in ("fixed 3", "decimal in int32", "decimal in int64"):
        assert distinct == len(values)
    else:
        assert distinct < len(values)


KINDS = {
    ("INT32", None): CodeKind("signed", bits=32),
    ("FLOAT", None): CodeKind("float32"),
    ("BYTE_ARRAY", None): CodeKind("binary"),
    ("BYTE_ARRAY", "json"): CodeKind("text"),
    ("BYTE_ARRAY", "enum"): CodeKind("text"),
    ("BYTE_ARRAY", "bson"): CodeKind("binary"),
    ("INT64", "null"): UNORDERED,
    ("BYTE_ARRAY", "geometry"): UNORDERED,
    ("BYTE_ARRAY", "geography"): UNORDERED,
    ("BYTE_ARRAY", "variant"): UNORDERED,
    ("BYTE_ARRAY", "unknown"): UNORDERED,
    ("BYTE_ARRAY", "file"): UNORDERED,
    ("INT32", "list"): UNORDERED,
    # A logical type that the physical type cannot have.
    ("BYTE_ARRAY", "date"): UNORDERED,
    ("INT32", "string"): UNORDERED,
    ("INT32", "timestamp"): UNORDERED,
    ("INT64", "timestamp"): UNORDERED,
    ("INT32", "integer"): UNORDERED,
}


@pytest.mark.parametrize("case", KINDS, ids=str)
def test_kinds(case):
    physical, logical = case
    assert kind_of(column(physical, logical and Logical(logical))) == KINDS[case]


def test_kinds_of_bytes_of_fixed_length():
    fixed = "FIXED_LEN_BYTE_ARRAY"
    assert kind_of(column(fixed, length=7)) == CodeKind("fixed", bytes=7)
    assert kind_of(column(fixed, Logical("uuid"), 16)) == CodeKind("fixed", bytes=16)
    assert kind_of(column(fixed, Logical("uuid"), 15)) == UNORDERED
    assert kind_of(column(fixed, Logical("interval"), 12)) == UNORDERED
    assert kind_of(column(fixed, Logical("float16"), 3)) == UNORDERED


INT8, UINT8 = Logical("integer", bits=8), Logical("integer", bits=8, signed=False)
NO_VALUES = {
    "an int32 of 8 bytes": (column("INT32"), bytes(8)),
    "an int64 of 4 bytes": (column("INT64"), bytes(4)),
    "no bytes": (column("INT64"), b""),
    "an int8 of 300": (column("INT32", INT8), (300).to_bytes(4, "little")),
    "an int8 of -129": (column("INT32", INT8), (-129).to_bytes(4, "little", signed=True)),
    "a uint8 of 256": (column("INT32", UINT8), (256).to_bytes(4, "little")),
    "a uint8 of -1": (column("INT32", UINT8), b"\xff" * 4),
    "a boolean of 2": (column("BOOLEAN"), b"\2"),
    "NaN": (column("DOUBLE"), struct.pack("<d", math.nan)),
    "a negative float16 NaN": (column("FIXED_LEN_BYTE_ARRAY", Logical("float16"), 2), b"\xff\xff"),
    "a decimal without bytes": (column("BYTE_ARRAY", DECIMAL), b""),
    "a decimal of another length": (column("FIXED_LEN_BYTE_ARRAY", DECIMAL, 5), bytes(4)),
    "INT96 beyond what Arrow holds": (column("INT96"), int96(2**63)),
    "INT96 before what Arrow holds": (column("INT96"), int96(-(2**63) - 1)),
    "INT96 with more than a day in its day": (column("INT96"), struct.pack("<qi", 86_400_000_000_000, 2_440_588)),
    "no order": (column("BYTE_ARRAY", Logical("geometry")), b"abc"),
}


@pytest.mark.parametrize("case", NO_VALUES)
def test_bounds_that_are_no_values(case):
    column_, data = NO_VALUES[case]
    assert bound_value(column_, kind_of(column_), data) is None


def test_unsigned_numbers_are_not_read_as_signed():
    unsigned = column("INT32", Logical("integer", bits=32, signed=False))
    assert bound_value(unsigned, kind_of(unsigned), b"\xff" * 4) == 2**32 - 1


AS_VALUES = {
    "days": (CodeKind("date"), pa.date32(), date(1970, 1, 3), 2),
    "days as a number": (CodeKind("date"), pa.date32(), 2, 2),
    "milliseconds to days": (CodeKind("date"), pa.date64(), 86_400_000, 1),
    "half a day": (CodeKind("date"), pa.date64(), 43_200_000, Fraction(1, 2)),
    "seconds to milliseconds": (CodeKind("timestamp", unit="ms"), pa.timestamp("s"), 7, 7000),
    "nanoseconds to microseconds": (CodeKind("timestamp", unit="us"), pa.timestamp("ns"), 1500, Fraction(3, 2)),
    "a moment": (CodeKind("timestamp", unit="us"), pa.timestamp("us"), datetime(1970, 1, 1, 0, 0, 1), 10**6),
    "a moment in a zone": (
        CodeKind("timestamp", unit="ms"),
        pa.timestamp("ms", "UTC"),
        datetime(1970, 1, 2, tzinfo=UTC),
        86_400_000,
    ),
    "INT96": (CodeKind("int96"), pa.timestamp("us"), -1, -1000),
    "a time": (CodeKind("time", unit="us"), pa.time64("us"), time(0, 0, 2), 2 * 10**6),
    "a duration": (CodeKind("signed", bits=64), pa.duration("ms"), timedelta(seconds=1), 1000),
    "a decimal": (CodeKind("decimal", scale=2), pa.decimal128(9, 2), Decimal("-1.25"), -125),
    "a float32": (CodeKind("float32"), pa.float32(), 0.1, 0.10000000149011612),
    "text": (CodeKind("text"), pa.large_string(), "ü", b"\xc3\xbc"),
    "an enum": (CodeKind("text"), pa.binary(), b"A", b"A"),
}


@pytest.mark.parametrize("case", AS_VALUES)
def test_literals_as_values_of_their_column(case):
    kind, type_, given, value = AS_VALUES[case]
    assert literal_value(kind, Literal(given, type_)) == value


OTHER_TYPES = {
    "int for unsigned": (CodeKind("unsigned", bits=64), pa.int64(), 1),
    "unsigned for int": (CodeKind("signed", bits=64), pa.uint64(), 1),
    "int for float": (CodeKind("float64"), pa.int64(), 1),
    "double for float": (CodeKind("float32"), pa.float64(), 0.1),
    "another scale": (CodeKind("decimal", scale=2), pa.decimal128(9, 3), Decimal(1)),
    "text for bytes of fixed length": (CodeKind("fixed", bytes=3), pa.string(), "abc"),
    "another length": (CodeKind("fixed", bytes=3), pa.binary(4), b"abcd"),
    "bytes of fixed length for bytes": (CodeKind("binary"), pa.binary(3), b"abc"),
    "a time for a date": (CodeKind("date"), pa.time32("s"), 1),
    "a date for a timestamp": (CodeKind("timestamp", unit="us"), pa.date32(), 1),
    "anything for what has no order": (UNORDERED, pa.int64(), 1),
}


@pytest.mark.parametrize("case", OTHER_TYPES)
def test_literals_of_another_type_are_not_known(case):
    kind, type_, given = OTHER_TYPES[case]
    assert literal_codes(kind, Literal(given, type_)) is None


def test_what_no_value_can_be_below_or_above():
    lowest = literal_codes(CodeKind("unsigned", bits=64), Literal(0, pa.uint64()))
    highest = literal_codes(CodeKind("unsigned", bits=64), Literal(2**64 - 1, pa.uint64()))
    assert lowest is not None
    assert highest is not None
    assert (lowest.below, highest.above) == (-1, HIGHEST + 1)


def test_both_zeros_are_one_literal():
    for zero in (0.0, -0.0):
        codes = literal_codes(CodeKind("float64"), Literal(zero, pa.float64()))
        assert codes is not None
        assert (codes.low, codes.high) == (code(CodeKind("float64"), -0.0), code(CodeKind("float64"), 0.0))
