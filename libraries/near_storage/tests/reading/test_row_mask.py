"""Select rows by a mask, for every type."""

import pyarrow as pa
import pytest

from libraries.filters.tests.random_tables import TYPES, python_values
from libraries.near_storage.reading.row_mask import matching

ROWS = 6
TEXTS = [b"a", b"b", None, b"a longer text than fits", b"", b"e"]


def batch(type_):
    values = pa.array(TEXTS, pa.binary())
    if type_ in (pa.string_view(), pa.binary_view()):
        column = (values if type_ == pa.binary_view() else values.cast(pa.string())).cast(type_)
    else:
        column = pa.nulls(ROWS, type_)
    return pa.record_batch({"column": column, "row": range(ROWS)})


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_the_rows_where_the_mask_is_true(type_):
    data = batch(type_)
    for rows in ([], [0], [5], [1, 2, 4], [0, 1, 2, 3, 5]):
        mask = pa.array([True if row in rows else (None, False)[row % 2] for row in range(ROWS)])
        found = matching(data, mask)
        assert found["row"].to_pylist() == rows
        assert found.schema == data.schema
        values = python_values(pa.chunked_array([data["column"]]))
        assert python_values(pa.chunked_array([found["column"]])) == [values[row] for row in rows]


def test_nothing_is_copied_where_all_match():
    data = batch(pa.string())
    assert matching(data, pa.array([True] * ROWS)) is data


def test_rows_without_columns():
    assert matching(batch(pa.string()).select([]), pa.array([True, False, True, None, False, True])).num_rows == 3
