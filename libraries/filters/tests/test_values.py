"""Literals made from Python values and Arrow scalars."""

import datetime
import math
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest

from libraries.filters.errors import PredicateError
from libraries.filters.tests.random_tables import TYPES
from libraries.filters.tree import Literal
from libraries.filters.values import from_scalar, literal, nearest_float

BERLIN = datetime.timezone(datetime.timedelta(hours=1))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, Literal(None, pa.null())),
        (True, Literal(True, pa.bool_())),
        (2**63 - 1, Literal(2**63 - 1, pa.int64())),
        (2**63, Literal(2**63, pa.uint64())),
        (2**64, Literal(Decimal(2**64), pa.decimal128(20, 0))),
        (1.5, Literal(1.5, pa.float64())),
        (Decimal("0.05"), Literal(Decimal("0.05"), pa.decimal128(2, 2))),
        (Decimal("1E+40"), Literal(Decimal("1E+40"), pa.decimal256(41, 0))),
        ("a", Literal("a", pa.string())),
        (b"a", Literal(b"a", pa.binary())),
        (datetime.date(1970, 1, 3), Literal(2, pa.date32())),
        (datetime.datetime(1970, 1, 1, 0, 0, 1), Literal(1_000_000, pa.timestamp("us"))),
        (datetime.datetime(1970, 1, 1, 1, tzinfo=BERLIN), Literal(0, pa.timestamp("us", "UTC"))),
        (datetime.datetime(1, 1, 1), Literal(-62_135_596_800_000_000, pa.timestamp("us"))),
        (datetime.time(0, 0, 1, 5), Literal(1_000_005, pa.time64("us"))),
        (datetime.timedelta(days=-1), Literal(-86_400_000_000, pa.duration("us"))),
        (pa.scalar(5, pa.int8()), Literal(5, pa.int8())),
        (pa.scalar(2**62, pa.timestamp("s")), Literal(2**62, pa.timestamp("s"))),
        (pa.scalar(1.5, pa.float16()), Literal(1.5, pa.float16())),
        (pa.scalar(None, pa.date32()), Literal(None, pa.date32())),
        (pa.array(["a"]).dictionary_encode()[0], Literal("a", pa.string())),
    ],
)
def test_values_of_python_and_arrow(value: object, expected: Literal) -> None:
    assert literal(value) == expected


NO_LITERALS = (
    "\ud800",
    10**76,
    Decimal("1e-77"),
    Decimal("1e999999999"),
    Decimal("NaN"),
    [],
    object(),
    datetime.timedelta.max,
    datetime.time(1, tzinfo=BERLIN),
    pa.scalar([1]),
)


@pytest.mark.parametrize("value", NO_LITERALS, ids=range(len(NO_LITERALS)))
def test_what_no_literal_is(value: object) -> None:
    with pytest.raises(PredicateError):
        literal(value)


def test_a_null_of_every_type() -> None:
    assert [from_scalar(pa.scalar(None, type)).value for type in TYPES] == [None] * len(TYPES)


@pytest.mark.parametrize(
    ("number", "bits", "expected"),
    [
        (Fraction(2**24 + 1), 32, 2.0**24),
        (Fraction(2**24 + 3), 32, 2.0**24 + 4),
        (Fraction(1, 10), 16, 0.0999755859375),
        (Fraction(1, 10), 32, 0.10000000149011612),
        (Fraction(1, 10), 64, 0.1),
        (Fraction(2, 3), 64, 2 / 3),
        (Fraction(1, 2**1075), 64, 0.0),
        (Fraction(3, 2**1075), 64, 2.0**-1073),
        (Fraction(-1, 2**151), 32, 0.0),
        (Fraction(10) ** 400, 64, 1.7976931348623157e308),
        (-(Fraction(10) ** 400), 16, -65504.0),
        # Slightly more than half way between two 32-bit floats: rounding through 64 bits would lose the difference.
        (1 + Fraction(1, 2**24) + Fraction(1, 2**60), 32, 1 + 2.0**-23),
        (1 + Fraction(1, 2**24), 32, 1.0),
    ],
)
def test_the_nearest_float(number: Fraction, bits: int, expected: float) -> None:
    result = nearest_float(number, bits)
    assert result == expected
    assert math.copysign(1, result) == (-1 if expected < 0 else 1)
