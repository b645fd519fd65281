"""Answers as Arrow tables equal answers as Python rows, and filtered scans equal filtered documents."""

import json
import random
import warnings

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libraries.document_queries.errors import QueryError
from libraries.document_queries.interpreter import outcome
from libraries.document_queries.plan import Plan, field
from libraries.document_queries.steps import (
    Aggregate,
    And,
    Compare,
    Constant,
    Count,
    Exists,
    Field,
    Filter,
    GroupBy,
    Limit,
    Named,
    Not,
    Or,
    Order,
    Project,
    TopK,
    Unnest,
)
from libraries.document_store.store import DocumentStore
from libraries.document_store.table import array_of
from libraries.document_store.tests.random_documents import documents
from libraries.document_store.values import same

LAYOUTS = ("amax", "vector", "open")
PATHS = ("id", "a", "b", "a.b", "c", "é")
CONDITIONS = (
    Compare(field("a"), ">", Constant(1)),
    Not(Compare(field("a"), "=", Constant("x"))),
    Or((Exists(field("b")), Compare(field("a.b"), "<=", Constant(0.5)))),
    And((Compare(field("id"), ">=", Constant(1)), Compare(field("id"), "<", Constant(4)))),
)


def expected_column(found, path):
    values = []
    for document in found:
        value = document
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        values.append(value)
    return array_of(values, set(), path).to_pylist()


@given(found=documents(), condition=st.sampled_from(CONDITIONS), flushed=st.booleans(), layout=st.sampled_from(LAYOUTS))
@settings(max_examples=60, deadline=None)
def test_tables_and_filtered_scans_hold_what_the_documents_hold(found, condition, flushed, layout, tmp_path_factory):
    chosen = [document for document in found if outcome(condition, {"": document}) is True]
    with DocumentStore.open(tmp_path_factory.mktemp("store") / "s", layout=layout, sync="none") as store:
        store.upsert(found[::2])
        if flushed:
            store.flush()
        store.upsert(found[1::2])
        assert same(sorted(store.scan(where=condition), key=lambda each: each["id"]), chosen)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for where, wanted in ((None, found), (condition, chosen)):
                table = store.to_arrow(PATHS, where=where)
                for path in PATHS:
                    assert same(table.column(path).to_pylist(), expected_column(wanted, path)), path


@pytest.fixture
def store(tmp_path):
    with DocumentStore.open(tmp_path / "store", sync="none") as opened:
        opened.upsert([{"id": key, "kind": f"k{key % 3}", "n": key, "tags": [key, str(key)]} for key in range(50)])
        opened.flush()
        opened.upsert([{"id": key, "kind": None} for key in range(20, 30)])
        yield opened


KIND, N = field("kind"), field("n")
BY_KIND = GroupBy((Named("kind", KIND),), (Aggregate("n", "count"), Aggregate("most", "max", N)))


@pytest.mark.parametrize(
    "steps",
    [
        (Project((Named("id", field("id")), Named("n", N))),),
        (Filter(Compare(N, "<", Constant(7))), Project((Named("n", N), Named("kind", KIND))), Limit(3)),
        (Project((Named("n", N),)), TopK((Order("n", descending=True),), 4)),
        (BY_KIND,),
        (BY_KIND, TopK((Order("n"),), 2)),
        (Count("n"),),
        (Filter(Compare(N, "<", Constant(0))), Project((Named("n", N),))),
    ],
)
def test_a_table_has_the_rows_of_the_answer(store, steps):
    rows = store.query(Plan(steps))
    table = store.query(Plan(steps), as_arrow=True)
    assert table.to_pylist() == [{name: row.get(name) for name in table.column_names} for row in rows]


def test_items_of_arrays_become_columns(store):
    plan = Plan((Unnest(("tags",), "tag"), Project((Named("tag", Field((), "tag")), Named("tags", field("tags"))))))
    with pytest.warns(UserWarning, match="several types"):
        table = store.query(plan, as_arrow=True)
    assert [json.loads(text) for text in table.column("tag").to_pylist()] == [row["tag"] for row in store.query(plan)]


def test_what_has_no_columns_or_another_way_is_refused(store):
    with pytest.raises(QueryError, match="needs columns: add a Project, GroupBy or Count, or use to_arrow"):
        store.query(Plan((Filter(Compare(N, "<", Constant(7))),)), as_arrow=True)
    with pytest.raises(QueryError, match="way must be 'auto'"):
        store.query(Plan((Count(),)), "rows", as_arrow=True)
    with pytest.raises(QueryError, match="paths must name at least one field"):
        store.to_arrow([])


def test_parts_outside_the_range_and_other_columns_are_not_read(tmp_path):
    with DocumentStore.open(tmp_path / "store", sync="none", merges="late", cache_bytes=0) as store:
        for start in range(0, 8000, 2000):
            keys = range(start, start + 2000)
            store.upsert([{"id": key, "n": key, "t": random.Random(key).randbytes(50).hex()} for key in keys])
            store.flush()
        few = Compare(N, "<", Constant(10))

        def read(call):
            before = store.stats().bytes_read
            result = call()
            return result, store.stats().bytes_read - before

        everything, all_bytes = read(lambda: list(store.scan()))
        found, some_bytes = read(lambda: list(store.scan(where=few)))
        assert found == everything[:10]
        assert some_bytes < all_bytes / 2
        table, table_bytes = read(lambda: store.to_arrow(["n"], where=few))
        assert table == pa.table({"n": list(range(10))})
        assert table_bytes < some_bytes


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("key", [int, lambda number: f"k{number:04}"])
def test_rows_are_in_key_order_across_components(layout, key, tmp_path):
    with DocumentStore.open(tmp_path / "store", layout=layout, sync="none", merges="late") as store:
        for start in (2, 0, 1):
            store.upsert([{"id": key(number), "t": [number]} for number in range(start, 300, 3)])
            if start:
                store.flush()
        keys = [key(number) for number in range(300)]
        assert store.to_arrow(["id"]).column("id").to_pylist() == keys
        for rows in (0, 1, 7, 299, 300, 400):
            plan = Plan((Project((Named("id", field("id")), Named("t", field("t")))), Limit(rows)))
            table = store.query(plan, as_arrow=True)
            assert table.column("id").to_pylist() == keys[:rows]
            assert table.column("t").to_pylist() == [[number] for number in range(300)][:rows]
        where = Compare(field("id"), ">=", Constant(key(250)))
        plan = Plan((Filter(where), Project((Named("id", field("id")),)), Limit(3)))
        assert store.query(plan, as_arrow=True).column("id").to_pylist() == keys[250:253]
