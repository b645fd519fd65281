"""A table that was in memory and is stored in a file for the time of a run (see in_memory). Apart, because reports of
stored runs use this module and must not load pyarrow."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class HeldTable:
    """The file in which a table is stored, and the name of the table in reports, such as 'pandas DataFrame in
    memory'."""

    path: Path
    title: str

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"<{self.title}>"
