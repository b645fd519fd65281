"""SQL text to queries: what is supported, what is refused and how, and DuckDB's answers to the same text."""

import datetime
import random
import string
from decimal import Decimal
from fractions import Fraction

import duckdb
import pyarrow as pa
import pytest

from libraries.filters.binding import bind
from libraries.filters.tests.keeping import keep
from libraries.filters.tree import And, Comparison, Constant, In, IsNull, Literal, Not, Or, Predicate, Prefix
from libraries.filters.values import MOST_DIGITS, exact, literal
from libraries.near_storage.errors import PredicateError, RequestError
from libraries.near_storage.predicates import sql
from libraries.near_storage.query import Aggregate, Query

A = Comparison("==", "a", literal(1))
B = Comparison("==", "b", literal(2))
C = Comparison("==", "c", literal(3))


def where(condition: str) -> Predicate | None:
    return sql.parse(f"SELECT * FROM t WHERE {condition}").where


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM t", Query("t")),
        ('select a, "B.c", x.d from t as x limit 5;', Query("t", ("a", "B.c", "d"), limit=5)),
        ('SELECT t.a FROM "t" LIMIT 0', Query("t", ("a",), limit=0)),
        ('SELECT a FROM "my table"', Query("my table", ("a",))),
        (
            'SELECT min(a), max(A) AS most, count(*), count(1) AS ones, count(b), avg("x y") FROM t',
            Query(
                "t",
                (),
                None,
                (
                    Aggregate("min", "a", "min(a)"),
                    Aggregate("max", "A", "most"),
                    Aggregate("count", None, "count(*)"),
                    Aggregate("count", None, "ones"),
                    Aggregate("count", "b", "count(b)"),
                    Aggregate("avg", "x y", "avg(x y)"),
                ),
            ),
        ),
        (
            "SELECT a, sum(b) AS s FROM t WHERE a = 1 GROUP BY b, a LIMIT 3",
            Query("t", ("a",), A, (Aggregate("sum", "b", "s"),), ("b", "a"), 3),
        ),
        (
            "SELECT sum(b), a FROM t GROUP BY a",
            Query("t", ("a",), None, (Aggregate("sum", "b", "sum(b)"),), ("a",), None, ("sum(b)", "a")),
        ),
        ("SELECT a FROM t GROUP BY a", Query("t", ("a",), None, (), ("a",))),
        ("SELECT count() FROM t GROUP BY a", Query("t", (), None, (Aggregate("count", None, "count(*)"),), ("a",))),
    ],
)
def test_statements(text: str, expected: Query) -> None:
    assert sql.parse(text) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a = 1 AND b = 2 AND c = 3", And((A, B, C))),
        ("a = 1 AND (b = 2 OR c = 3)", And((A, Or((B, C))))),
        ("a = 1 OR b = 2 AND NOT c = 3", Or((A, And((B, Not(C)))))),
        ("(a = 1 AND b = 2) AND ((c == 3))", And((A, B, C))),
        ("NOT a = 1 AND b = 2", And((Not(A), B))),
        ("-5 < a", Comparison(">", "a", literal(-5))),
        ("5 >= a", Comparison("<=", "a", literal(5))),
        ("a <> 1.50", Comparison("!=", "a", literal(Decimal("1.50")))),
        ("a != - (-.5)", Comparison("!=", "a", literal(Decimal("0.5")))),
        ("a = 1e2", Comparison("==", "a", literal(Decimal("1E+2")))),
        ("a = 1e300", Comparison("==", "a", literal(1e300))),
        ("a = -1e-300", Comparison("==", "a", literal(-1e-300))),
        ("a = 0e999", Comparison("==", "a", literal(0.0))),
        ("a = 0.0", Comparison("==", "a", literal(Decimal("0.0")))),
        ("a = 18446744073709551616", Comparison("==", "a", literal(2**64))),
        ("a = 'it''s'", Comparison("==", "a", literal("it's"))),
        ("a = NULL", Comparison("==", "a", literal(None))),
        ("a = TRUE", Comparison("==", "a", literal(True))),
        ("a AND NOT b", And((Comparison("==", "a", literal(True)), Not(Comparison("==", "b", literal(True)))))),
        ("TRUE OR NULL", Or((Constant(True), Constant(None)))),
        ("a IN (1, NULL, 'x', -2.5)", In("a", tuple(map(literal, (1, None, "x", Decimal("-2.5")))))),
        ("a NOT IN (1)", Not(In("a", (literal(1),)))),
        ("a IS NULL", IsNull("a")),
        ("a IS NOT NULL", Not(IsNull("a"))),
        ("a BETWEEN 1 AND 2", And((Comparison(">=", "a", literal(1)), Comparison("<=", "a", literal(2))))),
        ("a NOT BETWEEN 1 AND 2", Not(And((Comparison(">=", "a", literal(1)), Comparison("<=", "a", literal(2)))))),
        ("a LIKE 'x%'", Prefix("a", "x")),
        ("a LIKE 'x%%'", Prefix("a", "x")),
        ("a LIKE '%'", Prefix("a", "")),
        ("a NOT LIKE 'x%'", Not(Prefix("a", "x"))),
        ("NOT a NOT LIKE 'x%'", Not(Not(Prefix("a", "x")))),
        ("a LIKE 'x'", Comparison("==", "a", literal("x"))),
        (r"a LIKE 'x\%'", Prefix("a", "x\\")),
        ("a LIKE '10!%!_!!%' ESCAPE '!'", Prefix("a", "10%_!")),
        ("a NOT LIKE 'x!%' ESCAPE '!'", Not(Comparison("==", "a", literal("x%")))),
        ("a = DATE '1970-01-02'", Comparison("==", "a", Literal(1, pa.date32()))),
        ("a = '1970-01-02'::date", Comparison("==", "a", Literal(1, pa.date32()))),
        ("a = CAST('1970-01-02' AS DATE)", Comparison("==", "a", Literal(1, pa.date32()))),
        ("a = TIME '00:00:01'", Comparison("==", "a", Literal(10**9, pa.time64("ns")))),
        ("a = TIMESTAMP '1970-01-01 00:00:01.5'", Comparison("==", "a", Literal(1_500_000, pa.timestamp("us")))),
        ("a = TIMESTAMP '1970-01-01 00:00:00.000000001'", Comparison("==", "a", Literal(1, pa.timestamp("ns")))),
        ("a = TIMESTAMPTZ '1970-01-01 01:00:00+01'", Comparison("==", "a", Literal(0, pa.timestamp("us", "UTC")))),
        ("a = TIMESTAMPTZ '1970-01-01 05:45:00+05:45'", Comparison("==", "a", Literal(0, pa.timestamp("us", "UTC")))),
        ("a = TIMESTAMPTZ '1969-12-31 20:30:00-0330'", Comparison("==", "a", Literal(0, pa.timestamp("us", "UTC")))),
        ("a < 'Infinity'::double", Comparison("<", "a", literal(float("inf")))),
    ],
)
def test_conditions(condition: str, expected: Predicate) -> None:
    assert where(condition) == expected


REFUSED = {
    "SELECT a FROM t ORDER BY a": "`ORDER BY a`",
    "SELECT a FROM t JOIN u ON t.a = u.a": "JOIN u",
    "SELECT a FROM t, u": "u",
    "SELECT DISTINCT a FROM t": "DISTINCT",
    "SELECT a FROM t OFFSET 3": "OFFSET 3",
    "SELECT a FROM t GROUP BY a HAVING a > 1": "HAVING",
    "SELECT a FROM t GROUP BY ALL": "ALL",
    "SELECT a FROM t GROUP BY ROLLUP (a)": "ROLLUP",
    "SELECT a FROM t GROUP BY 1": "`1`",
    "SELECT a, b FROM t GROUP BY a": "'b' must be in GROUP BY",
    "SELECT a, count(*) FROM t": "'a' must be in GROUP BY",
    "SELECT * FROM t GROUP BY a": "without other columns",
    "SELECT *, a FROM t": "without other columns",
    "SELECT * EXCLUDE (a) FROM t": "EXCEPT",
    "SELECT t.* FROM t": "column of the table",
    "SELECT a AS b FROM t": "renamed",
    "SELECT a, a FROM t": "column 'a' twice",
    "SELECT a, min(b) AS a FROM t GROUP BY a": "two columns named 'a'",
    "SELECT a, b FROM t GROUP BY a, b, a": "twice",
    "SELECT a + 1 FROM t": "`a [+] 1`",
    "SELECT count(DISTINCT a) FROM t": "DISTINCT a",
    "SELECT sum(DISTINCT a) FROM t": "DISTINCT a",
    "SELECT sum(a + 1) FROM t": "`a [+] 1`",
    "SELECT min(a, 3) FROM t": "`3`",
    "SELECT sum(*) FROM t": "column of the table",
    "SELECT mean(a) FROM t": "min, max, sum, count and avg",
    "SELECT min(a) FILTER (WHERE a > 1) FROM t": "FILTER",
    "SELECT min(a) OVER () FROM t": "OVER",
    "SELECT a FROM t LIMIT 10%": "PERCENT",
    "SELECT a FROM t LIMIT ALL": "number of rows",
    "SELECT a FROM t LIMIT -1": "number of rows",
    "SELECT a FROM t LIMIT 9223372036854775808": "at most",
    "SELECT a FROM t FETCH FIRST 5 ROWS ONLY": "FETCH",
    "SELECT a FROM s.t": "this DB",
    "SELECT a FROM t AS x(b)": "COLUMNS",
    "SELECT a FROM t TABLESAMPLE (10)": "SAMPLE",
    "SELECT a FROM read_parquet('x')": "name of one table",
    "SELECT a FROM (SELECT a FROM t)": "name of one table",
    "SELECT 1": "no FROM",
    "WITH q AS (SELECT 1) SELECT a FROM q": "begin with SELECT",
    "FROM t": "begin with SELECT",
    "DROP TABLE t": "begin with SELECT",
    "": "begin with SELECT",
    "SELECT a FROM t UNION SELECT a FROM u": "single SELECT",
    "SELECT a FROM t; SELECT b FROM t": "single SELECT",
    "SELECT a FROM": "cannot parse",
    "SELECT a FROM 'unfinished": "cannot parse",
}
REFUSED_CONDITIONS = {
    "a = b": "constant is required",
    "1 = 1": "with a constant",
    "a + 1 = 2": "with a constant",
    "lower(a) = 'x'": "with a constant",
    "a = 1 + 1": "`1 [+] 1`",
    "s.f = 1": '"s.f"',
    "a IN (SELECT 1)": "QUERY|SELECT 1",
    "a IN (b)": "constant",
    "a IN ()": "constants in brackets",
    "a IS TRUE": "NULL or NOT NULL",
    "a IS NOT DISTINCT FROM 1": "WHERE compares",
    "a ILIKE 'x%'": "WHERE compares",
    "a LIKE '%x'": "one wildcard: % at the end",
    "a LIKE 'x%y%'": "one wildcard: % at the end",
    "a LIKE 'x_'": "one wildcard: % at the end",
    "a LIKE b": "LIKE takes",
    "a LIKE 'x!' ESCAPE '!'": "ESCAPE character",
    "a LIKE 'x%' ESCAPE ''": "one character",
    "a LIKE ANY ('x%', 'y%')": "LIKE takes",
    "a SIMILAR TO 'x'": "WHERE compares",
    "a ~ 'x'": "WHERE compares",
    "a BETWEEN SYMMETRIC 2 AND 1": "SYMMETRIC",
    "a BETWEEN b AND 1": "constant",
    "a = ?": "constant",
    "a = $1": "constant",
    "a = DATE '2020-02-30'": "calendar date",
    "a = DATE '2020-2-3'": "not a date",
    "a = TIMESTAMP '2020-01-01 00:00:00+01'": "has an offset",
    "a = TIMESTAMPTZ '2020-01-01 00:00:00'": r"has no offset.*write e\.g\. '2020-12-31 00:00:00\+00:00'",
    "a = TIMESTAMP '2500-01-01 00:00:00.000000001'": "1677 and 2262",
    "a = INTERVAL 1 DAY": "constant",
    "a = TRY_CAST('2020-01-01' AS DATE)": "constant",
    "a = CAST('5' AS INTEGER)": "constant",
    "a = 'x'::double": "not a double",
    "a = 1e400": "range of a double",
    "a = 1e-400": "range of a double",
    f"a = 0.{'1' * 80}": "at most 76 digits",
    "a = -'x'": "constant",
    "a = -NULL": "constant",
    "EXISTS (SELECT 1)": "WHERE compares",
    "(a, b) = (1, 2)": "with a constant",
    "'x'": "WHERE compares",
    "CASE WHEN a = 1 THEN TRUE END": "WHERE compares",
    "a = ALL (SELECT 1)": "constant",
    "t.a = 1 AND u.a = 2": "t is the only table",
}


@pytest.mark.parametrize("text", ["SELECT FROM t", "SELECT all FROM t", "SELECT a FROM t WHERE", "SELECT map FROM t"])
def test_names_that_are_keywords_must_be_quoted(text: str) -> None:
    with pytest.raises(PredicateError, match="in double quotes") as refused:
        sql.parse(text)
    assert "sqlglot" not in str(refused.value)


@pytest.mark.parametrize("text", REFUSED)
def test_the_rest_of_sql_is_refused_by_name(text: str) -> None:
    with pytest.raises(PredicateError, match=REFUSED[text]):
        sql.parse(text)


@pytest.mark.parametrize("condition", REFUSED_CONDITIONS)
def test_the_rest_of_where_is_refused_by_name(condition: str) -> None:
    with pytest.raises(PredicateError, match=REFUSED_CONDITIONS[condition]):
        where(condition)


def test_refusals_name_the_other_way() -> None:
    with pytest.raises(PredicateError, match=r"connect\(\.\.\.\)\.dataset\(table\) to DuckDB, Polars or pyarrow"):
        sql.parse("SELECT a FROM t ORDER BY a")


HOSTILE = {
    "brackets": "SELECT a FROM t WHERE " + "(" * 5_000 + "a = 1" + ")" * 5_000,
    "unfinished": "SELECT a FROM t WHERE " + "(" * 24,
    "calls": "SELECT a FROM t WHERE a = " + "f(" * 24 + "1" + ")" * 24,
    "lists": "SELECT a FROM t WHERE a = " + "[" * 24 + "1" + "]" * 24,
    "structs": "SELECT a FROM t WHERE a = " + "{'x': " * 24 + "1" + "}" * 24,
    "cases": "SELECT a FROM t WHERE " + "CASE WHEN " * 1_000,
    "not": "SELECT a FROM t WHERE " + "NOT " * 5_000 + "a",
    "signs": "SELECT a FROM t WHERE a = " + "- " * 5_000 + "1",
    "dots": "SELECT a" + ".a" * 2_000 + " FROM t",
    "casts": "SELECT a FROM t WHERE a = 1" + "::int" * 1_500,
    "conditions": "SELECT a FROM t WHERE " + " OR ".join(["a = 1"] * 4_097),
    "literals": "SELECT a FROM t WHERE a IN (" + ",".join(["1"] * 10_001) + ")",
    "sums": "SELECT a FROM t WHERE a = 1" + " + 1" * 5_000,
    "digits": "SELECT a FROM t WHERE a = " + "9" * 100_000,
    "exponent": "SELECT a FROM t WHERE a = 1e" + "9" * 100_000,
    "length": "SELECT a FROM t WHERE a = '" + "x" * sql.MOST_BYTES + "'",
    "surrogate": "SELECT a FROM t WHERE a = '\ud800'",
    "null": "SELECT a FROM t WHERE a = 1\0",
    "selects": "SELECT (" * 24 + "1" + ")" * 24 + " FROM t",
    "joins": "SELECT a FROM t" + " JOIN t" * 5_000,
    "unions": "SELECT a FROM t" + " UNION SELECT a FROM t" * 500,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_ends_in_an_error(name: str) -> None:
    with pytest.raises(RequestError):
        sql.parse(HOSTILE[name])


@pytest.mark.parametrize("name", ["brackets", "cases", "not", "signs"])
def test_depth_is_refused_before_a_parser_recurses(name: str) -> None:
    with pytest.raises(PredicateError, match="more than 24 levels deep"):
        sql.parse(HOSTILE[name])


def test_signs_and_brackets_within_the_limit_are_a_number() -> None:
    assert where("a = " + "-(" * 20 + "1" + ")" * 20) == A


@pytest.mark.parametrize("sign", ["", "-", "- -"])
def test_numbers_of_as_many_digits_as_are_taken_are_exact(sign: str) -> None:
    rng = random.Random(7)
    for digits in range(1, MOST_DIGITS + 1):
        written = "".join(rng.choices("123456789", k=digits))
        for point in {0, digits // 2, digits}:
            text = f"{written[:point]}.{written[point:]}"
            found = where(f"d = {sign}{text}")
            assert isinstance(found, Comparison)
            assert exact(found.literal) == Fraction(text) * (-1 if sign == "-" else 1)


def test_mutated_text_ends_in_a_query_or_an_error() -> None:
    rng = random.Random(22)
    text = (
        "SELECT a, count(*) AS n FROM t WHERE a = -1.5 AND b LIKE 'x%' OR c IN (1, NULL) AND d < DATE '2020-01-01' "
        "GROUP BY a LIMIT 5"
    )
    pieces = [*text.split(), *"()[]{},.;:'\"-+*/%?$\\", "NOT", "ESCAPE", "'!'", "CASE", "\0", "ä", "1e9"]
    for _ in range(400):
        words = text.split()
        for _ in range(rng.randint(1, 4)):
            place = rng.randrange(len(words))
            words[place : place + rng.randint(0, 2)] = rng.choices(pieces, k=rng.randint(0, 2))
            words = words or ["SELECT"]
        mutated = " ".join(words)
        if rng.random() < 0.3:
            place = rng.randrange(len(mutated))
            mutated = mutated[:place] + rng.choice(string.printable) + mutated[place + 1 :]
        try:
            assert isinstance(sql.parse(mutated), Query)
        except RequestError:
            continue


WIDE = tuple(
    sign + "123456789012345678901234567890123456" + cents for sign in ("", "-") for cents in (".78", ".79", ".00")
)
"""Numbers of 38 digits that differ only in the last ones."""


def opinions_table() -> pa.Table:
    rng = random.Random(23)
    rows = 60
    columns = {
        "i": [rng.choice((None, -2, 0, 1, 2, 5)) for _ in range(rows)],
        "d": [rng.choice((None, -1.5, -0.0, 0.0, 0.1, 2.0)) for _ in range(rows)],
        "s": [rng.choice((None, "", "a", "ab", "b%", "ä")) for _ in range(rows)],
        "b": [rng.choice((None, True, False)) for _ in range(rows)],
        "day": [rng.choice((None, datetime.date(2020, 1, 1), datetime.date(2021, 12, 31))) for _ in range(rows)],
        "moment": [
            rng.choice((None, datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, 12))) for _ in range(rows)
        ],
    }
    table = pa.table({"row": range(rows), **columns})
    cents = [rng.choice((None, Decimal("0.10"), Decimal("1.00"), Decimal("-2.50"))) for _ in range(rows)]
    floats = [rng.choice((None, 0.1, 1.0)) for _ in range(rows)]
    wide = [rng.choice((None, *map(Decimal, WIDE))) for _ in range(rows)]
    return (
        table.append_column("dec", pa.array(cents, pa.decimal128(5, 2)))
        .append_column("f", pa.array(floats, pa.float32()))
        .append_column("wide", pa.array(wide, pa.decimal128(38, 2)))
    )


CONSTANTS = {
    "i": ("0", "1", "-2", "1.5", "5.0", "1e0", "NULL", "300"),
    "d": ("0", "0.1", "-1.5", "2", "1e-1", "NULL"),
    "f": ("0.1", "1", "1.0", "NULL"),
    "dec": ("0.1", "1", "0.105", "-2.5", "NULL"),
    "wide": (*WIDE, "NULL"),
    "s": ("''", "'a'", "'ab'", "'b%'", "'ä'", "NULL"),
    "day": ("DATE '2020-01-01'", "'2021-12-31'", "TIMESTAMP '2020-01-01 12:00:00'", "NULL"),
    "moment": ("TIMESTAMP '2020-01-01 12:00:00'", "DATE '2020-01-01'", "'2020-01-01 00:00:00'", "NULL"),
    "b": ("TRUE", "FALSE", "NULL"),
}


@pytest.mark.parametrize("text", WIDE)
def test_neighbours_at_full_precision_are_told_apart(text: str) -> None:
    table = pa.table({"wide": pa.array(map(Decimal, WIDE), pa.decimal128(38, 2))})
    condition = where(f"wide = {text}")
    assert condition is not None
    assert keep(bind(condition, table.schema), table)["wide"].to_pylist() == [Decimal(text)]


def random_condition(rng: random.Random, depth: int) -> str:
    kind = rng.random()
    if depth and kind < 0.5:
        parts = [f"({random_condition(rng, depth - 1)})" for _ in range(2)]
        return f"NOT {parts[0]}" if kind < 0.15 else f" {rng.choice(('AND', 'OR'))} ".join(parts)
    column = rng.choice(tuple(CONSTANTS))
    constant = lambda: rng.choice(CONSTANTS[column])  # noqa: E731
    negation = rng.choice(("", "NOT "))
    forms = (
        f"{column} {rng.choice(('=', '<>', '<', '<=', '>', '>='))} {constant()}",
        f"{constant()} {rng.choice(('=', '!=', '<', '<=', '>', '>='))} {column}",
        f"{column} {negation}BETWEEN {constant()} AND {constant()}",
        f"{column} {negation}IN ({constant()}, {constant()})",
        f"{column} IS {negation}NULL",
        f"s {negation}LIKE '{rng.choice(('a%', '%', 'ab', '', 'b!%%'))}' ESCAPE '!'",
        f"{negation}b",
    )
    return rng.choice(forms)


def test_duckdb_gives_the_same_rows() -> None:
    table = opinions_table()
    rng = random.Random(24)
    connection = duckdb.connect(config={"threads": 1})
    connection.register("t", table)
    for _ in range(120):
        text = f"SELECT row FROM t WHERE {random_condition(rng, 2)}"
        query = sql.parse(text)
        assert query.where is not None
        ours = keep(bind(query.where, table.schema), table)["row"].to_pylist()
        assert ours == [row for (row,) in connection.execute(f"{text} ORDER BY row").fetchall()], text
