"""Convert the levels of a leaf column to slots with numpy: where items begin, which items belong together, and which
have values.

A slot of depth k is one item of the k-th array around a leaf, or the single token of an array that is empty or absent.
A slot of depth 0 is a document. All leaves within the same arrays have the same slots.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from libraries.document_store.errors import CorruptError
from libraries.document_store.queries.vectors import arrow
from libraries.document_store.queries.vectors.coded import Coded, coded
from libraries.document_store.schema import Leaf
from libraries.document_store.shredding import CodedColumn, Column, Texts
from libraries.document_store.values import ValueKind

Values = Any
"""The present values of a column. Numbers and booleans are numpy arrays of int64, float64 or bool. Texts and binaries
are Coded, or pyarrow arrays of large_string or large_binary."""


class View:
    """One column at one depth of arrays, with one entry per slot."""

    __slots__ = ("_flagged", "_parents", "coded", "leaf", "levels", "present", "values")

    def __init__(self, column: Column | CodedColumn, depth: int) -> None:
        """`depth` is at most the number of arrays around the leaf. Raises CorruptError for tokens that no shredder
        writes."""
        leaf = self.leaf = column.leaf
        flag = np.uint8(leaf.null_flag - 1)
        masked, flagged, self._parents = column.levels & flag, column.levels > flag, None
        self.values: Values = None
        self.coded: Coded | None = None
        """Texts with few distinct values, as a code for each slot. The code of a slot without value is the number of
        distinct texts. If `coded` is set, `values` is None."""
        starts: np.ndarray | None = None
        if leaf.array_levels:
            starts, repetition = _slots(leaf, masked)
            if depth < len(leaf.array_levels):
                chosen = repetition <= depth
                starts, repetition = starts[chosen], repetition[chosen]
            masked, flagged = masked[starts], flagged[starts]
            self._parents = repetition
        self.levels = masked
        """For each slot, the deepest level at which a value exists (uint8)."""
        self._flagged = flagged
        self.present: np.ndarray | None = None
        """For each slot, whether it has a value (bool). None means that all slots have one. Set only if `depth` is the
        number of arrays around the leaf."""
        if not leaf.has_values or depth < len(leaf.array_levels):
            return
        if isinstance(column, CodedColumn):
            codes = column.codes if starts is None else column.codes[starts]
            self.coded = Coded(codes, arrow.texts(column.different.offsets, column.different.data, _kind(leaf)))
            has_value = masked == leaf.max_level
            self.present = None if has_value.all() else has_value
            return
        self.values = _values(column)
        if len(self.values) != len(masked):
            self.present = masked == leaf.max_level
            if np.count_nonzero(self.present) != len(self.values):
                raise CorruptError(f"column {leaf.number} ({leaf.path}) has {len(self.values)} values, "
                                   f"but its levels require {np.count_nonzero(self.present)}")  # fmt: skip

    def __len__(self) -> int:
        return len(self.levels)

    @property
    def tested(self) -> Values:
        """The values to which a condition applies its test. `vector.spread` then assigns the results to tuples. Coded
        texts have one entry per slot, other values one entry per value."""
        return self.values if self.coded is None else self.coded

    def dense(self) -> Values:
        """Return the present values."""
        if self.coded is None or self.present is None:
            return self.tested
        return self.coded.take(np.flatnonzero(self.present))

    def reaches(self, level: int) -> np.ndarray:
        """Return for each slot whether a value exists down to this level (bool)."""
        return np.asarray(self.levels >= level)

    def is_null(self, level: int) -> np.ndarray:
        """Return for each slot whether there is an explicit null at this level (bool)."""
        return np.asarray(self._flagged & (self.levels == level - 1))

    def parents(self, depth: int) -> np.ndarray:
        """Return for each slot of this view the number of the slot at `depth` that encloses it (int64)."""
        assert self._parents is not None
        return np.asarray(np.cumsum(self._parents < depth) - 1)


def _slots(leaf: Leaf, masked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of all tokens except delimiters, and for each of these tokens the number of arrays that were
    open before it and stay open. 0 means that a document begins.

    A token keeps those arrays open whose levels it reaches. A token below the level of the innermost open array is a
    delimiter and ends this array.
    """
    highest = leaf.max_level + 2
    levels = np.arange(highest)
    around = np.array(leaf.array_levels)
    open_arrays = np.searchsorted(around, levels, side="right").astype(np.uint8)
    innermost = np.concatenate((np.zeros(1, np.uint8), around.astype(np.uint8)))[open_arrays]
    if len(masked) and int(masked.max()) > leaf.max_level:
        found = f"level {int(masked.max())}, but its highest level is {leaf.max_level}"
        raise CorruptError(f"column {leaf.number} ({leaf.path}) stores {found}")
    before = masked[:-1]
    is_slot = np.ones(len(masked), np.bool_)
    np.greater_equal(masked[1:], innermost[before], out=is_slot[1:])
    repetition = np.zeros(len(masked), np.uint8)
    repetition[1:] = open_arrays[before]
    starts = np.flatnonzero(is_slot)
    return starts, repetition[starts]


def _kind(leaf: Leaf) -> pa.DataType:
    return pa.large_string() if leaf.kind is ValueKind.TEXT else pa.large_binary()


def _values(column: Column) -> Values:
    values, kind = column.values, _kind(column.leaf)
    if not isinstance(values, Texts):
        return values
    return coded(values, kind) or arrow.texts(values.offsets, values.data, kind)
