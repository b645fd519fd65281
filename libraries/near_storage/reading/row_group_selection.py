"""Select the row groups to read for a filter, for all files at once.

The compact metadata of all files are pruned in one vectorised step. A query that matches no file opens no file, and
takes the same time for one file as for hundreds of files.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from libraries.filters.pruning import prune
from libraries.filters.tree import Predicate
from libraries.near_storage.parquet.compact import CompactMetadata


@dataclass(frozen=True)
class Chosen:
    """Row groups of one file that may have matching rows."""

    file: int
    groups: npt.NDArray[np.int64]
    """Numbers of row groups within the file, ascending."""
    all_match: npt.NDArray[np.bool_]
    """For each group, whether every row matches, so that its rows need no filtering."""


def choose(metadata: CompactMetadata, where: Predicate | None) -> list[Chosen]:
    """Return for each file the row groups to read, in the order of the files. Files without such row groups are
    omitted.

    `where` is bound to the schema; None means all row groups. Row groups without rows are omitted.
    """
    kept = metadata.rows > 0
    all_match = np.ones(len(kept), bool)
    if where is not None:
        verdict = prune(metadata, where)
        kept &= verdict.may_be_true
        all_match = verdict.certain
    found = np.flatnonzero(kept)
    if not len(found):
        return []
    files = metadata.file[found]
    firsts = np.concatenate(([0], np.flatnonzero(np.diff(files)) + 1))
    # The groups of a file are consecutive, so the position of its first group converts global to local numbers.
    first_of_file = np.searchsorted(metadata.file, files[firsts])
    return [
        Chosen(int(files[first]), found[first:last] - start, all_match[found[first:last]])
        for first, last, start in zip(firsts, [*firsts[1:], len(found)], first_of_file, strict=True)
    ]
