"""Queries over stores with replaced, deleted, flushed and unflushed documents, in all layouts and by all ways."""

import pytest

from libraries.document_queries.plan import Plan, field
from libraries.document_queries.reference import run_over_documents
from libraries.document_queries.steps import (
    Aggregate,
    And,
    AnyItem,
    Compare,
    Constant,
    Count,
    Filter,
    GroupBy,
    In,
    IsNull,
    Named,
    Order,
    Project,
    TopK,
    Unnest,
)
from libraries.document_store.queries.executor import WAYS, execute
from libraries.document_store.snapshot import Snapshot
from libraries.document_store.store import DocumentStore
from libraries.document_store.tests.queries.fuzz import told

AGE, CITY = field("age"), field("home.city")
PLANS = {
    "count": Plan((Count(),)),
    "groups": Plan((GroupBy((Named("city", CITY),), (Aggregate("n", "count"), Aggregate("s", "sum", AGE))),)),
    "range": Plan((Filter(And((Compare(AGE, ">=", Constant(20)), Compare(AGE, "<", Constant(24))))), Count())),
    "list": Plan((Filter(In(AGE, (3, 7.5, "x"))), Count())),
    "items": Plan((Unnest(("tags",), "t"), GroupBy((Named("t", field("", "t")),), (Aggregate("n", "count"),)))),
    "any": Plan((Filter(AnyItem(("tags",), "t", Compare(field("", "t"), "=", Constant("x3")))), Count())),
    "top": Plan((Project((Named("id", field("id")), Named("age", AGE))), TopK((Order("age", descending=True),), 7))),
    "documents": Plan((Filter(IsNull(AGE)),)),
}


def document(key, version):
    """Make a document whose fields change their type with the version."""
    found = {"id": key, "home": {"city": f"c{key % 5}"}, "tags": [f"x{key % 7}", version]}
    if version % 2:
        found["home"] = f"c{key % 5}"
    if key % 11:
        found["age"] = None if key % 13 == 0 else key % 50 if version % 3 else key % 50 + 0.5
    return found


@pytest.mark.parametrize("layout", ["amax", "vector", "open"])
def test_all_ways_see_what_the_store_holds(layout, tmp_path):
    expected = {}
    with DocumentStore.open(tmp_path / "store", layout=layout, sync="none") as store:
        store.index("age")
        for version in range(4):
            documents = [document(key, version) for key in range(version * 60, version * 60 + 150)]
            store.upsert(documents)
            expected.update({found["id"]: found for found in documents})
            gone = list(range(version * 70, version * 70 + 40, 3))
            store.delete(gone)
            for key in gone:
                expected.pop(key, None)
            if version < 3:
                store.flush()
        store.wait_for_merges()
        with store.snapshot() as snapshot:
            for name, plan in PLANS.items():
                right = told(run_over_documents(expected.values(), plan))
                for way in WAYS:
                    assert told(execute(snapshot, plan, way)) == right, (name, way)
                assert told(execute(snapshot, plan, use_indexes=False)) == right, name
                assert right


def test_one_wide_document_slows_no_question_about_other_fields(tmp_path):
    """Values beyond the schema's limit are read only if their fields may be needed; other plans stay with columns."""
    plan = Plan((GroupBy((Named("city", CITY),), (Aggregate("n", "count"),)),))
    of_rest = Plan((Filter(Compare(field("late"), "=", Constant("x"))), Count()))
    documents = [{"id": key, "home": {"city": f"c{key % 5}"}, "text": f"{key} " * 50} for key in range(2_000)]
    wide = {"id": 2_000, "home": {"city": "c0"}, **{f"name {number}": number for number in range(4_100)}, "late": "x"}
    read = {}
    with DocumentStore.open(tmp_path, sync="none", compression="none") as store:
        store.upsert(documents)
        for extra in ([], [wide]):
            store.upsert(extra)
            store.flush()
            store.wait_for_merges()
            expected = [*documents, *extra]
            with store.snapshot() as snapshot:
                for asked in (plan, of_rest):
                    right = sorted(told(run_over_documents(expected, asked)))
                    for way in WAYS:
                        assert sorted(told(execute(snapshot, asked, way))) == right, way
            before = store.stats().bytes_read
            store.query(plan)
            read[len(extra)] = store.stats().bytes_read - before
        assert store.stats().columns == 4_001
        assert read[1] < 0.5 * store.stats().component_bytes


@pytest.mark.parametrize("layout", ["amax", "vector", "open"])
def test_a_range_with_two_ends_is_looked_up_once(layout, tmp_path, monkeypatch):
    """Two half-open ranges would be walked one after the other, and each may hold half of all documents."""
    asked = []
    keys_of = Snapshot.index_keys
    monkeypatch.setattr(
        Snapshot, "index_keys", lambda self, *args: asked.append((args, keys_of(self, *args))) or asked[-1][1]
    )
    with DocumentStore.open(tmp_path, layout=layout, sync="none") as store:
        store.index("age")
        store.upsert([{"id": key, "age": key} for key in range(2_000)])
        plan = Plan((Filter(And((Compare(AGE, ">=", Constant(500)), Compare(AGE, "<", Constant(520))))), Count()))
        assert store.query(plan) == [{"count": 20}]
        (((path, low, high, most), keys),) = asked
        assert (path, low, high) == ("age", 500, 520)
        assert len(keys) == 21 <= most


@pytest.mark.parametrize("layout", ["amax", "open"])
def test_an_index_that_tells_of_too_many_is_left_soon(layout, tmp_path):
    """Otherwise a query for most documents would decode, sort and discard an index of all."""
    with DocumentStore.open(tmp_path, layout=layout, compression="none", sync="none") as store:
        store.index("age")
        store.upsert([{"id": key, "age": key} for key in range(30_000)])
        store.flush()
        with store.snapshot() as snapshot:
            before = store.stats().bytes_read
            assert snapshot.index_keys("age", 100, None, most=3_000) is None
            assert store.stats().bytes_read == before, "the footer shows that there are 28 blocks"
            assert snapshot.index_keys("age", 100, 5_000, most=4_900) is None
            assert snapshot.index_keys("age", 100, 5_000, most=4_901).tolist() == list(range(100, 5_001))
            assert store.stats().bytes_read > before


def test_bounds_of_unlike_kinds_are_met_by_nothing_with_an_index_too(tmp_path):
    """A boolean is not a number here, although True equals 1 in Python."""
    plan = Plan((Filter(And((Compare(AGE, ">=", Constant(False)), Compare(AGE, "<=", Constant(5))))), Count()))
    with DocumentStore.open(tmp_path, sync="none") as store:
        store.upsert([{"id": 1, "age": True}, {"id": 2, "age": 5}])
        for _ in range(2):
            assert store.query(plan) == [{"count": 0}]
            store.index("age")


def test_a_store_says_in_which_index_it_would_look(tmp_path):
    def narrow(path):
        return Plan((Filter(Compare(field(path), "=", Constant(7))), Count()))

    with DocumentStore.open(tmp_path / "store", sync="none") as store:
        store.upsert([{"id": number, "a.b": number, "same": 7} for number in range(200)])
        assert store.index_of(narrow("a\\.b")) is None
        store.index("a\\.b")
        store.index("same")
        assert store.index_of(narrow("a\\.b")) == "a\\.b"
        assert store.index_of(narrow("same")) is None, "all documents have this value"
        assert store.index_of(Plan((Count(),))) is None
