"""Views as types with small slices, and back."""

import pyarrow as pa
import pytest

from libraries.near_storage.reading import working_types
from libraries.near_storage.reading.row_mask import matching

LONG = "longer than what a view holds itself"
VIEWS = {
    "text": pa.array(["a", None, LONG, "", LONG * 2], pa.string_view()),
    "bytes": pa.array([b"a", None, LONG.encode(), b"", b"e"], pa.binary_view()),
    "texts in lists": pa.array([["a"], None, [LONG, None], [], ["e"]], pa.list_(pa.string_view())),
    "texts in large lists": pa.array([["a"], None, [LONG, None], [], ["e"]], pa.large_list(pa.string_view())),
    "texts in structs": pa.array(
        [{"a": "a"}, None, {"a": LONG}, {"a": None}, {"a": ""}], pa.struct([("a", pa.string_view())])
    ),
    "texts in maps": pa.array(
        [[("k", "a")], None, [("k", LONG)], [], [("", "")]], pa.map_(pa.string_view(), pa.string_view())
    ),
    "texts in fixed lists": pa.array(
        [["a", "b"], None, [LONG, None], ["", ""], ["e", "f"]], pa.list_(pa.string_view(), 2)
    ),
    "views of lists": pa.array([[1], None, [2, 3], [], [4]], pa.list_view(pa.int64())),
    "large views of lists of texts": pa.array(
        [["a"], None, [LONG, None], [], ["e"]], pa.large_list_view(pa.string_view())
    ),
    "views of lists in structs": pa.array(
        [{"a": [1]}, None, {"a": [2, 3]}, {"a": None}, {"a": []}], pa.struct([("a", pa.list_view(pa.int8()))])
    ),
    "JSON": pa.array(["1", None, '"' + LONG + '"', "{}", "2"], pa.json_(pa.string_view())),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_become_what_arrow_filters_and_come_back(name: str):
    batch = pa.record_batch({"x": VIEWS[name], "row": range(5)})
    working = working_types.working(batch)
    assert working.schema != batch.schema
    for rows in ([0, 1, 2, 3, 4], [2], [1, 3], [0, 4], []):
        back = working_types.cast(working.take(pa.array(rows, pa.int64())), batch.schema)
        back.validate(full=True)
        assert back.schema == batch.schema
        assert back["x"].to_pylist() == [VIEWS[name][row].as_py() for row in rows]
        mask = pa.array([row in rows for row in range(5)])
        assert matching(batch, mask)["x"].to_pylist() == back["x"].to_pylist()
    part = working_types.cast(working.slice(1, 3), batch.schema)
    part.validate(full=True)
    assert part["x"].to_pylist() == VIEWS[name].slice(1, 3).to_pylist()


def test_what_has_no_views_is_left_as_it_is():
    batch = pa.record_batch({"a": ["x"], "b": pa.array(["y"]).dictionary_encode(), "c": [[1]]})
    assert working_types.working(batch) is batch
    assert working_types.working_schema(batch.schema) is batch.schema


def test_slices_of_what_was_cast_carry_their_own_bytes():
    """For 10,000 rows filtered in runs, views used quadratic memory."""
    rows = 10_000
    texts = pa.array([f"{number:030}" for number in range(rows)], pa.string_view())
    batch = pa.record_batch({"x": texts, "row": range(rows)})
    before = pa.total_allocated_bytes()
    found = matching(batch, pa.array([row % 2 == 0 for row in range(rows)]))
    assert found.num_rows == rows // 2
    assert pa.total_allocated_bytes() - before < 2 * batch.nbytes
