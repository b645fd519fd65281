"""Joined answers equal the answers of the single calls. Each answer is compared with its request."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from bench_runner.worker.sampling.joined import joined
from bench_runner.worker.verification import Pair
from bench_runner.worker.verify import Mismatch

TABLE = pa.table({name: [position, position + 10, position + 20] for position, name in enumerate("abcdef")})


def columns(asked: list[str], given: pa.Table) -> Pair:
    return Pair(tuple(asked), given, asked)


def test_rows_are_concatenated() -> None:
    asked = [np.array([2, 0]), np.array([1, 1])]
    parts = [Pair(None, TABLE.take(pa.array(rows)), TABLE.column_names, rows) for rows in asked]
    (part,) = joined(parts, 3)
    assert part.rows is not None
    assert part.rows.tolist() == [2, 0, 1, 1]
    assert part.given.column("a").to_pylist() == [20, 0, 10, 10]
    with pytest.raises(Mismatch, match="call 2 returned 1 rows, expected 2"):
        joined([parts[0], Pair(None, TABLE.slice(2), TABLE.column_names, asked[1])], 3)


def test_columns_are_joined_until_one_occurs_again() -> None:
    asked = [["b", "a"], ["c", "f"], ["a", "d"], ["c", "b"]]
    parts = joined([columns(names, TABLE.select(names)) for names in asked], 3)
    assert [part.columns for part in parts] == [["b", "a", "c", "f"], ["a", "d", "c", "b"]]
    assert all(part.given.equals(TABLE.select(part.columns)) for part in parts)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (TABLE.select(["b", "a"]), 'call 2: columns differ: column 1 is "b" instead of "c"'),
        (TABLE.select(["f", "c"]), "call 2: columns differ"),
        (TABLE.select(["c", "f"]).slice(1), "call 2 returned 2 rows, expected 3"),
    ],
)
def test_a_call_that_gave_something_else_is_named(given: pa.Table, words: str) -> None:
    with pytest.raises(Mismatch, match=words):
        joined([columns(["b", "a"], TABLE.select(["b", "a"])), columns(["c", "f"], given)], 3)
