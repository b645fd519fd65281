"""A mismatch of columns names the first column that differs, in quotes, so that spaces are visible."""

from __future__ import annotations

import pytest

from bench_runner.worker.names import columns_differ


@pytest.mark.parametrize(
    ("expected", "got", "first"),
    [
        (["x", " id"], ["x", "id"], 'column 2 is "id" instead of " id"; expected "x", " id", came back "x", "id"'),
        (["x", "y"], ["x"], 'column 2 is none instead of "y"'),
        (["x"], ["x", "y"], 'column 2 is "y" instead of none'),
        (["x"], [], 'column 1 is none instead of "x"; expected "x", came back none'),
        (["0"], [0], 'column 1 is 0 instead of "0"'),
        (["a\nb"], ["a"], 'column 1 is "a" instead of "a\\nb"'),
        ([*"abcdefgh"], [*"abcdefgx"], '"h"; expected "a", "b", "c", "d", "e", "f" and 2 more'),
    ],
)
def test_the_first_column_that_differs_is_named(expected: list[str], got: list[object], first: str) -> None:
    assert first in columns_differ(expected, got)
