"""pyarrow filters as trees: they never differ from Arrow's meaning, and what engines push is translated."""

import datetime
import functools
import operator
import random
from decimal import Decimal

import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.types as pat
import pytest

from libraries.filters import expression_calls
from libraries.filters.expressions import Translated, translate
from libraries.filters.limits import MOST_LITERALS
from libraries.filters.tests.keeping import keep
from libraries.filters.tests.random_filters import literal
from libraries.filters.tests.random_tables import TYPES, array, table
from libraries.filters.tree import And, Comparison, Constant, In, IsNull, Known, Literal, Not, Or, Predicate, Prefix

X = pc.field("x")
NULL = pc.scalar(pa.scalar(None, pa.bool_()))
SCHEMA = pa.schema(
    {
        "x": pa.int64(),
        "f": pa.float32(),
        "s": pa.string(),
        "b": pa.bool_(),
        "t": pa.timestamp("ns"),
        "day": pa.date32(),
        "dec": pa.decimal128(5, 2),
        "dic": pa.dictionary(pa.int8(), pa.string()),
        "st": pa.struct({"q": pa.int8()}),
        "a.b": pa.int8(),
        "it's": pa.int8(),
    }
)


def of(name: str, op: str, value: object) -> Comparison:
    type = SCHEMA.field(name).type
    return Comparison(op, name, Literal(value, type.value_type if pat.is_dictionary(type) else type))


def listed(*values: int) -> In:
    return In("x", tuple(Literal(value, pa.int64()) for value in values))


NOT_AT_MOST_INFINITY = Not(of("f", "<=", float("inf")))
UNDERSTOOD: list[tuple[pc.Expression, Predicate]] = [
    (X > 5, of("x", ">", 5)),
    (pc.scalar(5) > X, of("x", "<", 5)),
    (X < 2.5, of("x", "<=", 2)),
    (pc.scalar(pa.scalar(5, pa.int8())) != X, of("x", "!=", 5)),
    (pc.scalar(pa.scalar(None)) == X, Constant(None)),
    ((X > 5) & (X < 7) & (pc.field("a.b") == 1), And((of("x", ">", 5), of("x", "<", 7), of("a.b", "==", 1)))),
    ((X > 5) | ~(X < 7), Or((of("x", ">", 5), Not(of("x", "<", 7))))),
    (X.is_null(), IsNull("x")),
    (X.is_valid(), Not(IsNull("x"))),
    (X.is_null(nan_is_null=True), IsNull("x")),
    (pc.field("f").is_null(nan_is_null=True), Or((IsNull("f"), NOT_AT_MOST_INFINITY))),
    (pc.is_nan(pc.field("f")), NOT_AT_MOST_INFINITY),
    (X.isin([2, 1]), And((Not(IsNull("x")), listed(1, 2)))),
    (X.isin([1, None]), Or((IsNull("x"), listed(1)))),
    (~X.isin([1]), Not(And((Not(IsNull("x")), listed(1))))),
    (pc.is_in(X, pa.array([1, None]), skip_nulls=True), And((Not(IsNull("x")), listed(1)))),
    (X.isin([1.0]), And((Not(IsNull("x")), listed(1)))),
    (pc.if_else(X.is_valid(), X.isin([1, 2]), NULL), listed(1, 2)),
    (pc.if_else(X.is_valid(), (X == 0) | X.isin([1]), NULL), Or((of("x", "==", 0), listed(1)))),
    (
        pc.if_else(X.is_valid(), pc.field("b"), NULL),
        Or((And((of("b", "==", True), Known("x", True))), Known("x", False))),
    ),
    (pc.starts_with(pc.field("s"), 'a"b\n'), Prefix("s", 'a"b\n')),
    (pc.field("t") > pa.scalar(5, pa.timestamp("ns")), of("t", ">", 5)),
    (pc.field("dic") == "a", of("dic", "==", "a")),
    (pc.field("dec") == 1, of("dec", "==", Decimal("1.00"))),
    (pc.field("b"), of("b", "==", True)),
    (pc.field("it's") == 5, of("it's", "==", 5)),
    (pc.scalar(5).cast(pa.int8()) == X, of("x", "==", 5)),
    (pc.scalar(0.1).cast(pa.float32()) <= pc.field("f"), of("f", ">=", 0.10000000149011612)),
    (pc.scalar("2020-01-01").cast(pa.date32()) < pc.field("day"), of("day", ">", 18_262)),
    (pc.scalar(True), Constant(True)),
    (NULL, Constant(None)),
]
LEFT = [
    X * 2 == 4,
    X.cast(pa.int8()) > 4,
    pc.field("f") == X,
    pc.field("st", "q") == 5,
    pc.field(0) > 5,
    pc.field("nope") > 5,
    pc.field("dec") == 1.5,
    pc.field("dec").isin([1.5]),
    pc.field("f") == Decimal("0.1"),
    pc.field("t").isin([datetime.date(2020, 1, 1)]),
    pc.field("day").isin([datetime.datetime(2020, 1, 1)]),
    pc.field("f").isin([0.0]),
    pc.field("f").isin([0.1]),
    pc.field("f").isin([float("nan")]),
    X.isin([1.5]),
    X.isin([[1]]),
    pc.is_nan(X),
    pc.field("t") == "2020-01-01",
    pc.field("s") == 5,
    pc.starts_with(pc.field("s"), "a", ignore_case=True),
    pc.match_substring(pc.field("s"), "a"),
    pc.coalesce(X > 5, pc.scalar(False)),
    pc.if_else(X > 5, pc.field("b"), NULL),
    pc.if_else(X.is_valid(), pc.field("b"), pc.scalar(True)),
    (X > 5) == (X < 3),
    pc.scalar(2.5).cast(pa.int8()) == X,
    pc.scalar(300).cast(pa.int8(), safe=False) == X,
    pc.field("st").is_null() & (pc.field("st") == pa.scalar({"q": 1}, SCHEMA.field("st").type)) & pc.field(0),
    X.isin(list(range(MOST_LITERALS + 1))),
    pc.field("s") == "x" * 100_000,
]


@pytest.mark.parametrize(("expression", "expected"), UNDERSTOOD, ids=range(len(UNDERSTOOD)))
def test_what_is_understood(expression: pc.Expression, expected: Predicate) -> None:
    assert translate(expression, SCHEMA) == Translated(expected, True)


@pytest.mark.parametrize("left", LEFT, ids=range(len(LEFT)))
def test_what_is_left_to_the_client(left: pc.Expression) -> None:
    assert translate(left, SCHEMA) == Translated(None, False)
    assert translate(~left, SCHEMA) == Translated(None, False)
    assert translate(left | (X > 5), SCHEMA) == Translated(None, False)


@pytest.mark.parametrize("left", [each for each in LEFT if "FieldPath" not in str(each)], ids=str)
def test_a_conjunct_is_left_alone(left: pc.Expression) -> None:
    found = translate((X > 5) & left & (X < 7), SCHEMA)
    if "nan\n" in str(left):
        assert found == Translated(None, False)
    else:
        assert found == Translated(And((of("x", ">", 5), of("x", "<", 7))), False)


def test_no_filter_is_complete() -> None:
    assert translate(None, SCHEMA) == Translated(None, True)


def test_long_chains_neither_recurse_nor_break_limits() -> None:
    either = functools.reduce(operator.or_, [pc.scalar(number) == X for number in range(4_000)])
    assert translate(either, SCHEMA).complete
    too_many = functools.reduce(operator.and_, [pc.scalar(number) != X for number in range(5_000)])
    found = translate(too_many, SCHEMA)
    assert not found.complete
    assert isinstance(found.predicate, And)
    deep = functools.reduce(lambda inner, _: ~(inner & (X > 1)), range(500), X > 5)
    assert translate(deep, SCHEMA) == Translated(None, False)


def test_names_that_look_like_an_expression() -> None:
    name = "x'\nliteral: '0'\nend: 'greater'\ncall: 'less'\nfield_ref: 'x"
    schema = pa.schema({name: pa.int64(), "x": pa.int64()})
    for found in (translate(pc.field(name) > 5, schema), translate(pc.field(name) > 5, schema.remove(0))):
        assert found == Translated(None, False)
    assert translate(X > 5, schema) == Translated(None, False)
    assert translate(X > 5, schema.remove(0)).complete


def test_an_unknown_layout_is_left_to_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = expression_calls._as_batch(X > 5)
    for entries in (
        [],
        [("call", "greater"), ("field_ref", "x"), ("literal", "0")],
        [("call", "greater"), ("field_ref", "x"), ("literal", "0"), ("end", "less")],
        [("call", "greater"), ("field_ref", "x"), ("literal", "7"), ("end", "greater")],
        [("call", "greater"), ("literal", "0"), ("field_ref", "x"), ("end", "greater")],
        [("call", "less"), ("field_ref", "x"), ("literal", "0"), ("end", "less")],
        [("field_ref", "x"), ("field_ref", "x")],
        [("end", "")],
        [("options", "0")],
    ):
        monkeypatch.setattr(expression_calls, "_as_batch", lambda _: batch)
        monkeypatch.setattr(expression_calls, "_entries", lambda _, entries=entries: entries)
        assert translate(X > 5, SCHEMA) == Translated(None, False)


def scalar(found: Literal) -> pa.Scalar:
    return pa.scalar(None, found.type) if found.value is None else array([found.value], found.type)[0]


def random_leaf(rng: random.Random, data: pa.Table) -> pc.Expression:
    name = rng.choice(data.column_names[1:])
    field = pc.field(name)
    type = data.schema.field(name).type
    type = type.value_type if pat.is_dictionary(type) else type
    kind = rng.randrange(10)
    if kind == 0:
        return field.is_null(nan_is_null=rng.random() < 0.3)
    if kind == 1:
        return pc.is_nan(field) if pat.is_floating(type) else field.is_valid()
    if kind in (2, 3):
        given = [scalar(literal(rng, data, name)) for _ in range(rng.randint(1, 3))]
        given = [each for each in given if each.type == given[0].type] + [
            pa.scalar(None, given[0].type)
        ] * rng.randrange(2)
        found = pc.is_in(field, pa.array(given, given[0].type), skip_nulls=rng.random() < 0.2)
        return pc.if_else(field.is_valid(), found, NULL) if rng.random() < 0.4 else found
    if kind == 4 and (pat.is_string(type) or pat.is_binary(type) or pat.is_large_string(type)):
        return pc.starts_with(field, rng.choice(("", "a", "ab", "€")))
    if kind == 4 and pat.is_boolean(type):
        return field
    if kind == 5 and pat.is_integer(type):
        return field.cast(pa.float64()) > 1
    compare = rng.choice((operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge))
    given = pc.scalar(scalar(literal(rng, data, name)))
    return compare(field, given) if rng.random() < 0.8 else compare(given, field)


def random_expression(rng: random.Random, data: pa.Table, depth: int) -> pc.Expression:
    kind = rng.random()
    if depth == 0 or kind < 0.4:
        return random_leaf(rng, data)
    if kind < 0.55:
        return ~random_expression(rng, data, depth - 1)
    parts = [random_expression(rng, data, depth - 1) for _ in range(2)]
    return parts[0] & parts[1] if kind < 0.85 else parts[0] | parts[1]


def assert_as_arrow(rng: random.Random, expressions: int) -> tuple[int, int, int]:
    """Compare random filters on a random table with Arrow; return how many were compared, complete and partial."""
    types = [type for type in rng.choices(TYPES, k=3) if not pat.is_null(type)]
    rows = table(rng, [pa.int64(), *types], 9).remove_column(0)
    data = pa.table([range(9), *rows.columns], names=["row", *rows.column_names])
    if not types:
        return 0, 0, 0
    compared = complete = partly = 0
    for _ in range(expressions):
        expression = random_expression(rng, data, rng.choice((0, 1, 2)))
        found = translate(expression, data.schema)
        narrowed = data if found.predicate is None else keep(found.predicate, data)
        try:
            expected = data.filter(expression)["row"].to_pylist()
            rest = narrowed.filter(expression)["row"].to_pylist()
        except pa.ArrowException:
            continue
        kept = narrowed["row"].to_pylist()
        assert rest == expected, (expression, found, data)
        assert not found.complete or kept == expected, (expression, found, data)
        compared += 1
        complete += found.complete
        partly += found.predicate is not None and not found.complete
    return compared, complete, partly


def test_filters_of_one_seed_keep_what_arrow_keeps() -> None:
    """The test uses 300, `long_runs` 20,000."""
    rng = random.Random(28)
    compared, complete, partly = map(sum, zip(*(assert_as_arrow(rng, 20) for _ in range(15)), strict=True))
    assert compared > 100
    assert complete > 0.6 * compared
    assert partly > 2


class Watched(pa.dataset.Dataset):
    """A data set in memory that records the filters that engines push into it."""

    def __init__(self, data: pa.Table) -> None:
        self.inner = pa.dataset.dataset(data)
        self.filters: list[pc.Expression] = []

    @property
    def schema(self) -> pa.Schema:
        return self.inner.schema

    def scanner(self, columns: object = None, filter: pc.Expression | None = None, **options: object) -> object:
        if filter is not None:
            self.filters.append(filter)
        return self.inner.scanner(columns=columns, filter=filter, **options)


PUSHED_DATA = pa.table(
    {
        "i": pa.array([1, 2, None], pa.int32()),
        "d": [1.0, 0.0, None],
        "s": ["a", "b", None],
        "day": pa.array([1, 2, None], pa.date32()),
        "moment": pa.array([1, 2, None], pa.timestamp("us")),
        "zoned": pa.array([1, 2, None], pa.timestamp("us", "UTC")),
        "dec": pa.array([Decimal("1.00"), Decimal("2.50"), None], pa.decimal128(10, 2)),
        "dic": pa.array(["a", "b", None]).dictionary_encode(),
    }
)


def test_all_that_duckdb_pushes_is_understood() -> None:
    watched = Watched(PUSHED_DATA)
    connection = duckdb.connect(config={"threads": 1})
    connection.register("t", watched)
    conditions = (
        "i > 1",
        "i <> 1",
        "i IN (1, 3, 5)",
        "d IN (0.0, 1.0, 2.0)",
        "d < 0.5 OR i IS NULL",
        "s = 'a' AND i BETWEEN 1 AND 2",
        "s IN ('a', 'c', 'd')",
        "day >= DATE '1970-01-02'",
        "day IN (DATE '1970-01-02', DATE '1971-01-02', DATE '1972-01-02')",
        "moment < TIMESTAMP '1970-01-01 00:00:01'",
        "zoned < TIMESTAMPTZ '1970-01-01 00:00:01+00'",
        "dec > 1.5",
        "dic = 'a' OR i IS NOT NULL",
    )
    for condition in conditions:
        connection.execute(f"SELECT i FROM t WHERE {condition}").fetchall()
    assert len(watched.filters) >= len(conditions) - 2
    assert [str(each) for each in watched.filters if not translate(each, PUSHED_DATA.schema).complete] == []


def test_all_that_polars_pushes_is_understood() -> None:
    watched = Watched(PUSHED_DATA)
    col = polars.col
    pushed = (
        col("i") > 1,
        col("i").is_in([1, 2]),
        col("s").is_in(["a", None]),
        col("s") == "a",
        col("i").is_null() | ~(col("i") == 1),
        col("d").is_nan(),
        col("day") > polars.date(1970, 1, 2),
        col("moment") > polars.datetime(1970, 1, 1),
        col("i").is_between(1, 2) & (col("dic") == "a"),
    )
    for each in pushed:
        polars.scan_pyarrow_dataset(watched).filter(each).select("i").collect()
    assert len(watched.filters) >= len(pushed) - 2
    assert [str(each) for each in watched.filters if not translate(each, PUSHED_DATA.schema).complete] == []
