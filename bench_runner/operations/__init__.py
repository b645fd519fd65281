"""What is timed. An operation is one class: its input, what lies inside the clock, and the answer it must give.

docs/operations.md says the same to the reader. This module knows targets and adapters, but neither processes nor
probes: the worker brings those around `run`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from adapters.contract import ImageStorage, TabularFormat
from adapters.errors import RefusedData
from bench_runner.clock import Laps
from bench_runner.operations import targets
from data_generator.cache import read_table

PRIMER_ROWS = 1_000
"""Method rule 2: primed on 1,000 rows of the same schema, never at full size."""
PRIMER_IMAGES = 50
"""The same for images, of which one may be as large as a thousand rows."""


@dataclass(frozen=True)
class Stage:
    """What an operation may use in its worker: the adapter, the target, and the cached data set."""

    adapter: TabularFormat | ImageStorage
    target: targets.Target
    dataset: Path
    rows: int

    @property
    def primer_rows(self) -> int:
        """How many rows or images the first call is made with."""
        return min(PRIMER_IMAGES if self.target.is_images else PRIMER_ROWS, self.rows)

    def table(self, rows: int, columns: Sequence[str] | None = None) -> pa.Table:
        """The first rows of the data set, in private memory."""
        return read_table(self.dataset, rows, columns)


class Operation(ABC):
    """One thing that a user does with a stored table."""

    name: ClassVar[str]
    needs_stored_copy: ClassVar[bool]

    @abstractmethod
    def take_input(self, stage: Stage, rows: int) -> Any:
        """Before the clock: what the user holds, in private memory."""

    @abstractmethod
    def run(self, stage: Stage, held: Any, location: Path, laps: Laps) -> Any:
        """Inside the clock. Returns what is to be verified, or None."""

    @abstractmethod
    def expected(self, stage: Stage, columns: Sequence[str]) -> pa.Table | None:
        """After the clock: the right answer for some of its columns, computed in memory; None when there is nothing
        to compare."""


class Save(Operation):
    """From the user's object in hand until the call has returned and every handle is closed."""

    name = "save"
    needs_stored_copy = False

    def take_input(self, stage: Stage, rows: int) -> Any:
        """The target, made from the cached table."""
        return targets.make(stage.table(rows), stage.target)

    def run(self, stage: Stage, held: Any, location: Path, laps: Laps) -> None:
        """Convert to what the engine takes, and store it.

        Raises RefusedData where the call says that it does not take this data: only here is such an error a refusal,
        in a read or in our own code it is a fault.
        """
        try:
            native = targets.to_native(held, stage.target, stage.adapter.native)
            laps.lap("convert_ns")
            stage.adapter.save(native, location)
        except (NotImplementedError, TypeError) as error:
            text = " ".join(str(error).split())
            raise RefusedData(f"the call does not take this data ({type(error).__name__}: {text})") from error
        laps.lap("engine_ns")

    def expected(self, stage: Stage, columns: Sequence[str]) -> None:
        """A save is verified by the read of its chain."""


class Read(Operation):
    """Until every byte of the target lies in private memory."""

    name = "read"
    needs_stored_copy = True

    def take_input(self, stage: Stage, rows: int) -> None:
        """A read has no input but the stored copy."""

    def run(self, stage: Stage, held: Any, location: Path, laps: Laps) -> Any:
        """Read, convert to the target, touch one byte in each page of the result."""
        native = stage.adapter.read(location)
        laps.lap("engine_ns")
        result = targets.from_native(native, stage.target, stage.adapter.native_read)
        del native
        laps.lap("convert_ns")
        targets.touch(result)
        laps.lap("touch_ns")
        return result

    def expected(self, stage: Stage, columns: Sequence[str]) -> pa.Table:
        """The stored table itself."""
        return stage.table(stage.rows, columns)


OPERATIONS: Mapping[str, Operation] = {operation.name: operation for operation in (Save(), Read())}
