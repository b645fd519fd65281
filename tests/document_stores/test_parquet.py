"""Documents in Parquet keep the contract, as columns and as VARIANT."""

import pytest

from document_stores.shared.structure import array_levels
from tests.contracts.documents import DocumentStoreContract


class TestNestedByPyarrow(DocumentStoreContract):
    variant = "parquet-nested[engine=pyarrow,codec=zstd]"


@pytest.mark.slow
class TestNestedByDuckdb(DocumentStoreContract):
    variant = "parquet-nested[engine=duckdb]"


class TestVariant(DocumentStoreContract):
    variant = "parquet-variant[engine=duckdb,codec=zstd]"


@pytest.mark.parametrize(
    ("value", "levels"),
    [
        (1, 0),
        ({"a": 1, "b": {}}, 0),
        ([], 1),
        ({"a": [], "b": [[1], []]}, 2),
        ([1, [], [[2]]], 3),
        ([[{"a": [[[1]]]}]], 3),
        ([{"a": 1}, [[[]]]], 4),
        ({"a": ["BIGINT"], "b": [{"c": [["VARCHAR"]]}]}, 2),
    ],
)
def test_arrays_within_each_other_are_counted_in_all_items(value, levels):
    assert array_levels(value) == levels
