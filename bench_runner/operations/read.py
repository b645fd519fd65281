"""Reading all of the data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from bench_runner.clock import Laps
from bench_runner.operations.operation import Operation, Stage


@dataclass(frozen=True)
class Read(Operation):
    """Until every byte of the target lies in private memory."""

    name: ClassVar[str] = "read"
    sees_all: ClassVar[bool] = True
    of_images: ClassVar[bool] = True
    meaning: ClassVar[str] = "read all of the data back into what the user holds"

    def take_input(self, stage: Stage, rows: int) -> None:
        """A read has no input but the stored copy."""

    def run(self, stage: Stage, held: Any, location: Path, laps: Laps) -> Any:
        """Read, convert to the target, touch one byte in each page of the result."""
        return stage.answer(lambda: stage.adapter.read(location), laps)

    def expected_columns(self, stage: Stage) -> list[str]:
        """All, as they are stored."""
        return list(stage.schema.names)
