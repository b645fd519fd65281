"""A Parquet file as a node holds it: open, described, with digests of its chunks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from libraries.near_storage.parquet import compact, footer
from libraries.near_storage.reading import by_ranges, digests, footers
from libraries.near_storage.reading.columns import leaves_of


@dataclass
class Stored:
    fd: int
    compact: compact.CompactMetadata
    digests: np.ndarray
    footer: footers.ParsedFooter

    @property
    def groups(self) -> list[int]:
        """Return all row groups that have rows."""
        return np.flatnonzero(self.compact.rows).tolist()

    def leaves(self, columns: Sequence[str]) -> list[int]:
        return leaves_of(self.footer.schema, columns)

    def parts(self, groups: Sequence[int], columns: Sequence[str], **options: int) -> Iterator[pa.RecordBatch]:
        return by_ranges.parts(self.fd, self.compact, self.digests, groups, self.leaves(columns), **options)


@contextmanager
def stored(path: Path) -> Iterator[Stored]:
    with path.open("rb") as file:
        original = footer.read_footer(file)
        described = compact.from_footer(original)
        file.seek(original.start)
        parsed = footers.parse(file.read())
        yield Stored(file.fileno(), described, digests.of_file(file.fileno(), described), parsed)


def size(path: Path) -> int:
    return os.stat(path).st_size
