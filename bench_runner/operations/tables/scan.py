"""Reading the rows that meet a condition on one column.

The condition depends only on the data (see the module predicates), so that all variants, rounds, runs and machines use
the same condition.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa

from adapters.contract import TabularFormat
from adapters.errors import RefusedData
from adapters.predicate import Kind, Predicate
from bench_runner.clock import Laps
from bench_runner.operations.operation import READ_ALL, Operation, OperationContext
from bench_runner.operations.parameters import ALL, count, share, word
from bench_runner.operations.tables import predicates, selection
from bench_runner.operations.tables.project import asked_columns, too_few_columns
from data_generator.cache import read_table


@dataclass(frozen=True)
class Scan(Operation):
    """Read the rows that meet a condition into private memory, in stored order. Opening the copy is timed. If the
    engine cannot evaluate such a condition, the whole table is read and filtered in memory."""

    selectivity: float = share(0.01)
    kind: str = word(Kind.RANGE.value, *(kind.value for kind in Kind if kind is not Kind.RANGE), spelled=True)
    stored: str = word("shuffled", "sorted")
    columns: int | str = count(ALL, ALL)

    name: ClassVar[str] = "scan"
    meaning: ClassVar[str] = "read the rows that meet a condition on one column, chosen by the data"
    use: ClassVar[str] = "scan|filter {selectivity:P} percent [by {kind}] [of {columns:K} columns]"

    @property
    def title(self) -> str:
        """The name shown to people, such as 'scan 1% by range' or 'scan 1% by range of a sorted column, 2 columns'."""
        words = f"scan {self.selectivity * 100:g}% by {self.kind}" + " of a sorted column" * (self.stored == "sorted")
        return words + (f", {self.columns} columns" if self.columns != ALL else "")

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a refusal reason if the table has fewer columns than are read."""
        return too_few_columns(self.columns, schema)

    def fallback(self, adapter: Any) -> str:
        """Return '' if the engine can evaluate this kind of condition, else READ_ALL."""
        return "" if Kind(self.kind) in adapter.offers.scan else READ_ALL

    def take_input(self, stage: OperationContext, rows: int) -> Predicate:
        """Return the condition. It is chosen from the whole data set; `rows` has no effect. Raises RefusedData if the
        data allow no such condition, or if the variant changes values of the column that the condition tests."""
        chosen = _chosen(stage.dataset, stage.rows, stage.digest, self)
        refuse_changed(stage, chosen.column)
        return chosen

    def run(self, stage: OperationContext, held: Predicate, location: Path, laps: Laps) -> Any:
        """Open the copy, read the rows, convert them to the target, and touch one byte in each page of the result."""
        return stage.answer(lambda: self._rows(stage, held, location), laps)

    def _rows(self, stage: OperationContext, asked: Predicate, location: Path) -> Any:
        adapter = cast(TabularFormat, stage.adapter)
        handle = None if self.fallback(adapter) else adapter.open(location)
        native = selection.scanned(adapter, handle, location, asked, self.expected_columns(stage))
        if handle is not None:
            handle.close()
        return native

    def expected_columns(self, stage: OperationContext, held: Any = None) -> list[str]:
        """Return the names of the columns requested."""
        return asked_columns(stage, self.columns)

    def expected_rows(self, stage: OperationContext, held: Predicate) -> np.ndarray:
        """Return the numbers of the rows that meet the condition."""
        met = predicates.mask(stage.table(stage.rows, [held.column]).column(0), held)
        return np.flatnonzero(met.to_numpy())


def refuse_changed(stage: OperationContext, name: str) -> pa.ChunkedArray:
    """Return the column `name`, which a condition tests. Raises RefusedData if the variant changes its values."""
    column = stage.table(stage.rows, [name]).column(0)
    of = stage.target
    for loss in cast(TabularFormat, stage.adapter).losses:
        if loss.holds_for(of.kind, of.strings, of.nulls) and loss.relation.expect(column) is not None:
            raise RefusedData(f"the condition is on column {name}, whose values this variant changes: {loss.what}")
    return column


@lru_cache(maxsize=1)
def _chosen(dataset: Path, rows: int, digest: str, scan: Scan) -> Predicate:
    # Cached because a worker calls it twice: for the untimed first call on a few rows and for the timed call.
    table = read_table(dataset, rows)
    return predicates.choose(table, Kind(scan.kind), scan.selectivity, stored=scan.stored, digest=digest).predicate
