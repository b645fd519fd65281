"""Plans are checked on construction, report the paths they read, and survive a round trip through JSON."""

import json

import pytest

from libraries.document_queries.errors import QueryError
from libraries.document_queries.json_form import from_json, to_json
from libraries.document_queries.plan import Plan, field
from libraries.document_queries.steps import (
    Aggregate,
    And,
    AnyItem,
    Call,
    Compare,
    Compute,
    Constant,
    Count,
    Field,
    Filter,
    GroupBy,
    In,
    IsMissing,
    IsType,
    Limit,
    Named,
    Not,
    Or,
    Order,
    Prefix,
    Project,
    TopK,
    Unnest,
)
from libraries.document_queries.values import MAX_DEPTH

A = field("a")
ONE = Compare(A, "=", Constant(1))


def deep(depth):
    condition = ONE
    for _ in range(depth):
        condition = Not(condition)
    return condition


WRONG = {
    "each at most once": lambda: Plan((Count(), Count())),
    "not allowed at this position": lambda: Plan((Count(), Filter(ONE))),
    "unknown step": lambda: Plan((ONE,)),
    "unknown operator '=='": lambda: Plan((Filter(Compare(A, "==", Constant(1))),)),
    "unknown function 'exec'": lambda: Plan((Project((Named("x", Call("exec", (A,))),)),)),
    "no item is named 'x'": lambda: Plan((Filter(Compare(field("b", "x"), "=", Constant(1))),)),
    "another array is named 'x' already": lambda: Plan((Unnest(("a",), "x"), Unnest(("b",), "x"), Count())),
    "given to two arrays": lambda: Plan((Filter(Or((AnyItem(("a",), "x", ONE), AnyItem(("b",), "x", ONE)))),)),
    "a plan with an Unnest needs a Project, GroupBy or Count": lambda: Plan((Unnest(("a",), "x"),)),
    "beyond 64 bits": lambda: Plan((Filter(Compare(A, "=", Constant(2**63))),)),
    "an integer of 16,610 bits is beyond 64 bits": lambda: Plan((Filter(In(A, (10**5000,))),)),
    "got an integer of 16,610 bits": lambda: Plan((Limit(10**5000),)),
    "a constant must be null": lambda: Plan((Filter(In(A, ([1],))),)),
    "nested more than": lambda: Plan((Filter(deep(100)),)),
    "inside another": lambda: Plan((Filter(AnyItem(("a",), "x", And((AnyItem(("b",), "y", ONE),)))),)),
    "positive integer constant": lambda: Plan((Project((Named("x", Call("modulo", (A, Constant(0)))),)),)),
    "is given twice": lambda: Plan((Project((Named("x", A), Named("x", A))),)),
    "no column 'b'": lambda: Plan((Project((Named("a", A),)), TopK((Order("b"),)))),
    "no column 'a.b'": lambda: Plan((Project((Named("a", A),)), Compute((Named("c", Field(("a", "b"))),)))),
    "unknown aggregate 'median'": lambda: Plan((GroupBy((), (Aggregate("x", "median", A),)),)),
    "needs an expression": lambda: Plan((GroupBy((), (Aggregate("x", "sum"),)),)),
    "neither keys nor aggregates": lambda: Plan((GroupBy((), ()),)),
    "rows must be an integer": lambda: Plan((Limit(-1),)),
    "unknown kind 'number'": lambda: Plan((Filter(IsType(A, "number")),)),
    "tuple of field names": lambda: Plan((Filter(Compare(Field("a"), "=", Constant(1))),)),
    "UTF-8": lambda: Plan((Filter(Prefix(A, "\ud800")),)),
    "goes through an array": lambda: field("a[*].b"),
    "at most 16 Unnests": lambda: Plan((*(Unnest(("a",), f"x{n}") for n in range(17)), Count())),
    "distinct may only read fields of the unnested item": lambda: Plan(
        (Unnest(("a",), "x", distinct=field("b")), Count())
    ),
    "the document itself is not an array": lambda: Plan((Unnest((), "x"), Count())),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_cannot_be_executed_is_refused_with_its_reason(words):
    with pytest.raises(QueryError, match=words.replace("(", r"\(")):
        WRONG[words]()


def test_values_that_json_lacks_survive_it():
    values = (float("inf"), float("-inf"), -0.0, 1.0, 1, True, None, b"\x00\xff", "x")
    (step,) = from_json(to_json(Plan((Filter(In(A, values)),)))).steps
    assert list(map(repr, step.condition.values)) == list(map(repr, values))
    nan = from_json(to_json(Plan((Filter(Compare(A, "=", Constant(float("nan")))),))))
    assert repr(nan.steps[0].condition.right.value) == "nan"


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[",
        "[NaN]",
        '[{"is": "unlink"}]',
        '[{"is": "count", "nam": "x"}]',
        '[{"is": "limit"}]',
        '[{"is": "limit", "rows": "1"}]',
        '[{"is": "limit", "rows": {"is": "double", "text": "many"}}]',
        '[{"is": ["count"]}]',
        "[3]",
        json.dumps([{"is": "filter", "condition": 7}]),
        "[" * 100_000,
        '{"is":"not","condition":' * 20_000,
        "[" + '{"is":"filter","condition":' + '{"is":"not","condition":' * 700 + "0" + "}" * 701 + "]",
    ],
)
def test_hostile_json_is_refused(text):
    with pytest.raises(QueryError):
        from_json(text)


def test_a_path_beyond_what_documents_hold_is_refused():
    """Otherwise recursive code that walks along paths could overflow the stack."""
    plan = Plan((Filter(IsMissing(Field(("a",) * MAX_DEPTH))), Count()))
    assert from_json(to_json(plan)) == plan
    with pytest.raises(QueryError, match=r"a path of 65 names .* at most 64 deep"):
        Plan((Filter(IsMissing(Field(("a",) * (MAX_DEPTH + 1)))), Count()))
