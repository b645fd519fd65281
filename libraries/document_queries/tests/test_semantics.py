"""The meaning of queries, value by value, as the reference over dicts implements it."""

import math

import pytest

from libraries.document_queries.errors import QueryError
from libraries.document_queries.plan import Plan, field
from libraries.document_queries.reference import run_over_documents
from libraries.document_queries.steps import (
    Aggregate,
    AnyItem,
    Call,
    Compare,
    Compute,
    Constant,
    Count,
    Exists,
    Filter,
    GroupBy,
    In,
    IsMissing,
    IsNull,
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

A = field("a")
VALUES = [None, True, 1, 1.0, -0.0, 0.0, math.nan, math.inf, "", "é", b"", [], [1], {}, {"b": 1}, 2**53 + 1]
DOCUMENTS = [{"id": place, "a": value} for place, value in enumerate(VALUES)] + [{"id": 99}]


def kept(condition, documents=DOCUMENTS):
    rows = run_over_documents(documents, Plan((Filter(condition), Project((Named("a", A),)))))
    return [row.get("a", "MISSING") for row in rows]


def test_comparisons_are_known_for_like_kinds_only():
    assert kept(Compare(A, "=", Constant(1))) == [1, 1.0]
    assert kept(Compare(A, "!=", Constant(1))) == [-0.0, 0.0, math.inf, 2**53 + 1]
    assert kept(Not(Compare(A, "=", Constant(1)))) == [-0.0, 0.0, math.inf, 2**53 + 1]
    assert kept(Compare(A, ">", Constant(float(2**53)))) == [math.inf, 2**53 + 1]
    assert kept(Compare(A, "=", Constant(True))) == [True]
    assert kept(Compare(A, "<", Constant("f"))) == [""]
    for never in (None, math.nan):
        assert kept(Or((Compare(A, "=", Constant(never)), Not(Compare(A, "=", Constant(never)))))) == []
    assert kept(Not(In(A, (1, "x")))) == []
    assert kept(In(A, ("é", None, 0))) == [-0.0, 0.0, "é"]
    assert kept(Prefix(A, "")) == ["", "é"]


def test_tests_of_presence_are_never_unknown():
    assert kept(IsMissing(A)) == kept(Not(Exists(A))) == ["MISSING"]
    assert kept(IsNull(A)) == [None]
    assert len(kept(Not(IsNull(A)))) == len(DOCUMENTS) - 1
    assert kept(IsType(A, "integer")) == [1, 2**53 + 1]
    assert kept(IsMissing(field("a.b.c"))) == kept(Exists(Constant(0)))


def test_items_of_what_is_no_array_are_none():
    some = AnyItem(("a",), "x", Exists(field("", "x")))
    assert kept(some) == [[1]]
    assert len(kept(Not(some))) == len(DOCUMENTS) - 1


def test_groups_are_by_kind_and_bits_and_come_in_order():
    documents = [*DOCUMENTS, *reversed(DOCUMENTS)]
    plan = Plan((GroupBy((Named("a", A),), (Aggregate("n", "count"),)),))
    rows = run_over_documents(documents, plan)
    assert [row["n"] for row in rows] == [2] * len(DOCUMENTS)
    keys = [row.get("a", "MISSING") for row in rows]
    ordered = ["MISSING", None, True, -0.0, 0.0, 1, 1.0, 2**53 + 1, math.inf, math.nan]
    ordered += ["", "é", b"", [], [1], {}, {"b": 1}]
    assert list(map(repr, keys)) == list(map(repr, ordered))


def aggregated(values, function):
    documents = [{"id": place, "a": value} for place, value in enumerate(values)]
    return run_over_documents(documents, Plan((GroupBy((), (Aggregate("x", function, A),)),)))[0]["x"]


def test_aggregates():
    assert [aggregated([None, "x"], name) for name in ("count", "sum", "avg", "count_distinct")] == [1, None, None, 1]
    assert repr(aggregated([1, 2], "sum")) == "3"
    assert repr(aggregated([1, 2.0, True, "9"], "sum")) == "3.0"
    assert aggregated([1e308, 1e308, -1e308], "sum") == 1e308
    assert aggregated([0.1] * 10, "sum") == 1.0
    assert aggregated([1e308, 1e308], "sum") == math.inf
    assert math.isnan(aggregated([math.inf, -math.inf], "sum"))
    assert aggregated([2**62, 2**62, -1], "sum") == 2**63 - 1
    assert aggregated([2**62, 2**62], "avg") == 2.0**62
    with pytest.raises(QueryError, match="beyond 64 bits"):
        aggregated([2**62, 2**62], "sum")
    assert aggregated(VALUES, "count_distinct") == len(VALUES) - 1
    assert aggregated([3, 2.5, math.nan, None], "min") == 2.5
    assert math.isnan(aggregated([3, math.inf, math.nan], "max"))
    assert repr(aggregated([0.0, -0.0], "min")) == "-0.0"
    assert aggregated([9, "a", None], "max") == "a"


def test_no_tuples_are_one_row_without_keys_and_none_with():
    nothing = Filter(IsMissing(field("id")))
    assert run_over_documents(DOCUMENTS, Plan((nothing, Count()))) == [{"count": 0}]
    assert run_over_documents(DOCUMENTS, Plan((nothing, GroupBy((), (Aggregate("x", "max", A),))))) == [{"x": None}]
    assert run_over_documents(DOCUMENTS, Plan((nothing, GroupBy((Named("a", A),))))) == []


def test_unnest_joins_items_nested_beside_and_distinct():
    documents = [
        {"id": 2, "a": [{"b": [1, 2]}, {"b": 3}, {"b": [4]}], "t": ["x", "x", 1, 1.0, None]},
        {"id": 1, "a": {"b": [7]}, "t": []},
    ]
    nested = Plan((Unnest(("a",), "o"), Unnest(("b",), "i", of="o"), Project((Named("v", field("", "i")),))))
    assert [row["v"] for row in run_over_documents(documents, nested)] == [1, 2, 4]
    beside = Plan((Unnest(("a",), "o"), Unnest(("t",), "t"), Count()))
    assert run_over_documents(documents, beside) == [{"count": 15}]
    distinct = Plan((Unnest(("t",), "t", distinct=field("", "t")), Project((Named("v", field("", "t")),))))
    assert [repr(row["v"]) for row in run_over_documents(documents, distinct)] == ["'x'", "1", "1.0", "None"]


def test_order_ties_and_limits():
    documents = [{"id": key, "a": value} for key, value in [(4, 1), (3, "x"), (2, 1), (1, None)]]
    documents.append({"id": 0})
    project = Project((Named("id", field("id")), Named("a", A)))

    def ids(*steps):
        return [row["id"] for row in run_over_documents(documents, Plan((project, *steps)))]

    assert ids() == [0, 1, 2, 3, 4]
    assert ids(TopK((Order("a"),))) == [0, 1, 2, 4, 3]
    assert ids(TopK((Order("a", descending=True),))) == [3, 2, 4, 1, 0]
    assert ids(TopK((Order("a", descending=True), Order("id", descending=True)), 2)) == [3, 4]
    assert ids(TopK((Order("a", descending=True),), 2)) == [3, 2]
    assert ids(Limit(2)) == [0, 1]
    assert ids(TopK((Order("a"),), 0)) == []


def test_functions():
    documents = [{"id": 1, "t": "né", "i": -7, "d": 0.5, "m": -(2**63)}]
    calls = {
        "length": Call("length", (field("t"),)),
        "no_length": Call("length", (field("i"),)),
        "divided": Call("floor_divide", (field("i"), Constant(2))),
        "modulo": Call("modulo", (field("i"), Constant(4))),
        "no_modulo": Call("modulo", (field("d"), Constant(4))),
        "minus": Call("minus", (field("i"), Constant(1))),
        "double": Call("minus", (field("i"), field("d"))),
        "beyond": Call("minus", (field("m"), Constant(1))),
        "unknown": Call("minus", (field("t"), field("missing"))),
    }
    plan = Plan((Project(tuple(Named(name, call) for name, call in calls.items())),))
    assert run_over_documents(documents, plan) == [
        {
            **{"length": 2, "no_length": None, "divided": -4, "modulo": 1, "no_modulo": None, "minus": -8},
            **{"double": -7.5, "beyond": -(2.0**63), "unknown": None},
        }
    ]


def test_computed_columns_see_the_row():
    plan = Plan(
        (
            GroupBy((), (Aggregate("low", "min", field("id")), Aggregate("high", "max", field("id")))),
            Compute((Named("span", Call("minus", (field("high"), field("low")))), Named("copy", field("span")))),
        )
    )
    assert run_over_documents(DOCUMENTS, plan) == [{"low": 0, "high": 99, "span": 99, "copy": 99}]
