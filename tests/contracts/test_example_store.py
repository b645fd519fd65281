"""A third-party document store, found through an entry point, passes the contract. docs/adding.md links to the store.

This module also tests the functions with which the contract compares documents.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.document_store import DocumentLoss, first_difference, identical, parts
from adapters.errors import AdapterError, RefusedData
from adapters.losses import Cause
from adapters.registry import Entry, Registry
from document_stores.shared.json_losses import without_nulls
from tests.contracts.documents import DocumentStoreContract

EXAMPLE = Path(__file__).parent / "example"
PAGE = Path(__file__).parents[2] / "docs" / "adding.md"


class TestExampleStore(DocumentStoreContract):
    variant = "dbm-documents[engine=dbm]"

    @classmethod
    def built(cls) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(EXAMPLE))
            return Registry({}, "format_bench.document_stores", "store").build(cls.variant)

    @pytest.fixture(autouse=True, scope="class")
    def _installed(self, request: pytest.FixtureRequest) -> Iterator[None]:
        """Simulate `pip install example-store`, for this process and its children."""
        before = os.environ.get("PYTHONPATH")
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(EXAMPLE))
            patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(EXAMPLE), before])))
            request.cls.registry = Registry({}, "format_bench.document_stores", "store")
            yield

    def test_a_name_of_a_built_in_store_is_refused(self) -> None:
        taken = Registry({"dbm-documents": Entry("document_stores.bson:ENGINES")}, "format_bench.document_stores")
        with pytest.raises(AdapterError, match="that name is taken"):
            list(taken)


def test_the_page_links_the_example_and_names_its_group_of_entry_points() -> None:
    page = PAGE.read_text()
    assert "(../tests/contracts/example/example_store.py)" in page
    group = (EXAMPLE / "example_store-1.0.dist-info" / "entry_points.txt").read_text().splitlines()[0]
    assert f"`{group.strip('[]')}`" in page


# --- comparing documents --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b"),
    [(1, 1.0), (1, True), (0.0, -0.0), (None, 0), ("1", 1), (b"a", "a"), ([1], [1, 1]), ({"a": None}, {}), ([], {})],
)
def test_values_that_are_not_identical(a: Any, b: Any) -> None:
    assert not identical(a, b)
    assert not identical({"x": [a]}, {"x": [b]})
    assert identical({"x": [a], "y": 1}, {"y": 1, "x": [a]})


def test_nan_is_identical_to_nan() -> None:
    assert identical(float("nan"), float("nan"))


def test_parts_contain_the_reached_values_only() -> None:
    document = {"id": 1, "a": {"b": None, "c": [{"d": 1}]}, "e": 5}
    assert parts(document, [("a", "b")]) == {"a": {"b": None}}
    assert parts(document, [("a", "c", "d"), ("e", "f"), ("x",)]) == {}
    assert parts(document, [("a", "c"), ("e",)]) == {"a": {"c": [{"d": 1}]}, "e": 5}


def test_the_first_difference_is_described() -> None:
    stored = [{"id": 1, "a": 1}, {"id": 2}]
    assert first_difference(stored, stored[::-1]) is None
    for found, message in (
        ([{"id": 1, "a": 1}], "1 documents did not come back"),
        ([{"id": 1, "a": 1.0}, {"id": 2}], "the document of id 1 was"),
        ([*stored, {"id": 2}], "not stored, or twice"),
        ([{"id": 1, "a": 1}, {"id": "2"}], "not stored, or twice"),
        ([{"id": 1, "a": 1}, {"id": 2, "a": None}], "the document of id 2 was"),
    ):
        assert message in str(first_difference(stored, found))
    with pytest.raises(RefusedData, match="two documents have the key 2"):
        first_difference([*stored, {"id": 2}], stored)


def test_a_loss_covers_only_its_own_change() -> None:
    loss = DocumentLoss("nulls", "no value", Cause.FORMAT, frozenset({"missing"}), without_nulls)
    assert first_difference([{"id": 1}], [{"id": 1, "a": None}], [loss]) is None
    assert first_difference([{"id": 1}], [{"id": 1, "a": 0}], [loss]) is not None
