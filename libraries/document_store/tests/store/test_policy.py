"""Tiering: which sizes are merged."""

import random

import pytest

from libraries.document_store.tree.policy import MOST_COMPONENTS, due


@pytest.mark.parametrize(
    ("sizes", "merged"),
    [
        ([], None),
        ([1], None),
        ([10, 10], 2),
        ([10, 12], 2),
        ([10, 13], None),
        # The oldest fitting end, in one merge.
        ([10, 10, 24, 300], 3),
        ([10, 25, 60, 140], None),
        # Too many: the best fitting end.
        ([10, 25, 60, 140, 1000], 4),
        ([10, 100, 120, 1000, 10_000], 3),
    ],
)
def test_what_is_due(sizes, merged):
    assert due(sizes) == merged


@pytest.mark.parametrize("sizes", [[10, 10], [10, 10, 24, 300], [1, 1, 1, 1, 1], [10, 25, 60, 140, 1000]])
def test_late_merges_are_those_of_a_full_store(sizes):
    assert due(sizes, late=True) == (due(sizes) if len(sizes) == MOST_COMPONENTS else None)


def test_components_stay_few_and_nothing_is_merged_too_often():
    """1,000 flushes: at rest there are fewer than the maximum, and each byte is merged about log(flushes) times."""
    chance = random.Random(1)
    sizes: list[int] = []
    merged = 0
    for _ in range(1000):
        sizes.insert(0, chance.randint(8, 12))
        while (count := due(sizes)) is not None:
            merged += sum(sizes[:count])
            sizes[:count] = [sum(sizes[:count])]
        assert len(sizes) < MOST_COMPONENTS
    assert merged < 12 * sum(sizes)
