"""From a filter to the row groups that are read, for all files at once.

One vectorised pruning over the compact metadata of all of them: a query that no file can answer touches none, and costs
the same for one file as for hundreds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from libraries.near_storage.parquet.compact import CompactMetadata
from libraries.near_storage.parquet.pruning import prune
from libraries.near_storage.predicates.tree import Predicate


@dataclass(frozen=True)
class Chosen:
    """Row groups of one file that may have rows that match."""

    file: int
    groups: npt.NDArray[np.int64]
    """Numbers of row groups within the file, ascending."""
    all_match: npt.NDArray[np.bool_]
    """Of each: whether every row matches, so that nothing is left to filter."""


def choose(metadata: CompactMetadata, where: Predicate | None) -> list[Chosen]:
    """The row groups to read of each file, in the order of the files; files without any are left out.

    `where` is bound to the schema; None keeps all. Row groups without rows are left out.
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
    # Groups of a file lie together, so its first one's place makes numbers within the file of places in all.
    first_of_file = np.searchsorted(metadata.file, files[firsts])
    return [
        Chosen(int(files[first]), found[first:last] - start, all_match[found[first:last]])
        for first, last, start in zip(firsts, [*firsts[1:], len(found)], first_of_file, strict=True)
    ]
