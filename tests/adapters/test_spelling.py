"""Names with parameters are parsed as written, or refused."""

from __future__ import annotations

import pytest

from adapters.errors import SpellingError
from adapters.spelling import parse, spell


@pytest.mark.parametrize(
    ("spelled", "name", "parameters"),
    [
        ("csv", "csv", {}),
        (" hdf5-table[codec=blosc:zstd, level = 1] ", "hdf5-table", {"codec": "blosc:zstd", "level": "1"}),
        ("excel[save=a=b]", "excel", {"save": "a=b"}),
    ],
)
def test_a_name_is_taken_apart_in_the_order_of_its_text(spelled: str, name: str, parameters: dict[str, str]) -> None:
    found = parse(spelled)
    assert found == (name, parameters)
    assert list(found[1]) == list(parameters)
    assert parse(spell(*found)) == found


@pytest.mark.parametrize(
    ("spelled", "said"),
    [
        ("", "a name is"),
        ("CSV", "a name is"),
        ("-csv", "a name is"),
        ("csv[", "one pair of brackets"),
        ("csv[a=1]x", "one pair of brackets"),
        ("csv[a=[1]]", "one pair of brackets"),
        ("csv[]", "is not of the form key=value"),
        ("csv[a]", "is not of the form key=value"),
        ("csv[a=]", "is not of the form key=value"),
        ("csv[A=1]", "is not of the form key=value"),
        ("csv[a=1,]", "is not of the form key=value"),
        ("csv[a=1,b=2,a=1]", "'a' is given twice"),
        ("csv[a=1,a=2]", "'a' is given twice"),
    ],
)
def test_what_is_written_otherwise_is_refused(spelled: str, said: str) -> None:
    with pytest.raises(SpellingError, match=said):
        parse(spelled)


def test_booleans_are_spelled_in_small_letters() -> None:
    assert spell("synthetic", {"int": 5, "nulls": True}) == "synthetic[int=5,nulls=true]"
    assert spell("core", {}) == "core"
