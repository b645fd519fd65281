"""Selected rows and their positions, compared with slices of a Python list."""

import random

import numpy as np
import pytest

from libraries.f3.columns.rows import pick


def starts(sizes):
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


@pytest.mark.parametrize("seed", range(30))
def test_rows_are_found_whatever_row_groups_and_units_there_are(seed):
    dice = random.Random(seed)
    # The units of some row groups. Some units have no rows.
    groups = [[dice.choice((0, 1, 3, 10)) for _ in range(dice.randrange(5))] for _ in range(dice.randrange(1, 5))]
    rows = [[] for _ in groups]
    number = 0
    for group, sizes in enumerate(groups):
        for size in sizes:
            rows[group].append(list(range(number, number + size)))
            number += size
    if number == 0:
        return
    first = dice.randrange(number)
    wanted = dice.choice(
        [None, slice(first, None), range(first, number), slice(None, None, 3), dice.choices(range(number), k=9)]
    )
    picked = pick(wanted, starts([sum(sizes) for sizes in groups]))

    units = [unit for group in picked.groups for unit in rows[group]]
    ordinals, places = picked.located(starts([len(unit) for unit in units]))
    decoded = [row for ordinal in ordinals for row in units[ordinal]]

    every = range(number)
    expected = every if wanted is None else every[wanted] if isinstance(wanted, slice) else wanted
    assert [decoded[place] for place in places] == list(expected)
    # The first and the last unit hold a requested row, so no unnecessary units are returned.
    assert all(set(units[ordinal]) & set(expected) for ordinal in (ordinals[0], ordinals[-1]))


@pytest.mark.parametrize("rows", [slice(0, 0), range(5, 5), [], np.empty(0)])
def test_no_rows_need_nothing(rows):
    picked = pick(rows, starts([3, 4]))
    assert (picked.groups, picked.count, picked.located(starts([]))) == ((), 0, ([], range(0)))
