"""The record of dropped nulls and empty objects."""

from __future__ import annotations

import msgspec
import pytest

from adapters.errors import AdapterError
from document_stores.shared import dropped_paths
from document_stores.shared.dropped_paths import DroppedPaths


def recorded(*documents: dict[str, object]) -> DroppedPaths:
    """Return the record of documents, after it was written and read."""
    found = DroppedPaths()
    found.add(b"".join(msgspec.json.encode(document) + b"\n" for document in documents))
    return DroppedPaths.of_json(found.json())


def test_nulls_and_empty_objects_are_recorded_by_their_paths() -> None:
    found = recorded({"a": None, "b": {"c": {}, "d": 1}}, {"e": {"f": {"g": None}}, "h": [None, {"i": None}]})
    assert [path for path in ("a", "b", "e", "h", "i") if found.hides_null((path,))] == ["a", "e"]
    assert [path for path in ("a", "b", "e", "h", "i") if found.hides_empty((path,))] == ["e"]
    assert found.hides_empty(("b", "c"))
    assert not found.hides_null(("b", "d"))
    assert found.hides_empty(("e", "f"))
    assert not found.hides_empty(("e", "f", "g"))
    assert found.hides_null(("e", "f", "g"))


def test_texts_that_look_like_nulls_are_not_recorded() -> None:
    assert recorded({"a": '{"b": null, "c": {}}'}).json() == "[[],[]]"


def test_too_many_paths_count_as_every_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dropped_paths, "MOST_PATHS", 3)
    found = recorded(*({f"a{number}": None} for number in range(3)))
    assert not found.hides_null(("b",))
    found = recorded(*({f"a{number}": None} for number in range(9)))
    assert found.hides_null(("b",))
    assert found.hides_empty(("b",))
    assert len(msgspec.json.decode(found.json())[0]) == 4


def test_a_damaged_record_is_an_error() -> None:
    with pytest.raises(AdapterError, match="cannot be read"):
        DroppedPaths.of_json("nothing")
