"""Merges beside flushes: how many files there are at most."""

import threading

from libraries.document_store.store import DocumentStore
from libraries.document_store.tree import merging
from libraries.document_store.tree.policy import MOST_COMPONENTS


def test_a_flush_waits_where_an_index_has_too_many_files(tmp_path, monkeypatch):
    """Flushes are faster than merges of documents, which come first: there is always one due."""
    merge, flushed, most = merging.layouts.merge_components, threading.Condition(), 0
    flushes = 0

    def slow(*arguments):
        begun = flushes
        with flushed:
            flushed.wait_for(lambda: flushes > begun + 1, timeout=0.1)
        return merge(*arguments)

    monkeypatch.setattr(merging.layouts, "merge_components", slow)
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
