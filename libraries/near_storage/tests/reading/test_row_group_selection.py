"""Which row groups of which files remain for a filter, compared with their contents."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from libraries.filters.binding import bind
from libraries.filters.tree import And, Comparison, Constant, Literal, Not
from libraries.near_storage.parquet import compact, footer
from libraries.near_storage.reading.row_group_selection import choose

SCHEMA = pa.schema([("number", pa.int64()), ("real", pa.float64())])


def described(path, groups):
    """Make a file with one row group per list of numbers."""
    with pq.ParquetWriter(path, SCHEMA) as writer:
        for numbers in groups:
            writer.write_table(pa.table({"number": numbers, "real": np.array(numbers, float) / 2}, SCHEMA))
    with path.open("rb") as file:
        return compact.from_footer(footer.read_footer(file))


@pytest.fixture
def metadata(tmp_path):
    files = ([[1, 2], [3, 4], []], [[]], [], [[3, 3], [9], [1, 9]], [[5]])
    return compact.together([described(tmp_path / str(number), groups) for number, groups in enumerate(files)])


def chosen(metadata, where):
    bound = None if where is None else bind(where, SCHEMA)
    return [(each.file, each.groups.tolist(), each.all_match.tolist()) for each in choose(metadata, bound)]


def number(operator, value):
    return Comparison(operator, "number", Literal(value, pa.int64()))


def test_without_a_filter_all_that_has_rows(metadata):
    assert chosen(metadata, None) == [(0, [0, 1], [True, True]), (3, [0, 1, 2], [True] * 3), (4, [0], [True])]
    assert chosen(metadata, Constant(True)) == chosen(metadata, None)


def test_groups_are_counted_within_their_file(metadata):
    assert chosen(metadata, number(">", 4)) == [(3, [1, 2], [True, False]), (4, [0], [True])]
    assert chosen(metadata, number("==", 3)) == [(0, [1], [False]), (3, [0, 2], [True, False])]
    assert chosen(metadata, And((number(">=", 2), number("<", 5)))) == [
        (0, [0, 1], [False, True]),
        (3, [0, 2], [True, False]),
    ]


def test_not_a_number_may_be_where_nothing_is_said_of_it(metadata):
    real = Not(Comparison("<=", "real", Literal(4.5, pa.float64())))
    assert [each[0] for each in chosen(metadata, real)] == [0, 3, 4]
    assert not any(match for _, _, matches in chosen(metadata, real) for match in matches)


@pytest.mark.parametrize("where", [number(">", 9), Constant(False), Constant(None)])
def test_nothing(metadata, where):
    assert chosen(metadata, where) == []
