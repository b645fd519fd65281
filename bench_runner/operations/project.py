"""Reading some columns of all rows.

Which columns is decided by the digest of the data, so that all variants, rounds, runs and machines read the same ones.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import pyarrow as pa

from adapters.contract import ImageStorage, TabularFormat
from bench_runner.clock import Laps
from bench_runner.operations import targets
from bench_runner.operations.operation import READ_ALL, Operation, Stage
from bench_runner.operations.parameters import count

DEFAULT_COLUMNS = 4
"""`project` reads so many columns where nobody says how many: one of each type of the data set `eq`."""


@dataclass(frozen=True)
class Project(Operation):
    """From the stored copy to some of its columns in private memory, in the order asked. Opening it lies inside the
    clock. An engine without a call for it reads everything, and the columns are selected before they are converted."""

    columns: int = count(DEFAULT_COLUMNS, spelled=True)

    name: ClassVar[str] = "project"
    meaning: ClassVar[str] = "read some columns of all rows, chosen by the digest of the data from all types alike"

    @property
    def title(self) -> str:
        """'project 10 columns'."""
        return f"project {self.columns} column{'s' * (self.columns != 1)}"

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """There must be as many columns."""
        if self.columns <= len(schema):
            return None
        return f"{self.columns} columns are asked for, the table has {len(schema)}"

    def fallback(self, adapter: TabularFormat | ImageStorage) -> str:
        """What stands for the engine's own call where it has none."""
        return "" if isinstance(adapter, TabularFormat) and adapter.offers.project else READ_ALL

    def take_input(self, stage: Stage, rows: int) -> list[str]:
        """The names of the columns."""
        return chosen_columns(stage.schema, stage.digest, self.columns)

    def run(self, stage: Stage, held: list[str], location: Path, laps: Laps) -> Any:
        """Open, read the columns, convert to the target, touch one byte in each page of the result."""
        return stage.answer(lambda: self._columns(cast(TabularFormat, stage.adapter), held, location), laps)

    def _columns(self, adapter: TabularFormat, names: list[str], location: Path) -> Any:
        if self.fallback(adapter):
            return targets.select(adapter.read(location), adapter.native_read, names)
        handle = adapter.open(location)
        assert handle.project is not None
        native = handle.project(names)
        handle.close()
        return native

    def expected_columns(self, stage: Stage) -> list[str]:
        """Those that were asked for, in that order."""
        return chosen_columns(stage.schema, stage.digest, self.columns)


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
