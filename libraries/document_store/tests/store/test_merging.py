"""Merges during flushes: the maximum number of files."""

import threading

import pytest

from libraries.document_store.layouts import LAYOUTS
from libraries.document_store.store import DocumentStore
from libraries.document_store.tree import background_merge
from libraries.document_store.tree.policy import MOST_COMPONENTS


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_merge_without_the_oldest_component_keeps_deletions(tmp_path, layout):
    with DocumentStore.open(tmp_path, layout=layout, sync="none") as store:
        store.upsert([{"id": key, "a": f"text {key * 7919}"} for key in range(2_000)])
        store.flush()
        store.upsert([{"id": 1, "a": "new"}])
        store.flush()
        store.delete([3])
        store.flush()
        store.wait_for_merges()
        assert store.stats().components == 2
        assert store.get_many([1, 2, 3]) == [{"id": 1, "a": "new"}, {"id": 2, "a": "text 15838"}, None]
        assert store.count() == 1_999


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_newest_of_many_versions_stays(tmp_path, layout):
    with DocumentStore.open(tmp_path, layout=layout, sync="none") as store:
        for version in range(3):
            store.upsert([{"id": key, "a": version} for key in range(500)])
            store.flush()
        store.wait_for_merges()
        assert store.stats().components == 1
        assert {found["a"] for found in store.scan()} == {2}


def test_a_flush_waits_where_an_index_has_too_many_files(tmp_path, monkeypatch):
    """Flushes are faster than merges of documents, which have priority: one is always due."""
    merge, flushed, most = background_merge.layouts.merge_components, threading.Condition(), 0
    flushes = 0

    def slow(*arguments):
        begun = flushes
        with flushed:
            flushed.wait_for(lambda: flushes > begun + 1, timeout=0.1)
        return merge(*arguments)

    monkeypatch.setattr(background_merge.layouts, "merge_components", slow)
    with DocumentStore.open(tmp_path, layout="open") as store:
        store.index("a")
        for number in range(30):
            store.upsert([{"id": key, "a": number} for key in range(5)])
            store.flush()
            most = max(most, store.stats().index_files)
            with flushed:
                flushes = number
                flushed.notify_all()
        assert most <= MOST_COMPONENTS
        assert store.get(3) == {"id": 3, "a": 29}
