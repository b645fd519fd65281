"""Columns in memory: the levels and values of one schema leaf, before encoding and after decoding.

A token of a column is one level, with its value if it has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from libraries.document_store.schema import Leaf
from libraries.document_store.values import ValueKind

KEY = 0
"""The number of the key's leaf."""

_DTYPES: dict[ValueKind, type] = {
    ValueKind.NULL: np.bool_,
    ValueKind.MARKER: np.bool_,
    ValueKind.BOOLEAN: np.bool_,
    ValueKind.INTEGER: np.int64,
    ValueKind.DOUBLE: np.float64,
}


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """Concatenated byte strings."""

    offsets: np.ndarray
    """The start of each string in `data`, and at the end the length of `data` (int64)."""
    data: np.ndarray
    """All strings in order, without separators (uint8)."""

    @staticmethod
    def of(strings: Sequence[bytes]) -> Texts:
        """Make texts from a list."""
        offsets = np.zeros(len(strings) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, strings), np.int64, len(strings)), out=offsets[1:])
        return Texts(offsets, np.frombuffer(b"".join(strings), np.uint8))

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """Return the underlying arrays."""
        return self.offsets, self.data

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def tolist(self) -> list[bytes]:
        """Return all strings."""
        whole, ends = self.data.tobytes(), self.offsets.tolist()
        return [whole[start:end] for start, end in pairwise(ends)]


Values = np.ndarray | Texts


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The tokens of one leaf in record order. They include delimiters, which are tokens that end arrays."""

    leaf: Leaf
    levels: np.ndarray
    """Definition levels with the leaf's null flag, and delimiters (uint8; paper, 3.1)."""
    values: Values
    """One value for each token whose level is the leaf's largest level.

    Only the key's column has a value for every token; in that column, tokens of deleted records have level 0 (paper,
    3.3). Leaves without values have an empty array.
    """

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """Return the underlying arrays."""
        return self.levels, *(self.values.arrays if isinstance(self.values, Texts) else (self.values,))

    @property
    def present(self) -> np.ndarray:
        """Whether each token has a value (bool)."""
        if self.leaf.number == KEY:
            return np.ones(len(self.levels), np.bool_)
        if not self.leaf.has_values:
            return np.zeros(len(self.levels), np.bool_)
        return np.asarray(self.levels == self.leaf.max_level)

    @property
    def masked(self) -> np.ndarray:
        """The levels without the null flag, uint8."""
        return np.asarray(self.levels & np.uint8(self.leaf.null_flag - 1))


@dataclass(frozen=True, slots=True, eq=False)
class CodedColumn:
    """A column of texts with few distinct values. It stores each distinct text once, and a code for each level."""

    leaf: Leaf
    levels: np.ndarray
    """As in Column."""
    codes: np.ndarray
    """For each level, the index of its text in `different` (uint8). A level without a text has the code
    len(different)."""
    different: Texts
    """The distinct texts."""

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """Return the underlying arrays."""
        return self.levels, self.codes, *self.different.arrays

    @property
    def masked(self) -> np.ndarray:
        """As in Column."""
        return np.asarray(self.levels & np.uint8(self.leaf.null_flag - 1))


def is_text(kind: ValueKind) -> bool:
    """Return whether a leaf of this kind stores its values as Texts."""
    return kind in (ValueKind.TEXT, ValueKind.BINARY, ValueKind.REST)


def values_of(kind: ValueKind, values: Sequence[object]) -> Values:
    """Make a column's values from Python values: int, float, bool, or bytes for Texts."""
    if is_text(kind):
        return Texts.of(values)  # type: ignore[arg-type]
    return np.array(values, _DTYPES[kind])


def dtype_of(kind: ValueKind) -> np.dtype:
    """Return the dtype of the values of a leaf of this kind. The kind must not be stored as Texts."""
    return np.dtype(_DTYPES[kind])


def key_column(leaf: Leaf, keys: Sequence[int] | Sequence[str] | np.ndarray, is_antimatter: np.ndarray) -> Column:
    """Return the key's column. `is_antimatter` (bool, one per key) marks deleted records."""
    levels = np.where(np.asarray(is_antimatter, np.bool_), np.uint8(0), np.uint8(1))
    if leaf.kind is ValueKind.TEXT:
        return Column(leaf, levels, Texts.of([str(key).encode() for key in keys]))
    return Column(leaf, levels, np.asarray(keys, np.int64))
