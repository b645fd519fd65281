"""Uses in words: how they are parsed, and the errors for words that are not understood."""

from __future__ import annotations

import pytest

from bench_runner.operations import operation_of, parameters
from bench_runner.operations.documents.ask import Sql
from format_bench.errors import RequestError
from format_bench.uses import CAN_BE_SAID, EXAMPLE, parse_uses, uses_of, weighed, words_of

TAKE_100 = "take[rows=100,handle=kept]"


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("take 100 rows 1000 times a day, read all once", {TAKE_100: 1000, "read": 1}),
        ("take 100 rows", {TAKE_100: 1}),
        ("read 3 fields as a table, read 1 field", {"fields[paths=3,form=table]": 1, "fields[paths=1]": 1}),
        ("take 1 row twice", {"take[rows=1,handle=kept]": 2}),
        ("take 1,000 rows, save once", {"take[rows=1000,handle=kept]": 1, "save": 1}),
        ("take 10 rows of 2 columns reopened 1,000 times an hour", {"take[rows=10,handle=reopened,columns=2]": 24_000}),
        ("read 5 columns 7 times a week", {"project[columns=5]": 1}),
        ("Read All ONCE per week", {"read": pytest.approx(1 / 7)}),
        ("scan 1 % 3 times each day", {"scan[selectivity=0.01,kind=range]": 3}),
        ("filter 0.7 percent by equal of 2 columns", {"scan[selectivity=0.007,kind=equal,columns=2]": 1}),
        ("scan 12.345 % once", {"scan[selectivity=0.12345,kind=range]": 1}),
        ("append 500 rows 24 times a day and save", {"append[rows=500]": 24, "save": 1}),
        ("take 100 rows 2 times, take 100 rows 3 times", {TAKE_100: 5}),
        (
            "sql 'SELECT Kind, count(*) FROM docs WHERE a = ''x,y'' GROUP BY Kind' 10 times an hour, get 5 documents",
            {
                "sql[query=SELECT Kind%2C count(*) FROM docs WHERE a = 'x%2Cy' GROUP BY Kind]": 240,
                "get[documents=5]": 1,
            },
        ),
        ("SQL \"SELECT a FROM docs WHERE b = 'x'\" twice", {"sql[query=SELECT a FROM docs WHERE b = 'x']": 2}),
        ("take[rows=10,pattern=zipf] 4 times a day, read", {"take[rows=10,pattern=zipf,handle=kept]": 4, "read": 1}),
    ],
)
def test_uses_in_words_become_operations_per_day(said: str, means: dict[str, float]) -> None:
    assert parse_uses(said) == means


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("tkae 100 rows", "'tkae 100 rows' is not understood (did you mean 'take'?)"),
        ("take some rows", "'take some rows' is not understood.\n"),
        ("read all sometimes", "'read all sometimes' is not understood.\n"),
        ("take 100 rows 3 times a moon", "'moon'"),
        ("take 100 rows 0 times a day", "must be above 0"),
        ("take 0 rows", "rows must be a number from 1 on (got 'take[rows=0]')"),
        ("scan 200 %", "selectivity must be a share over 0 and at most 1"),
        ("scan 1 % by colour", "is not understood"),
        ("sql SELECT a FROM docs", "is not understood"),
        ("sql 'SELECT a FROM docs", "is not understood"),
        ("sql '' once", "the SQL is empty"),
        ("sql #0", "is not understood"),
        ("sql 'DELETE FROM docs' once", "only SELECT is supported (got 'DELETE')"),
        ("sql 'SELECT lower(a) FROM docs'", "this SQL cannot be asked in every store: SELECT has the function lower"),
        ("sql 'SELECT * FROM docs'", "it has *, but the names of the fields are not known in advance"),
        ("take[rows=10,colour=red]", "take has no parameter 'colour'"),
        (" , ", "no operation"),
    ],
)
def test_unknown_words_are_refused_with_what_is_allowed(said: str, told: str) -> None:
    with pytest.raises(RequestError) as refused:
        parse_uses(said)
    message = str(refused.value)
    assert message.startswith("uses")
    assert told in message
    assert len(message.splitlines()) <= 2
    if "understood" in message or "names no" in message:
        assert CAN_BE_SAID in message
        assert EXAMPLE in message


def test_the_example_of_the_error_is_understood() -> None:
    assert parse_uses(EXAMPLE) == {TAKE_100: 1000, "read": 1}


def test_uses_can_be_written_as_words_and_parsed_again() -> None:
    said = parse_uses("take 7 rows of 2 columns 5 times a week, read once a week, scan 0.1% 11 times an hour, save")
    uses = uses_of(said)
    assert parse_uses(", ".join(map(words_of, uses))) == said
    assert [use.told for use in uses] == [
        "take 7 rows, 2 columns 5 times a week",
        "read all once a week",
        "scan 0.1% by range 264 times a day",
        "save all once a day",
    ]


def test_sql_is_parsed_again_as_it_was() -> None:
    query = "SELECT a, count(*)\nFROM docs WHERE b = 'it''s [1], 5%2C' GROUP BY a"
    (use,) = uses_of({f"sql {query}": 3})
    assert operation_of(use.operation) == Sql(parameters.quoted(query))
    assert parse_uses(words_of(use)) == {use.operation: 3}
    assert uses_of({use.operation: 3}) == (use,)
    assert use.told == "sql 'SELECT a, count(*) FROM docs WHERE b = 'it''s [1], 5%2C' ...' 3 times a day"


@pytest.mark.parametrize("times", [0, -1, float("inf"), float("nan"), True, "often"])
def test_how_often_is_a_number_above_0(times: object) -> None:
    with pytest.raises(RequestError, match="a number above 0"):
        uses_of({"read": times})  # type: ignore[dict-item]


def test_weights_of_operations_are_spelled_in_full() -> None:
    weights, titles = weighed({"read": 1, "take": 3, "scan[selectivity=0.1]": 2, "size": 0.5})
    assert weights == {"read": 1, TAKE_100: 3, "scan[selectivity=0.1,kind=range]": 2, "size": 0.5}
    assert titles == {TAKE_100: "take 100 rows", "scan[selectivity=0.1,kind=range]": "scan 10% by range"}
    for wrong, told in (
        ({"sort": 1}, "cannot weigh 'sort'"),
        ({"take[rows=0]": 1}, "weights: rows must be"),
        ({"take": 1, "take[rows=100]": 2}, "twice"),
    ):
        with pytest.raises(RequestError) as refused:
            weighed(wrong)
        assert told in str(refused.value)
        assert len(str(refused.value).splitlines()) <= 2


def test_operations_that_are_no_use_are_refused() -> None:
    """Whatever a user weighs has lines of Python; other operations have none."""
    with pytest.raises(RequestError, match=r"uses cannot have the operation metadata.*\n?.*Choose among save, read"):
        uses_of({"metadata[files=5]": 1})
