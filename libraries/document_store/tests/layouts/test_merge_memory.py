"""A merge holds one column of each component and one encoded leaf: more columns of the same total size need no more."""

import pytest

from libraries.document_store.tests.layouts.merge_memory import peak_bytes


@pytest.mark.slow
def test_memory_does_not_grow_with_columns():
    few, leaf_bytes = peak_bytes(16, 250)
    many, _ = peak_bytes(933, 250)
    assert many <= 1.2 * few
    assert few < 8 * leaf_bytes + (5 << 20)
