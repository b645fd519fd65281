"""Documents in Parquet keep the contract, as columns and as VARIANT."""

import msgspec
import pyarrow as pa
import pytest

from adapters.errors import RefusedData
from document_stores.parquet_variant import _checked
from document_stores.shared.structure import MOST_ARRAY_LEVELS, array_levels
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


@pytest.mark.parametrize("before", [[], [1], ["a [ b"], [{"c": None}], [2.5, "x", 3]])
def test_variant_takes_arrays_within_each_other_to_so_many_levels(before):
    """Whatever precedes the next array: DuckDB takes twice as long for each level."""

    def lines(levels):
        value = []
        for _ in range(levels - 1):
            value = [*before, value]
        return iter([pa.array([msgspec.json.encode({"id": 1, "a": value}).decode()])])

    assert len(list(_checked(lines(MOST_ARRAY_LEVELS)))) == 1
    with pytest.raises(RefusedData, match=f"more than {MOST_ARRAY_LEVELS} levels"):
        list(_checked(lines(MOST_ARRAY_LEVELS + 1)))
