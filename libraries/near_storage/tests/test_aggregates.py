"""Partial aggregates: exact compared with plain Python over rows, for any parts, and compared with DuckDB."""

import functools
import math
import random
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import duckdb
import pyarrow as pa
import pyarrow.types as pat
import pytest

from libraries.filters.kinds import value_type
from libraries.filters.tests.random_tables import TYPES, array, python_values, table
from libraries.near_storage import aggregates
from libraries.near_storage.errors import DamagedError, PredicateError, RequestError
from libraries.near_storage.predicates import sql
from libraries.near_storage.query import Aggregate, Query

SEED = 31
SUMMED = (pat.is_integer, pat.is_floating, pat.is_decimal)


def answered(query: Query, parts: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    plan = aggregates.plan(query, schema)
    return aggregates.finish(plan, aggregates.merged(plan, [aggregates.part(plan, each) for each in parts]))


def ask(text: str, *parts: pa.Table) -> dict[str, list[object]]:
    return answered(sql.parse(text), parts, parts[0].schema).to_pydict()


def is_summed(type: pa.DataType) -> bool:
    return any(check(value_type(type)) for check in SUMMED)


def group_of(value: object) -> object:
    """Return a value by which group keys are equal: NaN equals NaN, -0.0 equals 0.0."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else 0.0 if value == 0.0 else value


def expected_of(aggregate: Aggregate, values: list[object], rows: int, type: pa.DataType | None) -> object:
    if aggregate.column is None:
        return rows
    present = [value for value in values if value is not None]
    if aggregate.function == "count":
        return len(present)
    if not present:
        return None
    if aggregate.function in ("min", "max"):
        numbers = [value for value in present if not (isinstance(value, float) and math.isnan(value))]
        return (min if aggregate.function == "min" else max)(numbers) if numbers else math.nan
    if pat.is_floating(type):
        total = functools.reduce(lambda left, right: left + right, present, 0.0)
        return total / len(present) if aggregate.function == "avg" else total
    total = sum(map(Fraction, present))
    return float(total / len(present)) if aggregate.function == "avg" else total


def assert_same(found: object, expected: object, values: list[object]) -> None:
    if found == expected:
        return
    if isinstance(expected, float) and isinstance(found, float):
        if not math.isfinite(expected) or not math.isfinite(found):
            # A sum of doubles near the maximum may overflow in one order of addition and not in another.
            assert repr(found) == repr(expected) or any(abs(value or 0) > 1e307 for value in values)
            return
        scale = sum(abs(value) for value in values if value is not None)
        assert abs(found - expected) <= 1e-12 * float(scale) + 1e-300
        return
    raise AssertionError(f"found {found!r}, expected {expected!r} for {values!r}")


def assert_exact(rng: random.Random, queries: int) -> None:
    """Check random aggregates over a random table in random parts against Python, in the same order of groups."""
    types = rng.choices(TYPES, k=4)
    data = table(rng, types, rng.choice((0, 1, 12)))
    rows = data.num_rows
    for _ in range(queries):
        query = random_query(rng, data)
        cuts = sorted(rng.randint(0, rows) for _ in range(rng.choice((0, 1, 3))))
        parts = [data.slice(start, end - start) for start, end in zip([0, *cuts], [*cuts, rows], strict=True)]
        assert_answered(query, parts, data)


def assert_answered(query: Query, parts: Sequence[pa.Table], data: pa.Table) -> None:
    """Check that the answer equals Python's, or is an error because a sum of decimals has more than 38 digits."""
    try:
        answer = answered(query, parts, data.schema)
    except RequestError as error:
        if "does not fit its type decimal128(38, 10)" not in str(error):
            raise
        assert any(sum(abs(each or 0) for each in python_values(column)) >= 10**28 for column in wide_columns(data))
    else:
        assert_answer(query, data, answer)


def wide_columns(data: pa.Table) -> list[pa.ChunkedArray]:
    return [column for column in data.columns if column.type == pa.decimal128(38, 10)]


def random_query(rng: random.Random, data: pa.Table) -> Query:
    group_by = tuple(rng.sample(data.column_names, k=rng.choice((0, 0, 1, 2))))
    chosen: list[Aggregate] = [Aggregate("count", None, "n")]
    for number in range(rng.randint(0, 4)):
        column = rng.choice(data.column_names)
        type = data.schema.field(column).type
        functions = ["min", "max", "count"] + ["sum", "avg"] * (2 * is_summed(type))
        if pat.is_null(type):
            functions = ["min", "count", "sum", "avg"]
        chosen.append(Aggregate(rng.choice(functions), column, f"a{number}"))  # type: ignore[arg-type]
    return Query("t", group_by, None, tuple(chosen), group_by)


def assert_answer(query: Query, data: pa.Table, answer: pa.Table) -> None:
    columns = {name: python_values(data[name]) for name in data.column_names}
    groups: dict[tuple[object, ...], list[int]] = {} if query.group_by else {(): list(range(data.num_rows))}
    if query.group_by:
        for row in range(data.num_rows):
            key = tuple(group_of(columns[name][row]) for name in query.group_by)
            groups.setdefault(key, []).append(row)
    found = {name: python_values(answer[name]) for name in answer.column_names}
    keys = [tuple(group_of(found[name][row]) for name in query.group_by) for row in range(answer.num_rows)]
    assert keys == list(groups)
    for aggregate in query.aggregates:
        type = value_type(data.schema.field(aggregate.column).type) if aggregate.column else None
        for row, members in enumerate(groups.values()):
            values = [columns[aggregate.column][member] for member in members] if aggregate.column else []
            expected = expected_of(aggregate, values, len(members), type)
            assert_same(found[aggregate.name][row], expected, values)


def test_aggregates_are_what_python_says() -> None:
    rng = random.Random(SEED)
    for _ in range(60):
        assert_exact(rng, 5)


@pytest.mark.parametrize("type", TYPES, ids=str)
def test_every_type_is_grouped_counted_and_compared(type: pa.DataType) -> None:
    rng = random.Random(SEED + 2)
    functions = ["min", "max", "count", *(("sum", "avg") if is_summed(type) else ())]
    chosen = tuple(Aggregate(function, "c0", function) for function in functions)  # type: ignore[arg-type]
    for rows in (0, 1, 30):
        data = table(rng, [type], rows)
        for group_by in ((), ("c0",)):
            query = Query("t", group_by, None, chosen, group_by)
            assert_answered(query, [data.slice(0, rows // 2), data.slice(rows // 2)], data)
            assert aggregates.plan(query, data.schema).answer_schema.field("min").type == value_type(type)


def test_sums_of_integers_are_exact_beyond_64_bits() -> None:
    most = pa.table({"x": [2**63 - 1] * 3, "u": pa.array([2**64 - 1] * 3, pa.uint64()), "g": [1, 1, 2]})
    least = pa.table({"x": [-(2**63)] * 4, "u": pa.array([1] * 4, pa.uint64()), "g": [2] * 4})
    found = ask("SELECT sum(x) AS x, sum(u) AS u, avg(x) AS a FROM t", most, most)
    assert found == {"x": [6 * (2**63 - 1)], "u": [6 * (2**64 - 1)], "a": [float(2**63)]}
    found = ask("SELECT g, sum(x) AS x, sum(u) AS u, avg(u) AS a FROM t GROUP BY g", most, least)
    assert found["g"] == [1, 2]
    assert found["x"] == [2 * (2**63 - 1), 2**63 - 1 - 4 * 2**63]
    assert found["u"] == [2 * (2**64 - 1), 2**64 - 1 + 4]
    assert found["a"] == [float(2**64), (2**64 + 3) / 5]


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_that_only_just_pass_64_bits_are_exact(sign: int) -> None:
    """Only their number makes the sum so large."""
    values = pa.table({"x": [sign * 2**62] * 3, "g": [1, 1, 2]})
    assert ask("SELECT sum(x) AS x FROM t", values.slice(0, 2)) == {"x": [sign * 2**63]}
    assert ask("SELECT g, sum(x) AS x FROM t GROUP BY g", values)["x"] == [sign * 2**63, sign * 2**62]


def test_sums_of_narrow_integers_are_int64_and_never_wrap() -> None:
    small = pa.table({"x": pa.array([127] * 3, pa.int8())})
    answer = answered(sql.parse("SELECT sum(x) AS x FROM t"), [small], small.schema)
    assert answer.schema.field("x").type == pa.int64()
    assert answer.to_pydict() == {"x": [381]}
    plan = aggregates.plan(sql.parse("SELECT sum(x) AS x FROM t"), small.schema)
    beyond = pa.table({"s0": pa.array([Decimal(2**63)], pa.decimal256(76, 0))})
    with pytest.raises(RequestError, match="x does not fit its type int64"):
        aggregates.finish(plan, aggregates.merged(plan, [beyond]))


def test_sums_of_decimals_are_exact_or_an_error() -> None:
    nines = pa.array([Decimal("9" * 36 + ".99")] * 5, pa.decimal128(38, 2))
    data = pa.table({"x": nines})
    exact = {"x": [Decimal("4" + "9" * 36 + ".95")]}
    with pytest.raises(RequestError, match=r"does not fit its type decimal128\(38, 2\)"):
        ask("SELECT sum(x) AS x FROM t", data)
    assert ask("SELECT sum(x) AS x FROM t", pa.table({"x": nines.cast(pa.decimal256(60, 2))})) == exact
    assert ask("SELECT avg(x) AS x FROM t", data) == {"x": [1e36]}
    widest = pa.table({"x": pa.array([Decimal("9" * 76)], pa.decimal256(76, 0))})
    assert ask("SELECT sum(x) AS x FROM t", widest) == {"x": [Decimal("9" * 76)]}
    twice = pa.concat_tables([widest, widest])
    for parts in ([twice], [widest, widest]):
        with pytest.raises(RequestError, match="'x' could have more than 76 digits"):
            ask("SELECT sum(x) AS x FROM t", *parts)
    extremes = ask("SELECT min(x) AS low, max(x) AS high FROM t", widest, widest, widest)
    assert extremes == {"low": [Decimal("9" * 76)], "high": [Decimal("9" * 76)]}, "nothing is added up"


def test_nothing_sums_to_null_and_counts_to_zero() -> None:
    text = "SELECT count(*) AS n, count(x) AS c, sum(x) AS s, avg(x) AS a, min(x) AS least, max(f) AS most FROM t"
    empty = pa.table({"x": pa.array([], pa.int32()), "f": pa.array([], pa.float16())})
    nulls = pa.table({"x": pa.nulls(2, pa.int32()), "f": pa.nulls(2, pa.float16())})
    nothing = {"c": [0], "s": [None], "a": [None], "least": [None], "most": [None]}
    assert ask(text, empty) == {"n": [0], **nothing}
    assert ask(text, empty, nulls) == {"n": [2], **nothing}
    plan = aggregates.plan(sql.parse(text), empty.schema)
    assert aggregates.finish(plan, aggregates.merged(plan, [])).to_pydict() == {"n": [0], **nothing}
    assert ask(f"{text} LIMIT 0", empty)["n"] == []
    grouped = ask("SELECT x, count(*) AS n, count(f) AS c FROM t GROUP BY x", nulls, empty)
    assert grouped == {"x": [None], "n": [2], "c": [0]}
    assert ask("SELECT x, count(*) AS n FROM t GROUP BY x", empty) == {"x": [], "n": []}


def test_nan_is_passed_over_unless_there_is_nothing_else() -> None:
    nan = float("nan")
    parts = [pa.table({"x": [nan, nan], "g": [1, 2]}), pa.table({"x": [nan, 5.0], "g": [1, 2]})]
    for text, expected in (
        ("SELECT min(x) AS least, max(x) AS most FROM t", {"least": [5.0], "most": [5.0]}),
        ("SELECT min(x) AS least, max(x) AS most FROM t GROUP BY g", {"least": [nan, 5.0], "most": [nan, 5.0]}),
        ("SELECT sum(x) AS total, count(x) AS c FROM t GROUP BY g", {"total": [nan, nan], "c": [2, 2]}),
    ):
        assert repr(ask(text, *parts)) == repr(expected)


def test_zeros_are_one_group_and_nans_are_one() -> None:
    nans = array([float("nan")], pa.float64())
    other = pa.array([0xFFF8000000000001], pa.uint64()).view(pa.float64())
    values = pa.chunked_array([pa.array([-0.0, 0.0, None]), nans, other])
    for type in (pa.float64(), pa.float32(), pa.float16()):
        data = pa.table({"x": values.cast(type)})
        found = ask("SELECT x, count(*) AS n FROM t GROUP BY x", data.slice(0, 1), data.slice(1))
        assert repr(found) == repr({"x": [0.0, None, float("nan")], "n": [2, 1, 2]})


def test_float_sums_depend_on_parts_alone() -> None:
    rng = random.Random(SEED + 3)
    data = pa.table({"x": [rng.uniform(-1e10, 1e-10) for _ in range(1_200)], "g": [0] * 1_200})
    parts = [data.slice(start, 1) for start in range(1_200)]
    for text in ("SELECT sum(x) AS s FROM t", "SELECT sum(x) AS s FROM t GROUP BY g"):
        plan = aggregates.plan(sql.parse(text), data.schema)
        small = [aggregates.part(plan, each) for each in parts]
        at_once = aggregates.finish(plan, aggregates.merged(plan, small))
        assert at_once["s"].to_pylist() == [functools.reduce(lambda left, right: left + right, data["x"].to_pylist())]
        for _ in range(3):
            again = aggregates.merged(plan, [aggregates.merged(plan, small[:1_100]), *small[1_100:]])
            assert aggregates.finish(plan, again).equals(at_once)


def test_groups_are_limited_in_parts_and_together() -> None:
    numbers = pa.table({"x": range(aggregates.MOST_GROUPS)})
    plan = aggregates.plan(sql.parse("SELECT x, count(*) AS n FROM t GROUP BY x"), numbers.schema)
    full = aggregates.part(plan, numbers)
    assert aggregates.finish(plan, aggregates.merged(plan, [full] * 4))["n"].to_pylist() == [4] * aggregates.MOST_GROUPS
    one_more = pa.table({"x": [-1]})
    with pytest.raises(RequestError, match="more than 100000 groups: group by fewer columns"):
        aggregates.part(plan, pa.concat_tables([numbers, one_more]))
    with pytest.raises(RequestError, match="more than 100000 groups"):
        aggregates.merged(plan, [full, aggregates.part(plan, one_more)])


def test_parts_of_another_form_are_damaged() -> None:
    data = pa.table({"x": [1], "y": [1.0]})
    plan = aggregates.plan(sql.parse("SELECT sum(x) AS s FROM t GROUP BY x"), data.schema)
    other = aggregates.part(aggregates.plan(sql.parse("SELECT sum(y) AS s FROM t GROUP BY x"), data.schema), data)
    large = pa.concat_tables([aggregates.part(plan, data)] * (aggregates.MOST_GROUPS + 1))
    for wrong in (data, other, large):
        with pytest.raises(DamagedError):
            aggregates.merged(plan, [wrong])


def test_the_answer_has_the_asked_order_and_limit() -> None:
    data = pa.table({"a": ["x", "y", "x", "z"], "b": [1, 2, 3, 4]})
    assert ask("SELECT sum(b), a FROM t GROUP BY a LIMIT 2", data) == {"sum(b)": [4, 2], "a": ["x", "y"]}
    assert list(ask("SELECT sum(b), a FROM t GROUP BY a", data)) == ["sum(b)", "a"]
    assert ask("SELECT a FROM t GROUP BY b, a LIMIT 9", data) == {"a": ["x", "y", "x", "z"]}
    assert ask("SELECT max(b) AS m FROM t GROUP BY a", data.slice(2), data.slice(0, 2)) == {"m": [3, 4, 2]}


def test_plans_name_the_columns_that_are_read() -> None:
    schema = pa.schema({name: pa.int64() for name in "abcd"})
    plan = aggregates.plan(sql.parse("SELECT avg(a), sum(a), count(a), count(*), min(c) FROM t GROUP BY d, c"), schema)
    assert plan.columns == ("d", "c", "a")
    assert len(plan.states) == 4
    assert aggregates.plan(sql.parse("SELECT count(*) FROM t"), schema).columns == ()


@pytest.mark.parametrize(
    "query",
    [
        Query("t"),
        Query("t", (), aggregates=(Aggregate("min", "nope", "m"),)),
        Query("t", (), aggregates=(Aggregate("count", "nope", "m"),)),
        Query("t", (), aggregates=(Aggregate("sum", "text", "m"),)),
        Query("t", (), aggregates=(Aggregate("avg", "day", "m"),)),
        Query("t", (), aggregates=(Aggregate("sum", "flag", "m"),)),
        Query("t", (), aggregates=(Aggregate("min", "list", "m"),)),
        Query("t", (), aggregates=(Aggregate("sum", None, "m"),)),
        Query("t", ("text",), aggregates=(Aggregate("count", None, "n"),)),
        Query("t", None, aggregates=(Aggregate("count", None, "n"),), group_by=("text",)),
        Query("t", ("text",), aggregates=(Aggregate("count", None, "text"),), group_by=("text",)),
        Query("t", (), aggregates=(Aggregate("count", None, "n"),), group_by=("text", "text")),
        Query("t", (), aggregates=(Aggregate("count", None, "n"),), group_by=("list",)),
        Query("t", (), aggregates=(Aggregate("count", None, "n"),), group_by=("nope",)),
        Query("t", (), aggregates=(Aggregate("count", None, "n"),), order=("n", "n")),
        Query("t", (), aggregates=(Aggregate("count", None, "n"),), order=("m",)),
        Query("t", (), aggregates=tuple(Aggregate("count", None, str(n)) for n in range(1_001))),
    ],
    ids=range(17),
)
def test_queries_that_cannot_be_meant_are_refused(query: Query) -> None:
    schema = pa.schema(
        {"text": pa.string(), "day": pa.date32(), "flag": pa.bool_(), "list": pa.list_(pa.int64()), "x": pa.int64()}
    )
    with pytest.raises((PredicateError, RequestError)):
        aggregates.plan(query, schema)


def test_columns_without_an_order_are_counted() -> None:
    data = pa.table({"l": [[1], None, []], "s": [{"a": None}, None, {"a": 1}]})
    assert ask("SELECT count(l) AS l, count(s) AS s FROM t", data) == {"l": [2], "s": [2]}


def test_duckdb_gives_the_same_answers() -> None:
    rng = random.Random(SEED + 4)
    rows = 80
    data = pa.table(
        {
            "g": [rng.choice((None, "a", "b")) for _ in range(rows)],
            "k": [rng.choice((None, 1, 2)) for _ in range(rows)],
            "i": [rng.choice((None, 2**62, -(2**62), 5)) for _ in range(rows)],
            "f": [rng.choice((None, 0.5, -2.0)) for _ in range(rows)],
            "d": pa.array(
                [rng.choice((None, Decimal("0.10"), Decimal("9.99"))) for _ in range(rows)], pa.decimal128(5, 2)
            ),
            "day": pa.array([rng.choice((None, 1, 20_000)) for _ in range(rows)], pa.date32()),
        }
    )
    connection = duckdb.connect(config={"threads": 1})
    connection.register("t", data)
    pieces = [f"{function}({column})" for column in "ifd" for function in ("min", "max", "sum", "count", "avg")]
    pieces += ["min(day)", "max(day)", "min(g)", "count(*)", "count(g)"]
    for _ in range(60):
        group_by = rng.sample(["g", "k"], k=rng.randrange(3))
        chosen = ", ".join([*group_by, *rng.sample(pieces, k=4)])
        text = f"SELECT {chosen} FROM t" + (f" GROUP BY {', '.join(group_by)}" if group_by else "")
        ours = ask(text, data.slice(0, 30), data.slice(30))
        theirs = connection.execute(text).fetchall()
        assert sorted(map(rounded, zip(*ours.values(), strict=True)), key=str) == sorted(
            map(rounded, theirs), key=str
        ), text


def rounded(row: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(float(f"{value:.12g}") if isinstance(value, float) else value for value in row)
