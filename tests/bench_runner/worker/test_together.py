"""Answers put together are what the calls gave, each held against what it was asked for."""

from __future__ import annotations

from typing import cast

import numpy as np
import pyarrow as pa
import pytest

from bench_runner.operations import RepeatedOperation, operation_of
from bench_runner.worker.sampling.joined import joined
from bench_runner.worker.verify import Mismatch

TAKE = cast(RepeatedOperation, operation_of("take[rows=2]"))
PROJECT = cast(RepeatedOperation, operation_of("project[columns=2,handle=kept]"))
TABLE = pa.table({name: [position, position + 10, position + 20] for position, name in enumerate("abcdef")})


def test_rows_stand_below_each_other() -> None:
    asked = [np.array([2, 0]), np.array([1, 1])]
    ((numbers, table),) = joined(TAKE, 3, asked, [TABLE.take(pa.array(rows)) for rows in asked])
    assert numbers.tolist() == [2, 0, 1, 1]
    assert table.column("a").to_pylist() == [20, 0, 10, 10]


def test_columns_stand_beside_each_other_until_one_comes_again() -> None:
    asked = [("b", "a"), ("c", "f"), ("a", "d"), ("c", "b")]
    parts = joined(PROJECT, 3, asked, [TABLE.select(names) for names in asked])
    assert [names for names, _ in parts] == [("b", "a", "c", "f"), ("a", "d", "c", "b")]
    assert all(part.equals(TABLE.select(names)) for names, part in parts)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (TABLE.select(["b", "a"]), 'call 2: columns differ: column 1 is "b" in place of "c"'),
        (TABLE.select(["f", "c"]), "call 2: columns differ"),
        (TABLE.select(["c", "f"]).slice(1), "call 2 gave 2 rows, 3 were asked for"),
    ],
)
def test_a_call_that_gave_something_else_is_named(given: pa.Table, words: str) -> None:
    with pytest.raises(Mismatch, match=words):
        joined(PROJECT, 3, [("b", "a"), ("c", "f")], [TABLE.select(["b", "a"]), given])
