"""Reading some columns of all rows, once or in repeated calls with different columns.

The columns depend on the digest of the data and the number of the repetition, so that all variants, rounds, runs and
machines read the same columns. The worker decides how repetitions are timed (method rule 19).
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, cast

import pyarrow as pa

from adapters.contract import TabularFormat
from adapters.offers import Handle
from bench_runner.clock import Laps
from bench_runner.operations import targets
from bench_runner.operations.operation import READ_ALL, Calls, OperationContext, Sampling
from bench_runner.operations.parameters import ALL, count, word

DEFAULT_COLUMNS = 4
"""Default number of columns of `project`, enough for one column of each type of the data set `eq`."""


class OnHandle(Calls):
    """An operation whose parameter `handle` decides whether the copy stays open."""

    handle: str

    @property
    def keeps_open(self) -> bool:
        """True for `handle=kept`."""
        return self.handle == "kept"

    @property
    def shorter(self) -> str:
        """Advice to reopen the copy, so that opening is part of each call."""
        return "use handle=reopened"

    def refused_by_asv(self) -> str | None:
        """Return a refusal reason if the handle stays open, because asv would time the opening too."""
        return f"asv would time the opening too; use {self.name}[handle=reopened]" if self.keeps_open else None


@dataclass(frozen=True)
class Project(OnHandle):
    """Read some columns of the stored copy into private memory, in the order requested. Opening the copy is timed,
    unless the handle stays open between calls. If the engine cannot read single columns, the whole table is read, and
    the columns are selected before conversion."""

    columns: int = count(DEFAULT_COLUMNS, spelled=True)
    handle: str = word("once", "reopened", "kept")

    name: ClassVar[str] = "project"
    meaning: ClassVar[str] = "read some columns of all rows, chosen by the digest of the data from each type in turn"
    use: ClassVar[str] = "read {columns:K} columns"

    @property
    def title(self) -> str:
        """The name shown to people, such as 'project 10 columns' or 'project 10 columns, handle kept'."""
        words = f"project {self.columns} column{'s' * (self.columns != 1)}"
        return words + {"once": "", "reopened": ", reopened", "kept": ", handle kept"}[self.handle]

    @property
    def target_kinds(self) -> tuple[str, ...]:
        """DataFrames and Arrow tables if the operation is called once per sample, otherwise only Arrow tables."""
        return ("pandas", "arrow") if self.handle == "once" else ("arrow",)

    @property
    def sampling(self) -> Sampling:
        """The value "once" for `handle=once`, otherwise "calls"."""
        return "once" if self.handle == "once" else "calls"

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a refusal reason if the table has fewer columns than are read."""
        return too_few_columns(self.columns, schema)

    def fallback(self, adapter: Any) -> str:
        """Return '' if the engine has a call to read columns, else READ_ALL."""
        return "" if adapter.offers.project else READ_ALL

    def unfit(self, adapter: Any) -> str | None:
        """Return a refusal reason if the handle should stay open but the engine's call opens the file each time."""
        if not self.keeps_open or self.fallback(adapter) or adapter.offers.keeps_columns:
            return None
        return f"its call opens the file each time: {self.shorter}"

    def held(self, stage: OperationContext) -> Any:
        """Return the column names of one call, or a list of names for each call."""
        return self.take_input(stage, stage.rows) if self.sampling == "once" else super().held(stage)

    def inputs(self, stage: OperationContext, rows: int, repetitions: int) -> list[tuple[str, ...]]:
        """Return the column names of each repetition. Columns are used a second time only when too few unused columns
        are left for a repetition."""
        hands: list[tuple[str, ...]] = []
        left = list(stage.schema)
        for number in range(repetitions):
            if len(left) < self.columns:
                left = list(stage.schema)
            digest = f"{stage.digest}/{number}" if number else stage.digest
            hands.append(tuple(chosen_columns(pa.schema(left), digest, self.columns)))
            left = [field for field in left if field.name not in hands[-1]]
        return hands

    def open(self, stage: OperationContext, location: Path) -> Handle | None:
        """Open the stored copy for reading columns. Return None if the fallback reads everything."""
        adapter = cast(TabularFormat, stage.adapter)
        if self.fallback(adapter):
            return None
        return adapter.open_columns(location) if self.keeps_open else adapter.open(location)

    def run(self, stage: OperationContext, held: tuple[str, ...], location: Path, laps: Laps) -> Any:
        """Open the copy, read the columns, close the copy, and return the columns."""
        handle = self.open(stage, location)
        return self._read(stage, handle, held, location, laps, closing=True)

    def call(
        self, stage: OperationContext, handle: Handle | None, held: tuple[str, ...], location: Path, laps: Laps
    ) -> Any:
        """Read the columns, convert them to the target, and touch one byte in each page of the result."""
        return self._read(stage, handle, held, location, laps, closing=False)

    def _read(
        self,
        stage: OperationContext,
        handle: Handle | None,
        held: tuple[str, ...],
        location: Path,
        laps: Laps,
        *,
        closing: bool,
    ) -> Any:
        # Make a new list for each call: an adapter may change its argument, which must not affect the verification.
        columns = list(held)
        adapter = cast(TabularFormat, stage.adapter)
        return stage.answer(lambda: _columns(adapter, handle, columns, location, closing=closing), laps)

    def expected_columns(self, stage: OperationContext, held: tuple[str, ...] | None = None) -> list[str]:
        """Return the names of the columns, in the order requested. If `held` is None, return the names of the first
        call."""
        return list(held or self.take_input(stage, stage.rows))


def _columns(adapter: TabularFormat, handle: Handle | None, names: list[str], location: Path, *, closing: bool) -> Any:
    if handle is None:
        return targets.select(adapter.read(location), adapter.native_read, names)
    assert handle.project is not None
    native = handle.project(names)
    if closing:
        handle.close()
    return native


def too_few_columns(asked: int | str, schema: pa.Schema) -> str | None:
    """Return why a table has too few columns for this request, or None if it has enough."""
    if asked == ALL or int(asked) <= len(schema):
        return None
    return f"it reads {asked} columns, but the table has {len(schema)}"


def asked_columns(stage: OperationContext, asked: int | str) -> list[str]:
    """Return the names of the columns to read: all names in stored order if `asked` is 'all', otherwise `asked` names
    chosen by the digest of the data."""
    return list(stage.schema.names if asked == ALL else _chosen(stage.schema, stage.digest, int(asked)))


@lru_cache(maxsize=1)
def _chosen(schema: pa.Schema, digest: str, count: int) -> tuple[str, ...]:
    # An earlier call, before timing starts, fills the cache, so that only a lookup is timed.
    return tuple(chosen_columns(schema, digest, count))


def chosen_columns(schema: pa.Schema, digest: str, count: int) -> list[str]:
    """Return `count` column names, in an order other than the stored order. Columns are chosen at random by the digest,
    one of each type in turn, so that no type is left out while another type has several columns."""
    generator = random.Random(f"{digest}/project")
    by_type: dict[str, list[str]] = {}
    for field in schema:
        by_type.setdefault(str(field.type), []).append(field.name)
    piles = list(by_type.values())
    generator.shuffle(piles)
    for pile in piles:
        generator.shuffle(pile)
    chosen: list[str] = []
    while len(chosen) < count and any(piles):
        chosen += [pile.pop() for pile in piles if pile][: count - len(chosen)]
    stored = [name for name in schema.names if name in chosen]
    generator.shuffle(chosen)
    while chosen == stored and count > 1:
        generator.shuffle(chosen)
    return chosen
