"""Rows are found by their numbers, whatever the lengths of their groups."""

from __future__ import annotations

import numpy as np
import pytest

from formats.shared.rows import ascending, checked, located, starts_of

GROUPS = (3, 0, 5, 2, 0, 7)
ASKED = (
    [0],
    [16],
    [2, 3],
    [10, 4, 9, 16, 3],
    [5, 5, 9, 5],
    [5, 5, 9],
    [12, 1, 12],
    [],
    list(range(17)),
    list(range(16, -1, -1)),
)


@pytest.mark.parametrize("numbers", ASKED, ids=str)
def test_rows_are_where_their_groups_stand_one_behind_the_other(numbers: list[int]) -> None:
    starts = starts_of(GROUPS)
    rows = np.arange(sum(GROUPS))
    groups, places = located(np.array(numbers, np.int64), starts)
    assert groups == sorted(set(groups))
    read = np.concatenate([rows[:0], *(rows[starts[group] : starts[group + 1]] for group in groups)])
    assert read[places].tolist() == numbers
    assert all(GROUPS[group] for group in groups)


@pytest.mark.parametrize("numbers", ASKED, ids=str)
def test_numbers_become_ascending_ones_each_once(numbers: list[int]) -> None:
    unique, places = ascending(np.array(numbers, np.int64))
    assert unique.tolist() == sorted(set(numbers))
    assert (unique if places is None else unique[places]).tolist() == numbers


@pytest.mark.parametrize("numbers", [[17], [3, -1], [2**40]])
def test_a_number_that_no_row_has_is_named(numbers: list[int]) -> None:
    for look in (lambda asked: checked(asked, 17), lambda asked: located(asked, starts_of(GROUPS))):
        with pytest.raises(IndexError, match=f"row {numbers[-1]} does not exist; the table has 17 rows"):
            look(np.array(numbers, np.int64))
