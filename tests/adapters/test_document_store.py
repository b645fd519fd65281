"""Documents: when two are identical, what paths reach, and which differences are found."""

from __future__ import annotations

import math
from typing import Any

import pytest

from adapters.document_store import first_difference, identical, parts
from adapters.errors import RefusedData

UNLIKE = [0, 0.0, -0.0, 1, 1.0, True, False, None, "", "0", b"", [], {}, [0], [0.0], {"a": 0}, {"a": None}, {"b": 0}]
"""No two of them are identical."""


@pytest.mark.parametrize("place", range(len(UNLIKE)))
def test_a_value_is_identical_to_itself_alone(place: int) -> None:
    found = [identical(UNLIKE[place], other) for other in UNLIKE]
    assert found == [number == place for number in range(len(UNLIKE))]


def test_nan_is_identical_to_itself_and_the_order_of_fields_means_nothing() -> None:
    assert identical([math.nan], [math.nan])
    assert identical({"a": 1, "b": [2]}, {"b": [2], "a": 1})
    assert not identical([1, 2], [2, 1])
    assert not identical([1], [1, 2])


def test_parts_are_what_paths_reach_and_nothing_else() -> None:
    document: Any = {"id": 1, "n": None, "a": {"n": None, "x": 2, "y": {}}, "l": [{"x": 3}], "t": "x"}
    reached = parts(document, [("n",), ("a", "n"), ("a", "y"), ("l", "x"), ("t", "x"), ("a", "z"), ("missing",)])
    assert reached == {"n": None, "a": {"n": None, "y": {}}}
    assert parts(document, [("b", "x")]) == {}
    assert parts(document, [("l",)]) == {"l": [{"x": 3}]}


STORED = [{"id": 1, "v": 0.0}, {"id": 2, "v": None}]


def test_documents_come_back_in_any_order() -> None:
    assert first_difference(STORED, STORED[::-1]) is None


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (STORED[:1], "1 documents did not come back, the first of id 2"),
        ([], "2 documents did not come back, the first of id 1"),
        ([*STORED, STORED[0]], "a document came back that was not stored, or twice: id 1"),
        ([*STORED, {"id": 3}], "a document came back that was not stored, or twice: id 3"),
        ([STORED[0], {"id": "2", "v": None}], "a document came back that was not stored, or twice: id '2'"),
        ([{"id": 1, "v": -0.0}, STORED[1]], "the document of id 1 was {'id': 1, 'v': 0.0}, came back"),
        ([STORED[0], {"id": 2}], "the document of id 2 was {'id': 2, 'v': None}, came back {'id': 2}"),
    ],
)
def test_the_first_difference_is_described(found: list[dict[str, Any]], said: str) -> None:
    assert str(first_difference(STORED, found)).startswith(said)


def test_documents_are_not_stored_under_one_key() -> None:
    with pytest.raises(RefusedData, match="two documents have the key 1"):
        first_difference([STORED[0], STORED[0]], STORED)
