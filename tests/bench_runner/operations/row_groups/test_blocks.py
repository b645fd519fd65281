"""Filters that match a known share of the blocks: the choice of column and blocks, and the rows that an engine returns
if it filters only partly."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from adapters.errors import RefusedData
from adapters.offers import Offers, Sifts
from adapters.predicate import Kind, Predicate
from bench_runner.operations import operation_of
from bench_runner.operations.row_groups.blocks import (
    CLUSTERED,
    SCATTERED,
    Blocks,
    blocks_of,
    cannot_give,
    conditions,
    everything,
    given_rows,
    met_by,
    of_values,
)
from bench_runner.operations.tables import predicates

BLOCK = 100
ROWS = 2_050
STARTS = np.arange(ROWS) // BLOCK
ORDER = np.random.default_rng(3).permutation(21)

Stored = Callable[[pa.Table], Path]


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    """Store a table in the form of the data set cache."""

    def store(table: pa.Table) -> Path:
        path = tmp_path / "table.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        return path

    return store


def table_of() -> pa.Table:
    """Return a table with noise, a column with nulls, an ascending time, and an identifier whose blocks are in random
    order."""
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "noise": rng.integers(0, 1_000, ROWS),
            "holes": pa.array([None, *range(ROWS - 1)], pa.int64()),
            "when": pa.array(np.arange(ROWS) * 7 + 10**15).cast(pa.timestamp("us")),
            "share": rng.random(ROWS),
            "place": ORDER[STARTS] * 50 + rng.integers(0, 50, ROWS),
        }
    )


@pytest.mark.parametrize(("place", "column"), [(CLUSTERED, "when"), (SCATTERED, "place")])
def test_the_column_is_the_one_with_such_blocks(stored: Stored, place: str, column: str) -> None:
    found = blocks_of(stored(table_of()), ROWS, BLOCK, place)
    assert (found.column, found.count) == (column, 21)


def test_a_sorted_column_with_ties_between_blocks_is_clustered(stored: Stored) -> None:
    """The order numbers of TPC-H are an example: several rows have the same number."""
    found = blocks_of(stored(pa.table({"order": np.arange(ROWS) // 7})), ROWS, BLOCK, CLUSTERED)
    assert found.column == "order"


@pytest.mark.parametrize(("rows_of_a_value", "share", "met"), [(3, 0.01, 1), (7, 0.1, 2), (60, 0.25, 5)])
def test_values_that_two_blocks_share_are_not_asked_for(
    stored: Stored, rows_of_a_value: int, share: float, met: int
) -> None:
    """Otherwise the filter would match one block more than the requested share."""
    table = pa.table({"order": np.arange(ROWS) // rows_of_a_value})
    found = blocks_of(stored(table), ROWS, BLOCK, CLUSTERED)
    for each in conditions(found, share, 21 // met, "seed"):
        rows = np.flatnonzero(predicates.mask(table.column("order"), each).to_numpy())
        assert len(set(STARTS[rows].tolist())) == met
        may = given_rows(table.column("order"), each, Offers(sifts=Sifts.GROUPS, group_rows=BLOCK))
        assert set(STARTS[may].tolist()) == set(STARTS[rows].tolist())


def test_blocks_without_a_separate_value_are_not_distinguished(stored: Stored) -> None:
    table = pa.table({"order": (np.arange(ROWS) + 50) // 100})
    with pytest.raises(RefusedData):
        blocks_of(stored(table), ROWS, BLOCK, CLUSTERED)


@pytest.mark.parametrize(
    ("kind", "first"), [(pa.uint32(), 0), (pa.uint64(), 2**63), (pa.int16(), 2**15 - ROWS), (pa.int64(), 2**63 - ROWS)]
)
def test_a_column_whose_type_ends_with_its_values_is_not_chosen(stored: Stored, kind: pa.DataType, first: int) -> None:
    """The column contains the minimum and maximum of its type, so no value lies outside its range."""
    ends = pa.array(range(first, first + ROWS), kind)
    table = pa.table({"ends": ends, "when": np.arange(ROWS)})
    assert blocks_of(stored(table), ROWS, BLOCK, CLUSTERED).column == "when"


def test_a_day_distinguishes_blocks(stored: Stored) -> None:
    table = pa.table({"day": pa.array(np.arange(ROWS, dtype=np.int32)).cast(pa.date32())})
    (asked,) = conditions(blocks_of(stored(table), ROWS, BLOCK, CLUSTERED), 0.5, 1, "seed")
    assert int(predicates.mask(table.column("day"), asked).to_numpy().sum()) in (1_000, 1_050)


@pytest.mark.parametrize("place", [CLUSTERED, SCATTERED])
def test_data_without_such_a_column_are_refused(stored: Stored, place: str) -> None:
    noise = stored(table_of().select(["noise", "holes", "share"]))
    with pytest.raises(RefusedData, match=f"in each block of 100 rows, .*ascending .* as place={place} requires"):
        blocks_of(noise, ROWS, BLOCK, place)


@pytest.mark.parametrize("place", [CLUSTERED, SCATTERED])
@pytest.mark.parametrize(("share", "met"), [(0.0, 0), (0.01, 1), (0.1, 2), (0.25, 5), (0.5, 10), (1.0, 21)])
def test_a_condition_is_met_by_as_many_whole_blocks(stored: Stored, place: str, share: float, met: int) -> None:
    table = table_of()
    found = blocks_of(stored(table), ROWS, BLOCK, place)
    asked = list(conditions(found, share, 12, "seed"))
    seen: list[set[int]] = []
    for each in asked:
        rows = np.flatnonzero(predicates.mask(table.column(each.column), each).to_numpy())
        blocks = set(STARTS[rows].tolist())
        assert len(blocks) == met
        assert len(rows) == sum(min(BLOCK, ROWS - block * BLOCK) for block in blocks), "whole blocks"
        assert np.array_equal(given_rows(table.column(each.column), each, Offers()), rows)
        seen.append(blocks)
    disjoint = min(21 // met if met else 12, 12)
    assert sum(map(len, seen[:disjoint])) == len(set().union(*seen[:disjoint])), "other blocks each, while there are"
    if met == 0:
        assert len({each.values for each in asked}) == 12


@pytest.mark.parametrize("place", [CLUSTERED, SCATTERED])
@pytest.mark.parametrize(("share", "met", "values"), [(0.05, 1, 5), (0.1, 2, 5), (0.25, 5, 5), (0.25, 5, 40)])
def test_a_list_of_values_is_met_by_a_part_of_each_block(
    stored: Stored, place: str, share: float, met: int, values: int
) -> None:
    """So an engine that filters rows returns fewer rows than an engine that only skips groups."""
    table = table_of()
    found = blocks_of(stored(table), ROWS, BLOCK, place)
    column = table.column(found.column)
    asked = list(of_values(found, column, share, values, 12, "seed"))
    assert asked == list(of_values(found, column, share, values, 12, "seed"))
    assert len({each.values for each in asked}) == 12
    for each in asked:
        assert (each.kind, len(set(each.values))) == (Kind.IN, values)
        rows = np.flatnonzero(predicates.mask(column, each).to_numpy())
        assert np.array_equal(given_rows(column, each, Offers()), rows)
        counts = np.bincount(STARTS[rows], minlength=21)
        assert np.count_nonzero(counts) == met
        assert counts.max() < 0.9 * BLOCK
        may = given_rows(column, each, Offers(sifts=Sifts.GROUPS, group_rows=BLOCK))
        assert set(STARTS[may].tolist()) == set(np.flatnonzero(counts).tolist())
        assert len(may) > len(rows)


@pytest.mark.parametrize(
    ("share", "values", "why"),
    [
        (0.25, 4, "values=4 is not possible for 5 blocks"),
        (0.0, 4, "values=4 is not possible for a share of 0"),
        (0.05, 60, "needs 60 of the 100 values of a block .allowed: at most half"),
    ],
)
def test_lists_that_are_no_part_of_each_block_are_refused(stored: Stored, share: float, values: int, why: str) -> None:
    table = table_of()
    found = blocks_of(stored(table), ROWS, BLOCK, CLUSTERED)
    with pytest.raises(RefusedData, match=why):
        list(of_values(found, table.column(found.column), share, values, 1, "seed"))


def test_a_group_may_have_a_value_of_a_list_by_its_least_and_its_largest() -> None:
    column = pa.chunked_array([np.arange(60)])
    asked = Predicate("a", Kind.IN, (19, 40))
    by_groups = Offers(sifts=Sifts.GROUPS, group_rows=20)
    assert given_rows(column, asked, by_groups).tolist() == [*range(20), *range(40, 60)]
    assert given_rows(column, asked, Offers()).tolist() == [19, 40]


@pytest.mark.parametrize(
    ("share", "rows", "told"),
    [
        (0.01, 1_000_000, None),
        (0.25, 500_000, None),
        (0.0, 500_000, None),
        (1.0, 5, None),
        (0.01, 500_000, "1 % of 50 blocks of 10,000 rows is not a whole number of blocks; use at least 1,000,000 rows"),
        (0.1, 30_000, "10 % of 3 blocks of 10,000 rows is not a whole number of blocks; use at least 100,000 rows"),
        (0.5, 0, "50 % of 0 blocks of 10,000 rows is not a whole number of blocks; use at least 20,000 rows"),
    ],
)
def test_shares_that_whole_blocks_cannot_give_are_refused(share: float, rows: int, told: str | None) -> None:
    """Before such shares were rejected they were rounded, and 25, 10 and 1 % of three blocks all meant one block."""
    assert cannot_give(share, rows, 10_000) == told
    for operation in (f"query[groups={share}]", f"aggregate[groups={share}]"):
        assert operation_of(operation).refusal(pa.schema([("a", pa.int64())]), rows) == told
    assert told or abs(met_by(share, -(-rows // 10_000)) - share * -(-rows // 10_000)) <= 0.5


def test_lists_of_fewer_values_than_blocks_are_refused() -> None:
    operation = operation_of("query[groups=0.5,values=10]")
    reason = "values=10 is not possible for 50 blocks: each block needs at least one value"
    assert operation.refusal(pa.schema([("a", pa.int64())]), 1_000_000) == reason
    assert operation.refusal(pa.schema([("a", pa.int64())]), 200_000) is None


def test_the_same_seed_asks_the_same(stored: Stored) -> None:
    found = blocks_of(stored(table_of()), ROWS, BLOCK, SCATTERED)
    once, again, other = (list(conditions(found, 0.1, 5, seed)) for seed in ("a", "a", "b"))
    assert once == again != other


def test_values_are_the_columns_own(stored: Stored) -> None:
    (asked,) = conditions(blocks_of(stored(table_of()), ROWS, BLOCK, CLUSTERED), 1.0, 1, "seed")
    assert all(isinstance(value, datetime) for value in asked.values)
    assert asked == everything(blocks_of(stored(table_of()), ROWS, BLOCK, CLUSTERED))


def test_engines_that_skip_groups_return_those_whose_statistics_may_match() -> None:
    """A group has two blocks. If these are scattered, the group's range includes values that none of its rows has."""
    values = np.concatenate([np.full(10, low) + np.arange(10) for low in (0, 40, 20, 60, 80, 100)])
    column = pa.chunked_array([values])
    found = Blocks("a", pa.int64(), np.array([0, 20, 40, 60, 80, 100]), 110)
    asked = found.condition(1, 1)
    assert given_rows(column, asked, Offers()).tolist() == list(range(20, 30))
    by_groups = Offers(sifts=Sifts.GROUPS, group_rows=20)
    assert given_rows(column, asked, by_groups).tolist() == list(range(40)), "0 to 49 and 20 to 69 may hold 20 to 29"
    assert given_rows(column, found.condition(4, 1), by_groups).tolist() == list(range(40, 60))
    assert given_rows(column, found.condition(0, 0), by_groups).tolist() == []
    assert given_rows(column, found.condition(0, 0), Offers(sifts=Sifts.NOTHING)).tolist() == list(range(60))


def test_the_few_blocks_of_a_pilot_round_may_ascend_by_chance(stored: Stored) -> None:
    """Otherwise the pilot round would reject data that are scattered as a whole, and they would never be measured."""
    rng = np.random.default_rng(1)
    place = np.arange(200) // BLOCK * 50 + rng.integers(0, 50, 200)
    table = pa.table({"when": np.arange(200), "place": place})
    assert blocks_of(stored(table), 200, BLOCK, SCATTERED).column == "place"
