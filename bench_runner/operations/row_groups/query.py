"""Reading the rows that meet a condition. The matching rows are in a known share of the table's blocks.

A block is a group of consecutive rows. A reader that has statistics of row groups must read only blocks that contain
matching rows. The operation `query` therefore sets the share of these blocks, while `scan` sets the share of matching
rows, which can be anywhere in the table. Opening the file is not timed, because a service that reads files keeps them
open.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa

from adapters.contract import TabularFormat
from adapters.offers import Handle
from adapters.predicate import Kind, Predicate
from bench_runner.clock import Laps
from bench_runner.operations.operation import READ_ALL, Calls, OperationContext
from bench_runner.operations.parameters import ALL, count, share, word
from bench_runner.operations.row_groups import blocks
from bench_runner.operations.row_groups.blocks import CLUSTERED, SCATTERED
from bench_runner.operations.tables import selection
from bench_runner.operations.tables.project import asked_columns, too_few_columns
from bench_runner.operations.tables.scan import refuse_changed

BLOCK_ROWS = 10_000
"""Default number of rows of a block. The row groups that the engine `near-storage` writes have the same default."""


@dataclass(frozen=True)
class AsksForBlocks(Calls):
    """The base class of `query` and `aggregate`. It chooses the blocks to read and keeps the stored copy open.

    The condition is a range with all values of the chosen blocks, so that all rows of these blocks meet the condition.
    If the parameter `values` is a number, the condition is instead a list of that many values, which only a few rows of
    each chosen block meet.
    """

    groups: float = share(0.01, none=True)
    place: str = word(CLUSTERED, SCATTERED)
    block_rows: int = count(BLOCK_ROWS)
    values: int | str = count(ALL, ALL)

    @property
    def _where(self) -> str:
        """The part of the title that describes the condition, such as '1% of the groups' or '1% of the groups,
        scattered'."""
        words = f"{self.groups * 100:g}% of the groups"
        words += f", {self.place}" if self.place != CLUSTERED else ""
        return words + (f", {self.values} value{'s' * (self.values != 1)}" if self.values != ALL else "")

    def fallback(self, adapter: Any) -> str:
        """Return READ_ALL if the engine cannot evaluate this kind of condition."""
        return "" if self._kind in adapter.offers.scan else READ_ALL

    @property
    def _kind(self) -> Kind:
        return Kind.RANGE if self.values == ALL else Kind.IN

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a refusal reason if the share `groups` is not close to a whole number of blocks. If `values` is a
        number, also return a reason if `values` is smaller than the number of blocks to read, or if no block is to be
        read."""
        met = blocks.met_by(self.groups, -(-rows // self.block_rows))
        if isinstance(self.values, int) and (reason := blocks.cannot_name(self.values, met)):
            return reason
        return blocks.cannot_give(self.groups, rows, self.block_rows)

    def handles(self, adapter: Any) -> int:
        """Return the number of handles that stay open. Return 0 if the engine's call cannot keep a handle open. Then
        each call opens the copy, and the measured time of the call includes the opening."""
        return super().handles(adapter) if adapter.offers.keeps_scans else 0

    def open(self, stage: OperationContext, location: Path) -> Handle | None:
        """Open the stored copy for filtered reads. Return None if the fallback reads everything."""
        adapter = cast(TabularFormat, stage.adapter)
        if self.fallback(adapter):
            return None
        return adapter.open_scans(location) if self.handles(adapter) else adapter.open(location)

    def needs_values(self, held: Any) -> bool:
        """Return whether the share of blocks is greater than 0. If the share is 0, statistics show that no row meets
        the condition."""
        return self.groups > 0

    def conditions(self, stage: OperationContext, repetitions: int) -> list[Predicate]:
        """Return a list with a condition for each repetition, chosen from the whole data set. Raises RefusedData if no
        column has different values in different blocks, or if the variant changes values of the chosen column."""
        found = self._blocks(stage)
        column = refuse_changed(stage, found.column)
        seed = f"{stage.digest}/{self.spelled}"
        if self.values == ALL:
            return list(blocks.conditions(found, self.groups, repetitions, seed))
        return list(blocks.of_values(found, column, self.groups, int(self.values), repetitions, seed))

    def everything(self, stage: OperationContext) -> Predicate:
        """Return a condition that all rows meet, for the untimed first call on a few rows."""
        return blocks.everything(self._blocks(stage))

    def _blocks(self, stage: OperationContext) -> blocks.Blocks:
        return blocks.blocks_of(stage.dataset, stage.rows, self.block_rows, self.place)


@dataclass(frozen=True)
class Query(AsksForBlocks):
    """Read the rows of an open stored copy that meet a condition into private memory, in stored order."""

    columns: int | str = count(ALL, ALL)

    name: ClassVar[str] = "query"
    meaning: ClassVar[str] = "read the rows that meet a condition that a known share of the blocks of rows can meet"

    @property
    def title(self) -> str:
        """The name shown to people, such as 'query 1% of the groups' or 'query 1% of the groups, scattered, 2
        columns'."""
        words = f"query {self._where}"
        return words + (f", {self.columns} column{'s' * (self.columns != 1)}" if self.columns != ALL else "")

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a refusal reason if the table has too few columns or blocks."""
        return too_few_columns(self.columns, schema) or super().refusal(schema, rows)

    def take_input(self, stage: OperationContext, rows: int) -> Predicate:
        """Return the condition of the first repetition. For the untimed first call on a few rows, return a condition
        that all rows meet."""
        return self.everything(stage) if rows < stage.rows else self.inputs(stage, rows, 1)[0]

    def inputs(self, stage: OperationContext, rows: int, repetitions: int) -> list[Any]:
        """Return a list with the condition of each repetition."""
        return self.conditions(stage, repetitions)

    def call(self, stage: OperationContext, handle: Handle | None, held: Predicate, location: Path, laps: Laps) -> Any:
        """Read the rows, convert them to the target, and touch one byte in each page of the result."""
        adapter, columns = cast(TabularFormat, stage.adapter), self.expected_columns(stage)
        return stage.answer(lambda: selection.scanned(adapter, handle, location, held, columns), laps)

    def expected_columns(self, stage: OperationContext, held: Any = None) -> list[str]:
        """Return the names of the columns requested."""
        return asked_columns(stage, self.columns)

    def expected_rows(self, stage: OperationContext, held: Predicate) -> np.ndarray:
        """Return the numbers of the rows that a correct engine returns. Depending on the engine, these are the rows
        that meet the condition, or all rows of the row groups that the engine cannot skip."""
        adapter = cast(TabularFormat, stage.adapter)
        return blocks.given_rows(stage.table(stage.rows, [held.column]).column(0), held, adapter.offers)
