"""Exact binding of literals: each case by hand, with the expected comparison."""

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from libraries.filters import limits
from libraries.filters.binding import bind
from libraries.filters.errors import PredicateError, RequestError
from libraries.filters.tree import And, Comparison, Constant, In, IsNull, Known, Literal, Not, Or, Predicate, Prefix
from libraries.filters.values import literal

TENTH_AS_FLOAT32 = 0.10000000149011612
NEXT_BELOW_AS_FLOAT32 = 0.09999999403953552


def bound(operator: str, value: object, type: pa.DataType) -> Predicate:
    given = value if isinstance(value, Literal) else literal(value)
    return bind(Comparison(operator, "x", given), pa.schema({"x": type}))


def compared(operator: str, value: object, type: pa.DataType) -> Comparison:
    return Comparison(operator, "x", Literal(value, type))


@pytest.mark.parametrize(
    ("operator", "value", "type", "expected"),
    [
        ("<", 2.5, pa.int32(), ("<=", 2)),
        ("<=", 2.5, pa.int32(), ("<=", 2)),
        (">", 2.5, pa.int32(), (">=", 3)),
        (">=", -2.5, pa.int32(), (">=", -2)),
        ("==", 2.5, pa.int32(), False),
        ("!=", 2.5, pa.int32(), True),
        ("<", 3.0, pa.int32(), ("<", 3)),
        (">", -1, pa.uint64(), True),
        ("<=", -1, pa.uint64(), False),
        ("<", 300, pa.int8(), True),
        ("==", 300, pa.int8(), False),
        ("<", math.inf, pa.int64(), True),
        (">", -math.inf, pa.int64(), True),
        ("==", float(2**53), pa.int64(), ("==", 2**53)),
        ("<", float(2**63), pa.int64(), True),
        ("==", 2**53 + 1, pa.float64(), False),
        ("<", 2**53 + 1, pa.float64(), ("<=", float(2**53))),
        (">", 2**53 + 1, pa.float64(), (">=", float(2**53 + 2))),
        ("<", 0.1, pa.float32(), ("<=", NEXT_BELOW_AS_FLOAT32)),
        (">", 0.1, pa.float32(), (">=", TENTH_AS_FLOAT32)),
        ("==", Decimal("0.1"), pa.float32(), ("==", TENTH_AS_FLOAT32)),
        ("==", Decimal("0.1"), pa.float64(), ("==", 0.1)),
        ("==", Decimal("1e39"), pa.float32(), False),
        ("<", Decimal("1e39"), pa.float32(), ("<=", 3.4028234663852886e38)),
        (">", 65519, pa.float16(), (">=", math.inf)),
        ("==", -0.0, pa.float64(), ("==", 0.0)),
        ("==", math.inf, pa.float16(), ("==", math.inf)),
        ("==", math.nan, pa.float64(), False),
        ("!=", math.nan, pa.float64(), True),
        ("<", math.nan, pa.int64(), False),
        ("<", Decimal("1.005"), pa.decimal128(5, 2), ("<=", Decimal("1.00"))),
        ("==", Decimal("1.50"), pa.decimal128(5, 1), ("==", Decimal("1.5"))),
        ("<", 100_000, pa.decimal128(5, 2), True),
        (">", 250, pa.decimal128(5, -2), (">=", Decimal("3E+2"))),
        ("<", b"b", pa.binary(2), ("<=", b"a\xff")),
        (">", b"abc", pa.binary(2), (">=", b"ac")),
        (">", b"\xff\xffa", pa.binary(2), False),
        ("<", b"", pa.binary(2), False),
        ("==", "a", pa.binary(), ("==", b"a")),
        ("==", b"a", pa.string_view(), ("==", "a")),
        ("<", "1970-01-02 12:00", pa.date32(), ("<=", 1)),
        ("==", "1970-01-02", pa.date64(), ("==", 86_400_000)),
        ("==", "1970-01-01 00:00:00.000000001", pa.timestamp("us"), False),
        (">", "1970-01-01 00:00:00.000000001", pa.timestamp("us"), (">=", 1)),
        ("==", "1970-01-01 01:00:00+01:00", pa.timestamp("s", "Asia/Tokyo"), ("==", 0)),
        ("<", "9999-12-31", pa.timestamp("ns"), True),
        ("==", "23:59:59.5", pa.time32("ms"), ("==", 86_399_500)),
        (">", "23:59:59.5", pa.time32("s"), (">=", 86_400)),
    ],
)
def test_a_literal_becomes_one_of_the_column(operator: str, value: object, type: pa.DataType, expected: object) -> None:
    result = bound(operator, value, type)
    if isinstance(expected, bool):
        assert result == Known("x", expected)
    else:
        assert result == compared(expected[0], expected[1], type)
        assert str(result.literal.value) == str(expected[1]) or isinstance(expected[1], Decimal)


@pytest.mark.parametrize(
    ("value", "type"),
    [
        (5, pa.string()),
        ("5", pa.int64()),
        (1, pa.bool_()),
        (True, pa.int8()),
        (5, pa.date32()),
        ("2020-13-01", pa.date32()),
        ("2020-1-1", pa.date32()),
        ("2020-01-01T25:00", pa.timestamp("s")),
        ("2020-01-01 00:00:00+00:00", pa.timestamp("s")),
        ("2020-01-01 00:00:00", pa.timestamp("s", "UTC")),
        (Literal(0, pa.timestamp("s")), pa.timestamp("s", "UTC")),
        (Literal(0, pa.timestamp("s", "UTC")), pa.timestamp("s")),
        (Literal(0, pa.date32()), pa.timestamp("s", "UTC")),
        (Literal(0, pa.timestamp("s", "UTC")), pa.date32()),
        (Literal(0, pa.duration("s")), pa.time32("s")),
        (b"\xff", pa.string()),
        (Literal(300, pa.int8()), pa.int64()),
        (Literal(1.1, pa.float32()), pa.float64()),
        (Literal("\ud800", pa.string()), pa.string()),
        (Literal(True, pa.int64()), pa.int64()),
        (Literal(Decimal("1e999999999"), pa.decimal128(5, 2)), pa.int64()),
    ],
)
def test_what_does_not_compare_is_refused(value: object, type: pa.DataType) -> None:
    with pytest.raises(PredicateError, match="'x'"):
        bound("<", value, type)


def test_nulls_decide_nothing() -> None:
    assert bound("==", None, pa.int64()) == Constant(None)
    assert bound("!=", 5, pa.null()) == Constant(None)
    assert bind(In("x", (literal(5),)), pa.schema({"x": pa.null()})) == Constant(None)
    assert bind(Prefix("x", "a"), pa.schema({"x": pa.null()})) == Constant(None)


def test_a_list_keeps_what_the_column_can_hold() -> None:
    schema = pa.schema({"x": pa.int8()})
    given = In("x", tuple(map(literal, (3, 2.5, 300, 1.0, None, 3, math.nan, Decimal(2)))))
    kept = [Literal(each, pa.int8()) for each in (1, 2, 3, None)]
    assert bind(given, schema) == In("x", tuple(kept))
    assert bind(In("x", (literal(300), literal(None))), schema) == Constant(None)
    assert bind(In("x", (literal(300),)), schema) == Known("x", False)
    assert bind(In("x", ()), schema) == Known("x", False)


def test_dictionaries_are_compared_by_their_values() -> None:
    assert bound("<", 2.5, pa.dictionary(pa.int8(), pa.int64())) == compared("<=", 2, pa.int64())


def test_prefixes() -> None:
    assert bind(Prefix("x", ""), pa.schema({"x": pa.string()})) == Known("x", True)
    assert bind(Prefix("x", "abc"), pa.schema({"x": pa.binary(2)})) == Known("x", False)
    for text, type in (("a", pa.int64()), ("\ud800", pa.string())):
        with pytest.raises(PredicateError, match="'x'"):
            bind(Prefix("x", text), pa.schema({"x": type}))


@pytest.mark.parametrize("type", [pa.list_(pa.int64()), pa.struct({"a": pa.int64()}), pa.month_day_nano_interval()])
def test_types_without_an_order_know_only_null(type: pa.DataType) -> None:
    schema = pa.schema({"x": type})
    assert bind(IsNull("x"), schema) == IsNull("x")
    for refused in (
        Comparison("<", "x", literal(5)),
        Comparison("==", "x", literal(None)),
        In("x", ()),
        Prefix("x", "a"),
    ):
        with pytest.raises(PredicateError, match="cannot be compared: nodes support only IS NULL"):
            bind(refused, schema)


def test_columns_are_whole_ones_by_name() -> None:
    schema = pa.schema(
        [("a.b", pa.int64()), ("s", pa.struct({"f": pa.int64()})), ("twice", pa.int64()), ("twice", pa.int8())]
    )
    assert bind(IsNull("a.b"), schema) == IsNull("a.b")
    with pytest.raises(PredicateError, match=r"'s\.f' .* 's'"):
        bind(IsNull("s.f"), schema)
    with pytest.raises(PredicateError, match=r"2 columns .*'twice'"):
        bind(Known("twice", True), schema)
    with pytest.raises(PredicateError, match=r"no column 'A\.b'; the columns are 'a\.b'"):
        bind(Not(Or((Constant(True), Comparison("<", "A.b", literal(5))))), schema)


def test_trees_are_bounded_before_anything_walks_them() -> None:
    schema = pa.schema({"x": pa.int64()})
    deep: Predicate = IsNull("x")
    for _ in range(100_000):
        deep = Not(deep)
    wide = And((IsNull("x"),) * limits.MOST_NODES)
    many = In("x", (literal(5),) * (limits.MOST_LITERALS + 1))
    long = Comparison("==", "x", literal("a" * (limits.MOST_LITERAL_BYTES + 1)))
    name = IsNull("a" * (limits.MOST_NAME_BYTES + 1))
    for refused in (deep, wide, many, long, name, Prefix("x", "a" * (limits.MOST_LITERAL_BYTES + 1)), "x"):
        with pytest.raises(RequestError):
            bind(refused, schema)
    allowed: Predicate = IsNull("x")
    for _ in range(limits.MOST_DEPTH - 1):
        allowed = Not(allowed)
    assert bind(allowed, schema) == allowed
    assert bind(And(wide.parts[:-1]), schema)
