"""500 random queries give DuckDB's answer, and those that plans can express are answered by plans."""

from __future__ import annotations

import math
import random
import warnings

import duckdb
import pytest

from libraries.document_store.layouts import LAYOUTS
from libraries.document_store.store import DocumentStore
from libraries.document_store.tests.sql.random_queries import documents, oracle_table, query

QUERIES = 500


def sortable(row):
    """Return a sort key of a row, whose values may be of any type."""
    return [(value is None, type(value).__name__, str(value)) for value in map(rounded, row)]


def rounded(value):
    """Return a number as sums of doubles are compared: an integer that equals a double is the same."""
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.9g}")
    return float(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53 else value


def alike(one, other):
    return [list(map(rounded, row)) for row in one] == [list(map(rounded, row)) for row in other]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_random_queries_have_duckdbs_answers(layout, tmp_path):
    chance = random.Random(f"SQL {layout}")
    found = documents(chance, 120)
    rows, select = oracle_table(found)
    ways = {"plan": 0, "duckdb": 0}
    with duckdb.connect() as oracle, DocumentStore.open(tmp_path / "store", layout=layout, sync="none") as store:
        oracle.execute("CREATE TABLE raw(id BIGINT, j JSON)")
        oracle.executemany("INSERT INTO raw VALUES (?, ?)", rows)
        oracle.execute(f"CREATE TABLE typed AS {select}")
        store.upsert(found[:50])
        store.flush()
        store.upsert(found[40:90])
        store.flush()
        store.upsert(found[90:])
        for _ in range(QUERIES // len(LAYOUTS) + 1):
            asked = query(chance)
            right = oracle.execute(asked.oracle).fetchall()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                table = store.sql(asked.ours)
            answer = list(zip(*table.to_pydict().values(), strict=True))
            if not asked.is_ordered:
                right, answer = sorted(right, key=sortable), sorted(answer, key=sortable)
            assert alike(answer, right), (asked.ours, answer[:5], right[:5])
            explained = store.sql(asked.ours, explain=True)
            assert explained.way == asked.expected_way, (asked.ours, str(explained))
            ways[explained.way] += 1
    assert min(ways.values()) > QUERIES // len(LAYOUTS) // 5, ways
