"""Reading some columns of all rows: once, or again and again, each time other ones.

Which columns is decided by the digest of the data and the number of the repetition, so that all variants, rounds, runs
and machines read the same ones. How repetitions are clocked is the worker's business (method rule 19).
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import pyarrow as pa

from adapters.contract import ImageStorage, TabularFormat
from adapters.offers import Handle
from bench_runner.clock import Laps
from bench_runner.operations import targets
from bench_runner.operations.operation import READ_ALL, RepeatedOperation, Stage
from bench_runner.operations.parameters import count, word

DEFAULT_COLUMNS = 4
"""`project` reads so many columns where nobody says how many: one of each type of the data set `eq`."""


@dataclass(frozen=True)
class Project(RepeatedOperation):
    """From the stored copy to some of its columns in private memory, in the order asked. Opening it lies inside the
    clock, unless its handle is kept. An engine without a call for it reads everything, and the columns are selected
    before they are converted."""

    columns: int = count(DEFAULT_COLUMNS, spelled=True)
    handle: str = word("once", "reopened", "kept")

    name: ClassVar[str] = "project"
    adds_up: ClassVar[bool] = False
    meaning: ClassVar[str] = "read some columns of all rows, chosen by the digest of the data from all types alike"

    @property
    def title(self) -> str:
        """'project 10 columns', 'project 10 columns, handle kept'."""
        told = f"project {self.columns} column{'s' * (self.columns != 1)}"
        return told + {"once": "", "reopened": ", reopened", "kept": ", handle kept"}[self.handle]

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """There must be as many columns."""
        if self.columns <= len(schema):
            return None
        return f"{self.columns} columns are asked for, the table has {len(schema)}"

    def fallback(self, adapter: TabularFormat | ImageStorage) -> str:
        """What stands for the engine's own call where it has none."""
        return "" if isinstance(adapter, TabularFormat) and adapter.offers.project else READ_ALL

    def unfit(self, adapter: TabularFormat | ImageStorage) -> str | None:
        """A handle can be kept where the call has one."""
        if self.handle != "kept" or not isinstance(adapter, TabularFormat) or self.fallback(adapter):
            return None
        if adapter.offers.keeps_columns:
            return None
        return "its call opens the file anew each time: measure it with handle=reopened"

    @property
    def repeats(self) -> bool:
        """By `handle`."""
        return self.handle != "once"

    @property
    def asks_for_open(self) -> bool:
        """By `handle`."""
        return self.handle == "kept"

    def keeps_handle(self, adapter: TabularFormat | ImageStorage) -> bool:
        """Not where everything is read: opening would read all of it, outside the clock."""
        return self.asks_for_open and not self.fallback(adapter)

    def take_input(self, stage: Stage, rows: int) -> tuple[str, ...]:
        """The names of the columns of the first repetition."""
        return self.inputs(stage, rows, 1)[0]

    def inputs(self, stage: Stage, rows: int, repetitions: int) -> list[tuple[str, ...]]:
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

    def open(self, stage: Stage, location: Path) -> Handle | None:
        """The stored copy open for reading columns; None where everything is read."""
        adapter = cast(TabularFormat, stage.adapter)
        if self.fallback(adapter):
            return None
        return adapter.open_columns(location) if self.asks_for_open else adapter.open(location)

    def run(self, stage: Stage, held: tuple[str, ...], location: Path, laps: Laps) -> Any:
        """Open, call once, close."""
        handle = self.open(stage, location)
        return self._read(stage, handle, held, location, laps, closing=True)

    def call(self, stage: Stage, handle: Handle | None, held: tuple[str, ...], location: Path, laps: Laps) -> Any:
        """Read the columns, convert to the target, touch one byte in each page of the result."""
        return self._read(stage, handle, held, location, laps, closing=False)

    def _read(
        self, stage: Stage, handle: Handle | None, held: tuple[str, ...], location: Path, laps: Laps, *, closing: bool
    ) -> Any:
        # A list of its own for each call: what an adapter does to it must not change what is compared.
        columns = list(held)
        adapter = cast(TabularFormat, stage.adapter)
        return stage.answer(lambda: _columns(adapter, handle, columns, location, closing=closing), laps)

    def expected_columns(self, stage: Stage) -> list[str]:
        """Those that were asked for, in that order."""
        return chosen_columns(stage.schema, stage.digest, self.columns)

    def columns_of(self, stage: Stage, held: tuple[str, ...]) -> list[str]:
        """Those that the call was asked for."""
        return list(held)


def _columns(
    adapter: TabularFormat, handle: Handle | None, names: list[str], location: Path, *, closing: bool
) -> Any:
    if handle is None:
        return targets.select(adapter.read(location), adapter.native_read, names)
    assert handle.project is not None
    native = handle.project(names)
    if closing:
        handle.close()
    return native


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
