"""Events have ascending times over one year and unique keys, across all batches."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from data_generator.catalogue import resolve
from data_generator.dataset import batch_sizes
from data_generator.generated import realistic

ROWS, BATCH_ROWS = 2_500, 1_000


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> pa.Table:
    monkeypatch.setattr(realistic, "batch_sizes", lambda rows: batch_sizes(rows, BATCH_ROWS))
    made = resolve("events", {}, rows=ROWS)
    return pa.Table.from_batches(made.batches(), made.schema)


def test_times_ascend_evenly_over_the_year(events: pa.Table) -> None:
    when = events["when"].to_pylist()
    assert when == sorted(when)
    begin, share = dt.datetime(2025, 1, 1), dt.timedelta(days=365) / ROWS
    assert all(begin + row * share <= time < begin + (row + 1) * share for row, time in enumerate(when))


def test_keys_are_unique_in_an_order_that_is_not_theirs(events: pa.Table) -> None:
    keys = events["key"].to_pylist()
    assert sorted(keys) == list(range(ROWS))
    assert keys[:BATCH_ROWS] != sorted(keys[:BATCH_ROWS])


def test_all_else_is_core(events: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realistic, "batch_sizes", lambda rows: batch_sizes(rows, BATCH_ROWS))
    core = resolve("core", {}, rows=ROWS)
    assert events.drop_columns(["when", "key"]).equals(pa.Table.from_batches(core.batches(), core.schema))
