"""Any interleaving of writes, flushes, merges and reopenings equals a dict, and faulty stores are detected."""

import pytest

from libraries.document_store.layouts import LAYOUTS
from libraries.document_store.tests.store.machine import is_found_out, run
from libraries.document_store.tree import leaf_scan
from libraries.document_store.tree.leaf_scan import Span

EXAMPLES = 6
"""`make selfbench-documents` runs 200."""


@pytest.fixture(autouse=True)
def small_spans(monkeypatch):
    monkeypatch.setattr(leaf_scan, "LEAF_RECORDS", 20)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_interleaving_equals_a_dict(layout):
    run(layout, EXAMPLES)


def test_keys_of_newer_leaves_that_are_not_read_are_found_out(monkeypatch):
    keys = Span.keys

    def of_oldest_alone(self):
        found, gone = keys(self)
        return (found, gone) if self.age else (found[:1], gone[:1])

    monkeypatch.setattr(Span, "keys", of_oldest_alone)
    assert is_found_out()
