"""Bound filters against plain Python over rows: every type of column with every type of literal."""

import random

import pyarrow as pa

from libraries.filters.binding import bind
from libraries.filters.filter_evaluation import mask
from libraries.filters.tests.keeping import keep
from libraries.filters.tests.oracle import truths
from libraries.filters.tests.random_filters import predicate
from libraries.filters.tests.random_tables import TYPES, python_values, table

SEED = 21


def assert_exact(rng: random.Random, filters: int) -> None:
    """Check random filters on a random table: the mask equals the oracle's, and binding is idempotent."""
    data = table(rng, rng.choices(TYPES, k=3), rng.choice((0, 1, 9)))
    for _ in range(filters):
        given = predicate(rng, data)
        bound = bind(given, data.schema)
        assert bind(bound, data.schema) == bound
        expected = truths(given, data)
        assert mask(bound, data).to_pylist() == expected, (given, bound, rows_of(data))
        assert truths(bound, data) == expected
        assert rows_of(keep(bound, data)) == [row for row, true in zip(rows_of(data), expected, strict=True) if true]


def rows_of(data: pa.Table) -> list[str]:
    """Return each row as text, because NaN does not equal itself."""
    return [repr(row) for row in zip(*(python_values(column) for column in data.columns), strict=True)]


def test_a_filter_says_of_every_row_what_python_says() -> None:
    """The test uses 800 of one seed, `long_runs` 20,000."""
    rng = random.Random(SEED)
    for _ in range(40):
        assert_exact(rng, filters=20)
