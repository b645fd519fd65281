"""The variants of one format that a study proposes for measuring. A file in the result folder stores them."""

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
    """Number of settings that differ from the default. A codec and its level count as one setting."""
    arguments: dict[str, Any] = {}
    """Arguments of pyarrow.parquet.write_table; {} for other formats."""
    sorted_by: str | None = None
    """Name of the column by which the rows are sorted; None if the rows keep the order of the table."""


class Proposals(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All proposals for a table, with the default first."""

    format: str
    proposals: tuple[Proposal, ...]

    def keep(self, folder: Path) -> None:
        """Write the proposals into a result folder."""
        (folder / FILE).write_bytes(msgspec.json.format(msgspec.json.encode(self)))


def kept(folder: Path) -> Proposals | None:
    """Return the proposals that a result folder holds; None if it holds none. Raises msgspec.MsgspecError for an
    invalid file."""
    path = folder / FILE
    return msgspec.json.decode(path.read_bytes(), type=Proposals) if path.exists() else None
