"""Aggregating the rows that meet a condition. The matching rows are in a known share of the table's blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapters.contract import TabularFormat
from adapters.errors import RefusedData
from adapters.offers import Handle
from adapters.predicate import Predicate
from bench_runner.clock import Laps
from bench_runner.operations import targets
from bench_runner.operations.operation import OperationContext
from bench_runner.operations.row_groups import blocks
from bench_runner.operations.row_groups.query import AsksForBlocks
from bench_runner.operations.tables import selection
from data_generator.cache import read_table

COLUMNS = ("count", "min", "max", "sum")
SCHEMA = pa.schema([(name, pa.int64()) for name in COLUMNS])
MOST_SUM = 1 << 53
"""Limit for the sum of an aggregated column. Larger sums are inexact in engines that add floats."""


@dataclass(frozen=True)
class Asked:
    """The input of one call: the number of the repetition, the condition and the column to aggregate."""

    number: int
    condition: Predicate
    column: str


@dataclass(frozen=True)
class Aggregate(AsksForBlocks):
    """Compute count, minimum, maximum and sum of a column over the rows that meet a condition, on an open copy. If the
    engine has no call for this, the engine reads the column's values in the matching rows, and Arrow computes the
    result."""

    name: ClassVar[str] = "aggregate"
    meaning: ClassVar[str] = "count and sum up the rows that meet a condition that a known share of the blocks can meet"

    @property
    def title(self) -> str:
        """The name shown to people, such as 'aggregate 1% of the groups'."""
        return f"aggregate {self._where}"

    def take_input(self, stage: OperationContext, rows: int) -> Asked:
        """Return the input of the first repetition. For the untimed first call on a few rows, use a condition that all
        rows meet."""
        if rows < stage.rows:
            return Asked(0, self.everything(stage), self._column(stage))
        return self.inputs(stage, rows, 1)[0]

    def inputs(self, stage: OperationContext, rows: int, repetitions: int) -> list[Any]:
        """Return a list with the input of each repetition."""
        column = self._column(stage)
        return [Asked(number, each, column) for number, each in enumerate(self.conditions(stage, repetitions))]

    def call(self, stage: OperationContext, handle: Handle | None, held: Asked, location: Path, laps: Laps) -> Any:
        """Return the aggregates as a table of one row, computed by the engine or from the rows that it reads."""
        adapter = cast(TabularFormat, stage.adapter)
        if handle is not None and handle.aggregate is not None:
            own = handle.aggregate
            return stage.answer(lambda: own(held.condition, held.column), laps)
        native = selection.scanned(adapter, handle, location, held.condition, [held.column])
        rows = targets.from_native(native, stage.target, adapter.native_read)
        answer = added_up(rows.column(0))
        laps.lap("engine_ns")
        return answer

    def expected_columns(self, stage: OperationContext, held: Any = None) -> list[str]:
        """Return the column names of the result."""
        return list(COLUMNS)

    def expected(self, stage: OperationContext, columns: Sequence[str]) -> pa.Table:
        """Return a table of the right results, with one row for each repetition."""
        asked = self.held(stage)
        (named,) = {each.column for each in asked}
        offers = cast(TabularFormat, stage.adapter).offers
        table = stage.table(stage.rows, list(dict.fromkeys([asked[0].condition.column, named])))
        tested, values = table.column(asked[0].condition.column), table.column(named)
        rows = (blocks.given_rows(tested, each.condition, offers) for each in asked)
        return pa.concat_tables([added_up(values.take(pa.array(numbers))) for numbers in rows]).select(list(columns))

    def expected_rows(self, stage: OperationContext, held: Asked) -> np.ndarray:
        """Return the number of the repetition. The row of `expected` with this number has the right result."""
        return np.array([held.number])

    def _column(self, stage: OperationContext) -> str:
        return _chosen(stage.dataset, stage.rows, self._blocks(stage).column)


def added_up(column: pa.ChunkedArray) -> pa.Table:
    """Return count, minimum, maximum and sum of a column as a table of one row, with the schema SCHEMA."""
    extent = pc.min_max(column)
    found = [len(column), extent["min"].as_py(), extent["max"].as_py(), pc.sum(column).as_py()]
    return pa.Table.from_arrays([pa.array([value], pa.int64()) for value in found], schema=SCHEMA)


@lru_cache(maxsize=1)
def _chosen(dataset: Path, rows: int, tested: str) -> str:
    """Return the name of the column to aggregate. It is the first int64 column that has no nulls, whose sums are exact
    in every engine, and that the condition does not test. Raises RefusedData if there is no such column."""
    for field in read_table(dataset, 0).schema:
        if not pa.types.is_int64(field.type) or field.name == tested:
            continue
        column = read_table(dataset, rows, [field.name]).column(0)
        if column.null_count or not rows:
            continue
        extent = pc.min_max(column)
        if max(abs(extent["min"].as_py()), abs(extent["max"].as_py())) * rows < MOST_SUM:
            return field.name
    raise RefusedData(
        f"no column other than {tested} has 64-bit integers without nulls that are small enough for exact sums "
        "in every engine"
    )
