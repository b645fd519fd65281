"""A sample consists of contiguous blocks, evenly spread from the first row to the last, in order."""

from __future__ import annotations

from itertools import pairwise

import pytest

from data_generator.imported.tables.sampling import BLOCKS, Block, blocks, overlaps, places, row_at, shortened

SIZES = [
    (1_000_001, 1_000_000),
    (12_345_678, 1_000_000),
    (10**15, 1_000_000),
    (100, 99),
    (100, 16),
    (100, 17),
    (1000, 1),
]


@pytest.mark.parametrize("rows", [1, 15, 1000, 1_000_000])
def test_what_fits_is_taken_whole(rows: int) -> None:
    assert blocks(rows, 1_000_000) == (Block(0, rows),)


def test_no_rows_are_no_block() -> None:
    assert blocks(0, 10) == ()


@pytest.mark.parametrize(("rows", "wanted"), SIZES)
def test_a_sample_has_as_many_rows_as_are_wanted(rows: int, wanted: int) -> None:
    found = blocks(rows, wanted)
    assert sum(block.rows for block in found) == wanted
    assert len(found) == min(BLOCKS, wanted)


@pytest.mark.parametrize(("rows", "wanted"), SIZES)
def test_blocks_are_in_order_and_do_not_overlap(rows: int, wanted: int) -> None:
    found = blocks(rows, wanted)
    assert found[0].start == 0
    assert wanted < 2 or found[-1].end == rows
    assert all(one.end <= other.start for one, other in pairwise(found))


@pytest.mark.parametrize(("rows", "wanted"), SIZES)
def test_blocks_are_equally_long_and_evenly_spread(rows: int, wanted: int) -> None:
    found = blocks(rows, wanted)
    lengths = {block.rows for block in found}
    gaps = {other.start - one.end for one, other in pairwise(found)}
    assert max(lengths) - min(lengths) <= 1
    assert not gaps or max(gaps) - min(gaps) <= 1


def test_a_share_cuts_each_block_and_leaves_none_empty() -> None:
    assert shortened((Block(0, 8), Block(10, 9), Block(20, 1)), 0.25) == (Block(0, 2), Block(10, 2), Block(20, 1))


def test_places_lie_one_behind_the_other() -> None:
    assert places((Block(3, 2), Block(10, 4))) == (Block(0, 2), Block(2, 4))


def test_overlaps_are_counted_from_the_part() -> None:
    whole = (Block(0, 3), Block(5, 2), Block(9, 5))
    assert list(overlaps(whole, 2, 5)) == [Block(0, 1), Block(3, 2)]
    assert list(overlaps(whole, 100, 5)) == []


def test_the_row_of_a_place_is_found() -> None:
    whole = (Block(0, 3), Block(5, 2), Block(9, 5))
    assert [row_at(whole, place) for place in range(10)] == [0, 1, 2, 5, 6, 9, 10, 11, 12, 13]
    with pytest.raises(IndexError):
        row_at(whole, 10)
