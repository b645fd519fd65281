"""The stand-in for Snowset: its columns, and the known answers of its filters."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from data_generator.catalogue import resolve
from data_generator.errors import DataError
from data_generator.generated.warehouse import snowset
from data_generator.generated.warehouse.snowset_columns import COUNTERS, IDENTITIES, SCHEMA

BLOCK_ROWS, ROWS = 500, 10_250


@pytest.fixture(scope="module")
def table() -> pa.Table:
    dataset = resolve("snowset", {"block_rows": str(BLOCK_ROWS)}, rows=ROWS)
    made = pa.Table.from_batches(list(dataset.batches()), dataset.schema)
    assert made.num_rows == ROWS
    return made


def below(table: pa.Table, condition: snowset.Condition) -> np.ndarray:
    values = table[condition.column].cast(pa.int64())
    return np.flatnonzero(pc.less(values, condition.below).to_numpy())


def test_it_has_the_columns_of_the_original() -> None:
    assert len(SCHEMA) == len(set(SCHEMA.names)) == 93
    assert SCHEMA.names[: len(IDENTITIES)] == list(IDENTITIES)
    kinds = {str(field.type) for field in SCHEMA}
    assert kinds == {"int64", "int32", "string", "timestamp[us]"}


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.25, 0.5, 1.0])
def test_the_rows_of_a_condition_are_known(table: pa.Table, share: float, scattered: bool) -> None:
    name = f"snowset[block_rows={BLOCK_ROWS}]"
    condition = snowset.condition(name, ROWS, BLOCK_ROWS, share, scattered=scattered)
    blocks = -(-ROWS // BLOCK_ROWS)
    assert len(condition.blocks) == round(share * blocks)
    found = below(table, condition)
    assert len(found) == condition.rows
    assert sorted(set(found // BLOCK_ROWS)) == list(condition.blocks), "whole blocks and no other rows"
    if scattered and 0.1 <= share <= 0.5:
        assert list(condition.blocks) != list(range(len(condition.blocks))), "adjacent: clustered"


def test_blocks_of_a_warehouse_do_not_overlap(table: pa.Table) -> None:
    values = table["warehouseId"].to_numpy()
    starts = np.arange(0, ROWS, BLOCK_ROWS)
    least, most = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    order = np.argsort(least)
    assert (most[order][:-1] < least[order][1:]).all()


def test_times_ascend_and_queries_end_after_they_begin(table: pa.Table) -> None:
    created = table["createdTime"].to_numpy().astype(np.int64)
    assert (np.diff(created) >= 0).all()
    lasted_us = table["endTime"].to_numpy().astype(np.int64) - created
    assert (lasted_us == table["durationTotal"].to_numpy() * 1_000).all()


def test_identifiers_of_queries_lie_in_no_order_and_are_unique(table: pa.Table) -> None:
    values = table["queryId"]
    assert pc.count_distinct(values).as_py() == ROWS
    assert pc.min(values).as_py() >= 0
    ascending = (np.diff(values.to_numpy()) > 0).mean()
    assert 0.47 < ascending < 0.53


@pytest.mark.parametrize("name", ["persistentReadBytesS3", "profOtherRso", "durationCompiling", "serverMemoryUsed"])
def test_counters_are_as_sparse_and_reach_as_far_as_is_said(table: pa.Table, name: str) -> None:
    counter, column = COUNTERS[name], table[name]
    assert column.null_count / ROWS == pytest.approx(counter.nulls, abs=0.015)
    present = column.drop_null().to_numpy()
    positive = present[present > 0]
    assert len(positive) / len(present) == pytest.approx(counter.share, abs=0.02)
    assert 1 << counter.low <= positive.min() <= positive.max() < 1 << counter.high
    powers = np.bincount(np.log2(positive).astype(int), minlength=counter.high)[counter.low :]
    assert powers.max() < 3 * max(powers.min(), 1) or len(positive) < 500, "each power of two about as often"


def test_no_counter_is_another(table: pa.Table) -> None:
    dense = [name for name, counter in COUNTERS.items() if counter.share >= 0.05]
    assert len({tuple(table[name].to_pylist()[:1_000]) for name in dense}) == len(dense)


def test_a_row_takes_about_as_much_as_in_the_original(table: pa.Table) -> None:
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=5_000)
    assert 120 < sink.getvalue().size / ROWS < 250, "207 bytes there"


def test_too_many_blocks_are_refused() -> None:
    with pytest.raises(DataError, match=r"3,000,000 blocks are too many"):
        resolve("snowset", {"block_rows": "1"}, rows=3_000_000)
