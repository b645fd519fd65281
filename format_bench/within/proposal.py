"""Variants of one format that a study proposes, and the file in a result folder that keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

FILE = "within.json"
"""Name of the file in the result folder."""


class Proposal(msgspec.Struct, frozen=True):
    """A variant, and how it differs from the default of its format."""

    variant: str
    change: str
    """Description of the difference; '' for the default itself."""
    parts: int
    """Number of settings that differ from the default. A level belongs to its codec."""
    arguments: dict[str, Any] = {}
    """Arguments of pyarrow.parquet.write_table; {} for other formats."""
    sorted_by: str | None = None
    """Name of the column by which the rows are sorted; None if they keep their order."""


class Proposals(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All proposals for a table, with the default first."""

    format: str
    proposals: tuple[Proposal, ...]

    def keep(self, folder: Path) -> None:
        """Write the proposals into a result folder."""
        (folder / FILE).write_bytes(msgspec.json.format(msgspec.json.encode(self)))


def kept(folder: Path) -> Proposals | None:
    """Return the proposals of a result folder; None if it has none. Raises msgspec.MsgspecError for an invalid file."""
    path = folder / FILE
    return msgspec.json.decode(path.read_bytes(), type=Proposals) if path.exists() else None
