"""Saving all of the data: it makes the stored copy that the other operations of its chain read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from adapters.errors import RefusedData
from bench_runner.clock import Laps
from bench_runner.operations import targets
from bench_runner.operations.operation import Operation, Stage


@dataclass(frozen=True)
class Save(Operation):
    """From the user's object in hand until the call has returned and every handle is closed."""

    name: ClassVar[str] = "save"
    writes: ClassVar[bool] = True
    of_images: ClassVar[bool] = True
    meaning: ClassVar[str] = "store all of the data in a fresh place"

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

    def expected_columns(self, stage: Stage) -> list[str]:
        """Nothing: an operation that sees all of the data verifies the save of its chain."""
        return []
