"""A few of the mutations of which `fuzzing.py` makes thousands."""

from libraries.document_store.tests.layouts.fuzzing import fuzz


def test_mutated_components_end_in_an_error_or_in_documents():
    refused, read = fuzz(900, seed=7)
    assert refused > 600
    assert read > 0
