"""What a chunk's statistics prove: unknown, contradictory, all null, all NaN, zeros, exactness."""

from __future__ import annotations

import math
import struct

import pytest

from libraries.filters.codes import HIGHEST, LOWEST, code
from libraries.near_storage.parquet.column_kinds import kind_of
from libraries.near_storage.parquet.footer import Chunk, Statistics
from libraries.near_storage.parquet.schema import Column, Logical
from libraries.near_storage.parquet.summaries import Summary, summarize
from libraries.near_storage.tests.parquet.universes import column

INT, DOUBLE, TEXT = column("INT64"), column("DOUBLE"), column("BYTE_ARRAY", Logical("string"))
TOTAL = column("DOUBLE", order="ieee 754 total")
REQUIRED = Column(("x",), "INT64", 0, None, "type", 0, 0)
NESTED = Column(("x", "y"), "INT64", 0, None, "type", 1, 0)
REPEATED = Column(("x",), "INT64", 0, None, "type", 1, 1)
NAN = math.nan
VALUES = 10


def plain(value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return struct.pack("<d", value) if isinstance(value, float) else int(value).to_bytes(8, "little", signed=True)


def summary(column_: Column, low=None, high=None, nulls=None, nans=None, exact=(None, None)) -> Summary:
    stats = Statistics(plain(low), plain(high), *exact, nulls, nans)
    return summarize(Chunk(4, 10, VALUES, stats), column_, kind_of(column_))


def bounds(column_: Column, low, high) -> tuple[int, int]:
    return code(kind_of(column_), low), code(kind_of(column_), high)


UNKNOWN = (LOWEST, HIGHEST)
NOTHING = (HIGHEST, LOWEST)
CASES = {
    "all is known": (summary(INT, 1, 2, 0), (*bounds(INT, 1, 2), False, False, True)),
    "some nulls": (summary(INT, 1, 2, 3), (*bounds(INT, 1, 2), True, False, True)),
    "a missing count of nulls": (summary(INT, 1, 2), (*bounds(INT, 1, 2), True, False, True)),
    "a missing count of a required column": (summary(REQUIRED, 1, 2), (*bounds(INT, 1, 2), False, False, True)),
    "all null": (summary(INT, nulls=VALUES), (*NOTHING, True, False, False)),
    "all null, yet bounds": (summary(INT, 1, 2, VALUES), (*UNKNOWN, True, False, False)),
    "no bounds": (summary(INT, nulls=0), (*UNKNOWN, False, False, False)),
    "only a minimum": (summary(INT, 1, None, 0), (bounds(INT, 1, 1)[0], HIGHEST, False, False, False)),
    "only a maximum": (summary(INT, None, 1, 0), (LOWEST, bounds(INT, 1, 1)[1], False, False, False)),
    "bounds the wrong way round": (summary(INT, 2, 1, 0), (*UNKNOWN, False, False, False)),
    "a bound of another type": (summary(INT, b"abc", 2, 0), (*UNKNOWN, False, False, False)),
    "bounds that are shortened": (
        summary(TEXT, b"a", b"b", 0, exact=(True, False)),
        (*bounds(TEXT, b"a", b"b"), False, False, False),
    ),
    "a minimum that is shortened": (
        summary(TEXT, b"a", b"b", 0, exact=(False, True)),
        (*bounds(TEXT, b"a", b"b"), False, False, False),
    ),
    "short texts": (summary(TEXT, b"a", b"b", 0, exact=(True, True)), (*bounds(TEXT, b"a", b"b"), False, False, True)),
    "a text beyond its code": (summary(TEXT, b"a", b"b" * 9, 0), (*bounds(TEXT, b"a", b"b" * 9), False, False, False)),
    "a text that ends in NUL": (summary(TEXT, b"a", b"b\0", 0), (*bounds(TEXT, b"a", b"b"), False, False, False)),
    "floats without a count of NaN": (summary(DOUBLE, 1.0, 2.0, 0), (*bounds(DOUBLE, 1.0, 2.0), False, True, True)),
    "floats without NaN": (summary(DOUBLE, 1.0, 2.0, 0, 0), (*bounds(DOUBLE, 1.0, 2.0), False, False, True)),
    "floats with NaN": (summary(DOUBLE, 1.0, 2.0, 0, 1), (*bounds(DOUBLE, 1.0, 2.0), False, True, True)),
    "a minimum of NaN": (summary(DOUBLE, NAN, 2.0, 0), (*UNKNOWN, False, True, False)),
    "a maximum of NaN": (summary(DOUBLE, 1.0, NAN, 0), (*UNKNOWN, False, True, False)),
    "NaN, yet none is counted": (summary(DOUBLE, NAN, NAN, 0, 0), (*UNKNOWN, False, True, False)),
    "all NaN": (summary(DOUBLE, nulls=0, nans=VALUES), (*NOTHING, False, True, False)),
    "all NaN, yet bounds": (summary(DOUBLE, 1.0, 2.0, 0, VALUES), (*UNKNOWN, False, True, False)),
    "all NaN in total order": (summary(TOTAL, NAN, NAN, 0, VALUES), (*NOTHING, False, True, False)),
    "nulls and NaN": (summary(TOTAL, NAN, NAN, 4, VALUES - 4), (*NOTHING, True, True, False)),
    "NaN bounds, all null": (summary(TOTAL, NAN, NAN, VALUES, 0), (*UNKNOWN, True, True, False)),
    "floats all null": (summary(DOUBLE, nulls=VALUES), (*NOTHING, True, False, False)),
    "zeros widen": (summary(DOUBLE, 0.0, -0.0, 0, 0), (*bounds(DOUBLE, -0.0, 0.0), False, False, True)),
    "zero below": (summary(DOUBLE, 0.0, 1.0, 0, 0), (*bounds(DOUBLE, -0.0, 1.0), False, False, True)),
    "zero above": (summary(DOUBLE, -1.0, -0.0, 0, 0), (*bounds(DOUBLE, -1.0, 0.0), False, False, True)),
    "no statistics": (summarize(Chunk(4, 10, 5, None), INT, kind_of(INT)), (*UNKNOWN, True, False, False)),
    "no statistics of floats": (
        summarize(Chunk(4, 10, 5, None), DOUBLE, kind_of(DOUBLE)),
        (*UNKNOWN, True, True, False),
    ),
    "no statistics of a required column": (
        summarize(Chunk(4, 10, 5, None), REQUIRED, kind_of(REQUIRED)),
        (*UNKNOWN, False, False, False),
    ),
    "a nested column": (summary(NESTED, 1, 2, 0), (*UNKNOWN, True, False, False)),
    "a repeated column": (summary(REPEATED, 1, 2, 0), (*UNKNOWN, True, False, False)),
}


@pytest.mark.parametrize("case", CASES)
def test_what_statistics_say(case):
    found, expected = CASES[case]
    assert tuple(found) == expected


def test_a_chunk_without_values():
    found = summarize(Chunk(4, 10, 0, Statistics(None, None, None, None, 0, None)), INT, kind_of(INT))
    assert tuple(found) == (*NOTHING, False, False, False)
