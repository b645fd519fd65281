"""Loading the metadata of many stored files and keeping them in memory, as a reader does before it reads one of the
files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa

from adapters.contract import TabularFormat
from bench_runner.clock import Laps
from bench_runner.operations.operation import Operation, OperationContext
from bench_runner.operations.parameters import count


@dataclass(frozen=True)
class Metadata(Operation):
    """Read the metadata of `files` files into memory. If fewer files are stored, they are read several times. The
    figure of interest is the memory used."""

    files: int = count(640, spelled=True)

    name: ClassVar[str] = "metadata"
    meaning: ClassVar[str] = "load and hold the metadata of many stored files before one of them is read"

    @property
    def title(self) -> str:
        """The name shown to people, such as 'metadata of 640 files'."""
        return f"metadata of {self.files:,} file{'s' * (self.files != 1)}"

    def concerns(self, dataset: str, network: str = "") -> bool:
        """Return True if there is no network, because a reader keeps the metadata of files on its own machine."""
        return not network

    def unfit(self, adapter: Any) -> str | None:
        """Return a refusal reason if the adapter cannot load metadata without reading rows."""
        return None if adapter.offers.metadata else "its adapter does not declare how its reader holds metadata"

    def take_input(self, stage: OperationContext, rows: int) -> int:
        """Return the number of files, which is 1 for the untimed first call."""
        return 1 if rows < stage.rows else self.files

    def run(self, stage: OperationContext, held: int, location: Path, laps: Laps) -> Any:
        """Load the metadata, keep it in memory, and return the number of rows of each row group."""
        handle = cast(TabularFormat, stage.adapter).open(location)
        assert handle.metadata is not None
        taken = handle.metadata
        result = stage.answer(lambda: taken(held), laps)
        handle.close()
        laps.lap("engine_ns")
        return result

    def expected_columns(self, stage: OperationContext, held: Any = None) -> list[str]:
        """Return the name of the column with the number of rows of each row group."""
        return ["rows"]

    def expected(self, stage: OperationContext, columns: Sequence[str]) -> pa.Table:
        """Return a table with the number of rows of each row group of each file, in order."""
        offers = cast(TabularFormat, stage.adapter).offers
        assert offers.group_rows is not None
        file_rows = offers.file_rows or max(stage.rows, 1)
        stored = [min(file_rows, stage.rows - start) for start in range(0, max(stage.rows, 1), file_rows)]
        groups = [_groups(rows, offers.group_rows) for rows in stored]
        held = [groups[number % len(groups)] for number in range(self.files)]
        return pa.table({"rows": pa.array(np.concatenate(held), pa.int64())}).select(list(columns))


def _groups(rows: int, group_rows: int) -> np.ndarray:
    return np.minimum(rows - np.arange(0, max(rows, 1), group_rows), group_rows)
