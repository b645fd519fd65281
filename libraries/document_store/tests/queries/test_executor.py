"""All ways of execution give the reference answer, bit by bit and in order; each reads only what it must."""

import itertools
import math

import numpy as np
import pytest

from libraries.document_queries.errors import QueryError
from libraries.document_queries.json_form import to_json
from libraries.document_queries.plan import Plan, field
from libraries.document_queries.steps import (
    MOST_UNNESTS,
    Aggregate,
    And,
    AnyItem,
    Call,
    Compare,
    Constant,
    Count,
    Field,
    Filter,
    GroupBy,
    In,
    IsNull,
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
from libraries.document_queries.tests.strategies import HOSTILE
from libraries.document_store.errors import CorruptError
from libraries.document_store.queries.branches import Places
from libraries.document_store.queries.executor import WAYS, execute
from libraries.document_store.queries.generated import result_collection, rows
from libraries.document_store.queries.generated.columns import function_for
from libraries.document_store.queries.vectors import aggregates, arrow, coded, codes, unnesting, vector
from libraries.document_store.queries.vectors.slots import View
from libraries.document_store.shredding import Column, Texts
from libraries.document_store.tests.queries.fuzz import check, runs
from libraries.document_store.tests.queries.memory import MemorySnapshot
from libraries.document_store.values import ValueKind

A, B = field("a"), field("b")
N = Aggregate("n", "count")
GENERATED = ["auto", "generated-rows", "generated-columns"]


def test_random_plans_over_random_documents():
    runs(75)()


def test_texts_are_the_same_without_the_kernels(monkeypatch):
    monkeypatch.setattr(coded, "_kernel", None)
    monkeypatch.setattr(arrow, "_take_texts", None)
    runs(25)()


def test_many_different_texts_are_not_coded():
    documents = [{"id": i, "a": f"text {i % 300}", "b": str(i % 3)} for i in range(900)]
    figures = (N, Aggregate("low", "min", A), Aggregate("users", "count_distinct", A))
    condition = Filter(Compare(A, ">", Constant("text 2")))
    snapshot = {"sizes": (450,), "columnar": (True,)}
    check(documents, Plan((condition, GroupBy((Named("b", B),), figures))), **snapshot)
    check(
        documents, Plan((condition, Project((Named("a", A), Named("n", Call("length", (A,))))), Limit(9))), **snapshot
    )
    check(documents, Plan((Filter(Compare(A, ">", B)), GroupBy((Named("a", A),), figures))), **snapshot)


# --- Fixed cases, each of which must fail for a planted fault below.

MIXED = [
    {"id": 0, "a": [{"b": 1, "t": "x"}, {"b": None}, {}], "n": 1},
    {"id": 1, "a": [], "n": 1.0},
    {"id": 2, "a": {"b": 5}, "n": True},
    {"id": 3, "a": [{"b": 2**53 + 1, "t": "y"}, {"b": 3, "t": "y"}], "n": None},
    {"id": 4, "n": -0.0},
    {"id": 5, "a": [{"b": -0.5, "t": "x"}, 7, [8], None], "n": 0.0},
    {"id": 6, "a": [{"b": math.nan, "t": "z"}], "n": math.nan},
    {"id": 7, "a": None, "n": float(2**53), "w": 2**40},
    {"id": 8, "a": [{"b": -1}], "n": -1.5, "w": 2**62},
]
ITEM = Unnest(("a",), "i")
CASES = {
    "nulls": Plan((ITEM, Filter(IsNull(field("b", "i"))), Project((Named("id", field("id")),)))),
    "groups": Plan((GroupBy((Named("of", field("n")),), (N,)),)),
    "owners": Plan((ITEM, GroupBy((Named("id", field("id")),), (N, Aggregate("low", "min", field("b", "i")))))),
    "two numbers": Plan((ITEM, Filter(Compare(field("b", "i"), ">", field("n"))), Count())),
    "unlike": Plan((ITEM, Filter(Not(Compare(field("b", "i"), "=", Constant(1)))), Count())),
    "any": Plan((Filter(AnyItem(("a",), "x", Compare(field("t", "x"), "=", Constant("x")))), Count())),
    "distinct": Plan((Unnest(("a",), "i", distinct=field("t", "i")), Count())),
    "sum": Plan((ITEM, GroupBy((), (Aggregate("s", "sum", field("b", "i")), Aggregate("m", "max", field("n")))))),
    "wide": Plan((GroupBy((), (Aggregate("s", "sum", field("w")),)),)),
}
SMALL = {"sizes": (9,), "columnar": (True,)}


@pytest.mark.parametrize("name", CASES)
def test_fixed_cases(name):
    check(MIXED, CASES[name])
    check(MIXED, CASES[name], **SMALL)


def test_sums_of_many_integers_that_are_exact_one_by_one():
    """A double represents each integer exactly, but not their sum."""
    documents = [{"id": i, "a": 2**53 - 1 - 2 * i, "b": i % 2} for i in range(50)]
    for keys in ((), (Named("b", B),)):
        check(documents, Plan((GroupBy(keys, (Aggregate("s", "sum", A), Aggregate("m", "avg", A))),)), **SMALL)


def test_groups_over_parts_of_few_values_and_of_many():
    """Keys with few values are coded per part, and counted that way if only counts are requested.

    Keys with many values, and doubles, are not. A query may combine both."""
    few = [{"id": i, "a": "xyz"[i % 3], "b": i % 5 - 2} for i in range(300)]
    many = [{"id": i, "a": f"text {i % 290}", "b": i * 10**9} for i in range(300, 600)]
    unlike = [{"id": i, "a": (None, True, 1.5, "x", i % 3)[i % 5], "b": -2 if i % 2 else "x"} for i in range(600, 900)]
    sums, twice = (N, Aggregate("s", "sum", field("id"))), (N, Aggregate("again", "count"))
    of_all = itertools.product(((), ("a",), ("b",), ("a", "b"), ("b", "a")), (sums, (N,)))
    for keys, figures in (*of_all, (("a",), twice), (("b", "a"), twice), (("b",), ()), (("a", "b"), ())):
        plan = Plan((GroupBy(tuple(Named(key, field(key)) for key in keys), figures),))
        check(few + many + unlike, plan, sizes=(300, 300, 300), columnar=(True, True, True))
        check(few + many, plan, sizes=(300, 300), columnar=(True, False))
        check(few + few[:100], plan, sizes=(150, 250), columnar=(True, True))


FAULTS = {
    "null is as missing": (View, "is_null", lambda view, level: np.zeros(len(view), bool)),
    "missing is as null": (View, "is_null", lambda view, level: view.levels == level - 1),
    "items belong to the first": (View, "parents", lambda view, depth: np.zeros(len(view), np.int64)),
    "empty arrays have an item": (View, "reaches", lambda view, level: view.levels >= level - 1),
    "doubles are rounded to integers": (vector, "_signs", lambda i, d: np.sign(i - np.nan_to_num(d).astype(np.int64))),
    "zeros are one group": (
        codes,
        "_hashed",
        lambda values: np.unique(values & (2**63 - 1), return_inverse=True)[::-1],
    ),
    "minus zero is the greater": (aggregates, "ranks", lambda kind, values: np.nan_to_num(np.abs(values)).astype(int)),
    "distinct over all documents": (unnesting, "codes_of", lambda v: codes.Codes(np.zeros(v.count, np.int64), 1, v)),
    "few values are one": (result_collection, "codes_if_few", lambda v: codes.Codes(np.zeros(v.count, np.int64), 1, v)),
    "tuples counted before count once": (
        *(result_collection, "counted"),
        lambda count, keys: (found := codes.counted(count, keys)) and (found[0], np.ones(len(found[1]), int)),
    ),
    "sums forget the halves": (aggregates, "integer_sums", lambda g, v, n: np.bincount(g, v & 0xFFFF, n).astype(int)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name, monkeypatch):
    owner, attribute, fault = FAULTS[name]
    monkeypatch.setattr(owner, attribute, fault)
    found = 0
    for plan in CASES.values():
        try:
            check(MIXED, plan, ways=["generated-columns"], **SMALL)
        except (AssertionError, CorruptError, IndexError, ValueError, TypeError):
            found += 1
    assert found


# --- What is written and what is read.


def hostile():
    documents = [{"id": i, name: {name: [i, name]}, "other": i} for i, name in enumerate(HOSTILE)]
    for name in HOSTILE:
        item, unnested = Field((), name), Unnest((name, name), name)
        inner = Compare(Field((), f"{name} too"), "=", Constant(name))
        condition = Not(And((AnyItem((name, name), f"{name} too", inner), Prefix(A, name))))
        yield documents, Plan((Filter(condition), unnested, GroupBy((Named(name, item),))))
        yield documents, Plan((unnested, Filter(In(item, (name, "x"))), Project((Named(name, item),))))


def test_names_of_documents_never_enter_generated_source():
    for documents, plan in hostile():
        check(documents, plan)
        snapshot = MemorySnapshot(documents, **SMALL)
        by_columns = function_for(plan, to_json(plan), Places(snapshot.found[0].schema))
        by_rows = rows.RowLoop(plan, to_json(plan))._function
        for function in (by_columns, by_rows):
            assert function is not None
            assert not any(name in function.__doc__ for name in (*HOSTILE[:3], "other"))


def test_the_whole_document_is_a_value():
    whole = Field(())
    documents = [{"id": 1, "a": 5}, {"id": 2, "a": [1, {"b": 2}], "c": None}]
    check(documents, Plan((Project((Named("doc", whole), Named("a", A))),)))
    check(documents, Plan((Unnest(("a",), "i"), GroupBy((Named("doc", whole), Named("b", field("b", "i"))), (N,)))))


def test_names_that_no_struct_takes_meet_names_of_structs():
    documents = [{"id": i, 'a"b': i, "f0": {"f1": [i], 'f"0': 2}, "f1": "x"} for i in range(3)]
    fields = [('a"b',), ("f0",), ("f1",), ("f0", 'f"0'), ("f0", "f1")]
    conditions = [Compare(Field(path), "=", Constant(1)) for path in fields]
    check(documents, Plan((Filter(Or(tuple(conditions))), Count())))
    check(documents, Plan((Project(tuple(Named(str(path), Field(path)) for path in fields)),)))


MANY = 1_200
"""Twice the nesting that Python compiles."""
LONG = {
    "integers": In(A, tuple(range(MANY))),
    "texts": In(A, tuple(map(str, range(MANY)))),
    "both": In(A, tuple(value for i in range(MANY // 2) for value in (i, str(i)))),
    "and": And(tuple(Compare(A, "!=", Constant(i)) for i in range(MANY))),
    "or": Or(tuple(Compare(A, ">", Constant(i + 0.5)) for i in range(MANY))),
    "unlike tests": Or(tuple(Compare(A, "=", Constant(i)) if i % 2 else IsNull(field("b")) for i in range(MANY))),
}


@pytest.mark.parametrize("name", LONG)
def test_conditions_of_many_parts(name):
    documents = [{"id": i, "a": value} for i, value in enumerate((1, 2.0, "7", "x", MANY - 1, MANY, None, [1], -1.5))]
    for condition in (LONG[name], Not(LONG[name])):
        plan = Plan((Filter(condition), Project((Named("id", field("id")),))))
        # Columns in one part only, because each part is compiled separately.
        check(documents, plan, sizes=(5, 4), columnar=(True, False))


def test_long_conditions_within_each_other():
    condition = Compare(A, "=", Constant(1))
    for depth in range(30):
        parts = tuple(Compare(B, "!=", Constant(f"{depth} {place}")) for place in range(40))
        condition = Or((Compare(A, "=", Constant(depth)), And((*parts, condition))))
    check([{"id": i, "a": i * 7, "b": "x"} for i in range(9)], Plan((Filter(condition), Count())))


def test_as_many_unnests_as_are_allowed():
    documents = [{"id": 1, "a": [[[1, 2], [3]]], "b": [1]}]
    steps = [Unnest(("a",), "i0"), Unnest((), "i1", of="i0"), Unnest((), "i2", of="i1")]
    steps += [Unnest(("b",), f"i{n}") for n in range(3, MOST_UNNESTS)]
    condition = Filter(AnyItem(("b",), "x", Compare(Field((), "x"), "<", Field((), "i2"))))
    check(documents, Plan((*steps, condition, GroupBy((Named("k", Field((), "i2")),), (N,)))))


def test_plans_that_python_calls_equal_are_compiled_apart():
    documents = [{"id": i, "a": value} for i, value in enumerate([1, 1.0, True, 0.0, -0.0])]
    for value in (1, 1.0, True, 0.0, -0.0, False):
        check(
            documents,
            Plan((Filter(Compare(A, "=", Constant(value))), Project((Named("a", A), Named("c", Constant(value)))))),
        )


def wide(count=40):
    return [{"id": i, "a": i, "b": str(i % 3), **{f"f{k}": {"x": k} for k in range(30)}} for i in range(count)]


def test_columns_read_what_the_plan_names_and_counting_reads_keys():
    snapshot = MemorySnapshot(wide(), sizes=(20,), columnar=(True,))
    plan = Plan((Filter(Compare(A, ">=", Constant(30))), GroupBy((Named("b", B),), (N,))))
    numbers = {str(leaf.path): leaf.number for leaf in snapshot.found[0].schema.leaves}
    assert [row["n"] for row in execute(snapshot, plan)] == [4, 3, 3]
    first, last = snapshot.found
    assert first.columns_read == {numbers["a"]}
    assert last.columns_read == {numbers["a"], numbers["b"]}
    snapshot = MemorySnapshot(wide())
    assert execute(snapshot, Plan((Count(),))) == [{"count": 40}]
    assert not any(part.columns_read or part.rows_read for part in snapshot.found)


def test_what_the_schema_decides_is_not_read():
    snapshot = MemorySnapshot(wide(), columnar=(True,))
    for condition in (Compare(A, "=", Constant("1")), Prefix(A, ""), Compare(field("z"), "!=", Constant(1))):
        assert execute(snapshot, Plan((Filter(condition), Count()))) == [{"count": 0}]
    assert not any(part.columns_read for part in snapshot.found)


@pytest.mark.parametrize(
    ("condition", "asked"),
    [
        (Compare(A, ">", Constant(2.5)), (3, None)),
        (Compare(Constant(7), ">=", A), (None, 7)),
        (And((Compare(B, "!=", Constant("1")), Compare(A, "=", Constant(3)))), (3, 3)),
        (In(B, ("2", "1")), ("1", "2")),
    ],
)
def test_prefixes_spare_columns_and_only_what_must_hold_is_asked(condition, asked):
    snapshot = MemorySnapshot(wide(), sizes=(20,), columnar=(True,))
    seen = []
    for part in snapshot.found:
        part.may_match = lambda number, low, high: seen.append((low, high))
    assert execute(snapshot, Plan((Filter(condition), Count()))) == [{"count": 0}]
    assert seen == [asked, asked]
    assert not any(part.columns_read for part in snapshot.found)
    seen.clear()
    execute(snapshot, Plan((Filter(Not(condition)), Count())))
    assert seen == []


def test_an_index_gives_the_keys_of_few_documents_and_the_filter_is_applied_still():
    asked, documents = [], wide()

    class Indexed(MemorySnapshot):
        def index_keys(self, path, low, high, most):
            asked.append((path, low, high))
            return np.array([3, 4, 5]) if path == "a" else None

        def parts(self, keys=None):
            found = documents if keys is None else [documents[key] for key in keys.tolist()]
            return iter(MemorySnapshot(found).found)

    plan = Plan(
        (Filter(And((Compare(B, "=", Constant("1")), Compare(A, "<", Constant(5))))), Project((Named("a", A),)))
    )
    assert execute(Indexed(documents), plan) == [{"a": 4}]
    assert asked == [("b", "1", "1"), ("a", None, 5)]
    assert execute(Indexed(documents), plan, use_indexes=False) == [{"a": 1}, {"a": 4}]


def test_many_tuples_are_grouped_in_pieces(monkeypatch):
    monkeypatch.setattr(result_collection, "MOST_TUPLES", 3)
    figures = [Aggregate(f, f, A) for f in ("count", "sum", "min", "max", "avg", "count_distinct")]
    values = [1, 1.5, "x", None, 2**62, -1, math.nan, 1, True, math.inf, b"", [1], 2, 0.1]
    documents = [{"id": i, "a": value, "b": i % 2} for i, value in enumerate(values * 2)]
    for keys in ((), (Named("b", B),)):
        check(documents, Plan((GroupBy(keys, tuple(figures)), TopK((Order("count"),)))))
        simple = [document for document in documents if isinstance(document["a"], int | float)]
        check(simple, Plan((GroupBy(keys, tuple(figures)),)))


def test_text_keys_order_rows_of_all_parts():
    documents = [{"id": key, "a": i} for i, key in enumerate(["", "a", "b", "é", "\U0001f600"])]
    plan = Plan((Project((Named("a", A),)),))
    for way in WAYS:
        snapshot = MemorySnapshot(documents, sizes=(2,), kind=ValueKind.TEXT)
        assert [row["a"] for row in execute(snapshot, plan, way)] == [0, 1, 2, 3, 4]


def test_columns_of_hostile_bytes_end_in_an_error():
    snapshot = MemorySnapshot([{"id": i, "t": "xy", "l": [i]} for i in range(4)], **SMALL)
    (part,) = snapshot.found
    plans = [
        Plan((GroupBy((Named("t", field("t")),)),)),
        Plan((Unnest(("l",), "i"), GroupBy((Named("t", field("", "i")),)))),
    ]
    honest = part.columns

    def planted(change):
        part.columns = lambda numbers: {n: change(column) for n, column in honest(numbers).items()}
        return plans

    def not_text(column):
        if column.leaf.kind is ValueKind.TEXT:
            data = column.values.data.copy()
            data[0] = 0xFF
            return Column(column.leaf, column.levels, Texts(column.values.offsets, data))
        return column

    def lacks_one(column):
        values = column.values
        less = Texts(values.offsets[:-1], values.data) if isinstance(values, Texts) else values[:-1]
        return Column(column.leaf, column.levels, less)

    for plan in planted(lacks_one):
        with pytest.raises(CorruptError):
            execute(snapshot, plan)
    with pytest.raises(CorruptError):
        execute(snapshot, planted(not_text)[0])


def test_unknown_ways_are_refused():
    with pytest.raises(QueryError, match="allowed are auto, rows"):
        execute(MemorySnapshot([]), Plan((Count(),)), "fast")


def test_nothing_stored_has_answers_too():
    for way in WAYS:
        assert execute(MemorySnapshot([]), CASES["sum"], way) == [{"s": None, "m": None}]
        assert execute(MemorySnapshot([]), CASES["nulls"], way) == []
