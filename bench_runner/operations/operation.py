"""What every operation is: its parameters, its input, what lies inside the clock, and the answer that it must give.

docs/operations.md says the same to the reader. Operations know targets and adapters, but neither processes nor probes:
the worker brings those around `run`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from adapters.contract import ImageStorage, OwnCall, TabularFormat
from adapters.spelling import spell
from bench_runner.clock import Laps
from bench_runner.operations import targets
from data_generator.cache import read_table

PRIMER_ROWS = 1_000
"""An operation is primed on so many rows of the same schema, never at full size (rule 2)."""
PRIMER_IMAGES = 50
"""It is primed on so many images, of which one may be as large as a thousand rows."""
READ_ALL = "read-all"
"""What stands for a call that the engine does not have: everything is read, and selected from afterwards."""


@dataclass(frozen=True)
class Stage:
    """What an operation may use in its worker: the adapter, the target, and the cached data set with its digest."""

    adapter: TabularFormat | ImageStorage
    target: targets.Target
    dataset: Path
    digest: str
    rows: int

    @property
    def primer_rows(self) -> int:
        """How many rows or images the first call is made with."""
        return min(PRIMER_IMAGES if self.target.is_images else PRIMER_ROWS, self.rows)

    def table(self, rows: int, columns: Sequence[str] | None = None) -> pa.Table:
        """The first rows of the data set, in private memory."""
        return read_table(self.dataset, rows, columns)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the data set."""
        return self.table(0).schema


@dataclass(frozen=True)
class Operation(ABC):
    """One thing that a user does with a stored table. Its fields are its parameters."""

    name: ClassVar[str]
    writes: ClassVar[bool] = False
    """Whether it makes a stored copy; else it needs one."""
    sees_all: ClassVar[bool] = False
    """Whether its answer is all of the data: then what passes verifies the save as well."""
    of_images: ClassVar[bool] = False
    """Whether it can be done with images too."""
    own_call: ClassVar[OwnCall | None] = None
    """The call that an engine may have of its own for it; without one everything is read and selected from."""
    meaning: ClassVar[str]
    """One sentence for readers of a report."""

    @property
    def parameters(self) -> Mapping[str, object]:
        """Its parameters by name."""
        return asdict(self)

    @property
    def spelled(self) -> str:
        """'read', 'project[columns=10]'."""
        return spell(self.name, self.parameters)

    @property
    def title(self) -> str:
        """For people: 'read', 'project 10 columns'."""
        return self.name

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Why it cannot be done with such data, whatever the format; None when it can."""
        return None

    def fallback(self, adapter: TabularFormat | ImageStorage) -> str:
        """What stands for the engine's own call where it has none, '' where it has, or none is needed."""
        if self.own_call is None or not isinstance(adapter, TabularFormat):
            return ""
        return "" if self.own_call in adapter.own_calls else READ_ALL

    @abstractmethod
    def take_input(self, stage: Stage, rows: int) -> Any:
        """Before the clock: what the user holds, in private memory."""

    @abstractmethod
    def run(self, stage: Stage, held: Any, location: Path, laps: Laps) -> Any:
        """Inside the clock. Returns what is to be verified, or None."""

    @abstractmethod
    def expected_columns(self, stage: Stage) -> list[str]:
        """The names and order of the columns of the right answer; empty when there is nothing to compare."""

    def expected(self, stage: Stage, columns: Sequence[str]) -> pa.Table:
        """After the clock: the right answer for some of its columns, computed in memory."""
        return stage.table(stage.rows, columns)
