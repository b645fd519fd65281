"""Warnings about column names that are easily confused."""

from __future__ import annotations

import pytest

from data_generator.imported.tables.table_types import name_remarks


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["ID", "x", "id"], "differ only in upper and lower case: 'ID' and 'id'\n"),
        (["STRASSE", "straße"], "case: 'STRASSE' and 'straße'\n"),
        ([f"{case}{number}" for number in range(5) for case in "aA"], "'a2' and 'A2' and 2 more\n"),
        ([" x", "x"], "begin or end with white space, which is kept: ' x'\n"),
        (["x\t", "\u00a0y"], r"'x\t', '\xa0y'"),
    ],
)
def test_names_that_are_easily_confused_are_named(names: list[str], said: str) -> None:
    (remark,) = name_remarks(names)
    assert said in remark
    assert remark.count("\n") == 1


@pytest.mark.parametrize("names", [["a", "b"], ["", "a b", "'quoted'"], []])
def test_other_names_need_no_remark(names: list[str]) -> None:
    assert name_remarks(names) == []
