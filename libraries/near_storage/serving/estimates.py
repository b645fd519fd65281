"""Estimate the bytes that each access path would send, so that the catalog can choose an access path.

Pruning shows which row groups match entirely or not at all. For the other row groups, the share of matching rows is
estimated with the constants of System R (Selinger et al., Access Path Selection, SIGMOD 1979, table 1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from libraries.filters.tree import And, Comparison, Constant, In, IsNull, Known, Not, Or, Predicate, Prefix
from libraries.near_storage.parquet.compact import CompactMetadata
from libraries.near_storage.reading.columns import leaves_of

EQUAL, RANGE, MOST_OF_LIST = 1 / 10, 1 / 3, 1 / 2
GROWTH = 2
"""Assumed ratio of decoded text to its stored chunk. The real ratio depends on codecs and dictionaries."""
LEAST_TEXT_BYTES = 8


def selectivity(where: Predicate | None) -> float:
    """Return the assumed share of rows for which the filter is true, from 0 to 1."""
    match where:
        case None:
            return 1.0
        case And(parts):
            return float(np.prod([selectivity(part) for part in parts]))
        case Or(parts):
            return 1.0 - float(np.prod([1.0 - selectivity(part) for part in parts]))
        case Not(part):
            return 1.0 - selectivity(part)
        case Comparison("==") | IsNull() | Prefix():
            return EQUAL
        case Comparison("!="):
            return 1.0 - EQUAL
        case In(_, literals):
            return min(MOST_OF_LIST, EQUAL * len(literals))
        case Known(_, value) | Constant(value):
            return 1.0 if value else 0.0
        case _:
            return RANGE


def row_bytes(schema: pa.Schema, columns: Sequence[str], metadata: CompactMetadata) -> float:
    """Return the approximate bytes that a row of these columns takes in transit: fixed widths, and the stored size of
    text."""
    stored = metadata.chunks["length"].sum(axis=0, dtype=np.int64)
    rows = max(1, int(metadata.rows.sum()))
    total = 0.0
    for name in columns:
        type_ = schema.field(name).type
        try:
            total += type_.bit_width / 8
        except ValueError:
            own = float(stored[leaves_of(schema, (name,))].sum()) / rows
            total += 4 + max(LEAST_TEXT_BYTES, GROWTH * own)
    return total


def chunk_bytes(
    metadata: CompactMetadata, groups: npt.NDArray[np.int64], leaves: Sequence[int]
) -> npt.NDArray[np.int64]:
    """Return the stored bytes of these leaf columns for each row group of `groups`. Row groups are numbered as in
    `metadata`."""
    lengths = metadata.chunks["length"]
    held = np.zeros(len(groups), np.int64)
    for leaf in leaves:
        held += lengths[groups, leaf]
    return held
