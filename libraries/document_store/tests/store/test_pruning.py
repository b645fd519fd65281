"""Prefixes and indexes change no answer: a newer version that does not match hides an older one."""

import random

import pytest

from libraries.document_queries import (
    Aggregate,
    Compare,
    Constant,
    Filter,
    GroupBy,
    Named,
    Plan,
    field,
    run_over_documents,
)
from libraries.document_store.layouts import LAYOUTS, ComponentOptions
from libraries.document_store.store import DocumentStore
from libraries.document_store.tree import leaf_scan

LOW, HIGH = 100, 120
PLAN = Plan(
    (
        Filter(Compare(field("number"), ">=", Constant(LOW))),
        Filter(Compare(field("number"), "<", Constant(HIGH))),
        GroupBy((Named("number", field("number")),), (Aggregate("count", "count"),)),
    )
)


def filled(folder, layout, index):
    """Return a store with versions in three components, the newest of most keys out of range, and its contents."""
    chance = random.Random(1)
    store = DocumentStore.open(folder, layout=layout)
    store._tree.workshop.options = ComponentOptions(leaf_records=20)
    if index:
        store.index("number")
    model = {}
    # Each generation is smaller than the previous one, so that tiering does not merge them.
    for keys, low, high in ((600, 90, 130), (200, 500, 900), (60, 90, 130)):
        documents = [{"id": key, "number": chance.randrange(low, high), "pad": "x" * 40} for key in range(keys)]
        store.upsert(documents)
        model.update({found["id"]: found for found in documents})
        store.flush()
        store.wait_for_merges()
    assert store.stats().components == 3
    return store, model


@pytest.mark.parametrize("way", ["rows", "columns", "generated-rows", "generated-columns"])
@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_answers_are_those_of_a_dict(tmp_path, layout, index, way):
    store, model = filled(tmp_path, layout, index)
    with store:
        assert store.query(PLAN, way) == run_over_documents(model.values(), PLAN)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_newer_leaf_hides_what_lies_far_behind_its_first_key(tmp_path, layout, monkeypatch):
    monkeypatch.setattr(leaf_scan, "LEAF_RECORDS", 20)
    with DocumentStore.open(tmp_path, layout=layout, sync="none") as store:
        store._tree.workshop.options = ComponentOptions(leaf_records=20)
        store.upsert([{"id": key, "number": key} for key in range(600)])
        store.flush()
        store.upsert([{"id": key, "number": -1} for key in (0, 500, 599)])
        store.flush()
        store.wait_for_merges()
        assert store.stats().components == 2
        assert sorted(found["id"] for found in store.scan() if found["number"] == -1) == [0, 500, 599]
        assert store.count() == 600


def test_pruning_a_leafs_keys_is_found_out(tmp_path, monkeypatch):
    store, model = filled(tmp_path, "amax", index=False)
    spans = leaf_scan._spans

    def of_leaves_that_match(component, age):
        (number,) = (leaf.number for leaf in component.schema.leaves if str(leaf.path) == "number")
        return [span for span in spans(component, age) if span.leaves[0].may_match(number, LOW, HIGH)]

    monkeypatch.setattr(leaf_scan, "_spans", of_leaves_that_match)
    with store:
        assert store.query(PLAN) != run_over_documents(model.values(), PLAN)


def test_prefixes_save_the_reading_of_columns(tmp_path):
    store, _ = filled(tmp_path, "amax", index=False)
    with store, store.snapshot() as snapshot:
        number = next(leaf.number for leaf in snapshot.schema.leaves if str(leaf.path) == "number")
        matching = [part.may_match(number, 600, 700) for part in snapshot.parts()]
    assert True in matching
    assert False in matching
