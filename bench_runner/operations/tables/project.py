"""Reading some columns of all rows: once, or again and again, each time other ones.

Which columns is decided by the digest of the data and the number of the repetition, so that all variants, rounds, runs
and machines read the same ones. How repetitions are clocked is the worker's business (method rule 19).
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
"""`project` reads so many columns where nobody says how many: one of each type of the data set `eq`."""


class OnHandle(Calls):
    """One whose parameter `handle` says whether the copy stays open."""

    handle: str

    @property
    def keeps_open(self) -> bool:
        """By `handle`."""
        return self.handle == "kept"

    @property
    def shorter(self) -> str:
        """Opening can lie in each call."""
        return "measure it with handle=reopened"

    def refused_by_asv(self) -> str | None:
        """With its handle kept."""
        return f"asv clocks opening too; name {self.name}[handle=reopened]" if self.keeps_open else None


@dataclass(frozen=True)
class Project(OnHandle):
    """From the stored copy to some of its columns in private memory, in the order asked. Opening it lies inside the
    clock, unless its handle is kept. An engine without a call for it reads everything, and the columns are selected
    before they are converted."""

    columns: int = count(DEFAULT_COLUMNS, spelled=True)
    handle: str = word("once", "reopened", "kept")

    name: ClassVar[str] = "project"
    meaning: ClassVar[str] = "read some columns of all rows, chosen by the digest of the data from all types alike"
    use: ClassVar[str] = "read {columns:K} columns"

    @property
    def title(self) -> str:
        """'project 10 columns', 'project 10 columns, handle kept'."""
        told = f"project {self.columns} column{'s' * (self.columns != 1)}"
        return told + {"once": "", "reopened": ", reopened", "kept": ", handle kept"}[self.handle]

    @property
    def target_kinds(self) -> tuple[str, ...]:
        """A DataFrame too, where it is called once."""
        return ("pandas", "arrow") if self.handle == "once" else ("arrow",)

    @property
    def sampling(self) -> Sampling:
        """By `handle`."""
        return "once" if self.handle == "once" else "calls"

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """There must be as many columns."""
        return too_few_columns(self.columns, schema)

    def fallback(self, adapter: Any) -> str:
        """What stands for the engine's own call where it has none."""
        return "" if adapter.offers.project else READ_ALL

    def unfit(self, adapter: Any) -> str | None:
        """A handle can be kept where the call has one."""
        if not self.keeps_open or self.fallback(adapter) or adapter.offers.keeps_columns:
            return None
        return f"its call opens the file anew each time: {self.shorter}"

    def held(self, stage: OperationContext) -> Any:
        """The names of one call, or of each."""
        return self.take_input(stage, stage.rows) if self.sampling == "once" else super().held(stage)

    def inputs(self, stage: OperationContext, rows: int, repetitions: int) -> list[tuple[str, ...]]:
        """The names of the columns of each repetition, which are no other's while there are enough."""
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
        """The stored copy open for reading columns; None where everything is read."""
        adapter = cast(TabularFormat, stage.adapter)
        if self.fallback(adapter):
            return None
        return adapter.open_columns(location) if self.keeps_open else adapter.open(location)

    def run(self, stage: OperationContext, held: tuple[str, ...], location: Path, laps: Laps) -> Any:
        """Open, call once, close."""
        handle = self.open(stage, location)
        return self._read(stage, handle, held, location, laps, closing=True)

    def call(
        self, stage: OperationContext, handle: Handle | None, held: tuple[str, ...], location: Path, laps: Laps
    ) -> Any:
        """Read the columns, convert to the target, touch one byte in each page of the result."""
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
        # A list of its own for each call: what an adapter does to it must not change what is compared.
        columns = list(held)
        adapter = cast(TabularFormat, stage.adapter)
        return stage.answer(lambda: _columns(adapter, handle, columns, location, closing=closing), laps)

    def expected_columns(self, stage: OperationContext, held: tuple[str, ...] | None = None) -> list[str]:
        """Those that were asked for, in that order; of the first call where no input is named."""
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
    """Why a table cannot give so many columns, or `all`; None when it can."""
    if asked == ALL or int(asked) <= len(schema):
        return None
    return f"{asked} columns are asked for, the table has {len(schema)}"


def asked_columns(stage: OperationContext, asked: int | str) -> list[str]:
    """The names of all columns, or of so many of them, in the order asked."""
    return list(stage.schema.names if asked == ALL else _chosen(stage.schema, stage.digest, int(asked)))


@lru_cache(maxsize=1)
def _chosen(schema: pa.Schema, digest: str, count: int) -> tuple[str, ...]:
    # Chosen while the operation is primed: inside the clock it is only looked up.
    return tuple(chosen_columns(schema, digest, count))


def chosen_columns(schema: pa.Schema, digest: str, count: int) -> list[str]:
    """`count` names of columns, in an order that is not the stored one: each type in turn gives one of its columns, as
    the digest shuffles them, so that no kind of column is left out while another has several."""
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
