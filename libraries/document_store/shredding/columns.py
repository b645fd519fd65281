"""Columns in memory: the levels of one leaf and its values, before they are encoded and after they were decoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from libraries.document_store.schema import Leaf
from libraries.document_store.values import ValueKind

KEY = 0
"""The number of the leaf of the key."""

_DTYPES: dict[ValueKind, type] = {
    ValueKind.NULL: np.bool_,
    ValueKind.MARKER: np.bool_,
    ValueKind.BOOLEAN: np.bool_,
    ValueKind.INTEGER: np.int64,
    ValueKind.DOUBLE: np.float64,
}


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """Byte strings one behind the other."""

    offsets: np.ndarray
    """int64, one more than there are strings: where each begins in `data`, and the end of the last; the first is 0."""
    data: np.ndarray
    """uint8."""

    @staticmethod
    def of(strings: Sequence[bytes]) -> Texts:
        """From a list."""
        offsets = np.zeros(len(strings) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, strings), np.int64, len(strings)), out=offsets[1:])
        return Texts(offsets, np.frombuffer(b"".join(strings), np.uint8))

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """All that they are made of."""
        return self.offsets, self.data

    def __len__(self) -> int:
        """How many strings there are."""
        return len(self.offsets) - 1

    def tolist(self) -> list[bytes]:
        """All of them."""
        whole, ends = self.data.tobytes(), self.offsets.tolist()
        return [whole[start:end] for start, end in pairwise(ends)]


Values = np.ndarray | Texts


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The tokens of one leaf in the order of the records, delimiters of arrays among them."""

    leaf: Leaf
    levels: np.ndarray
    """uint8: definition levels, with the leaf's flag of null, and delimiters (paper, 3.1)."""
    values: Values
    """One for each level that is the leaf's largest; the key's has one for each token, whose level is 0 where the
    record was deleted (3.3). Leaves without values have an empty array."""

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """All that it is made of."""
        return self.levels, *(self.values.arrays if isinstance(self.values, Texts) else (self.values,))

    @property
    def present(self) -> np.ndarray:
        """bool, for each token: whether it has a value."""
        if self.leaf.number == KEY:
            return np.ones(len(self.levels), np.bool_)
        if not self.leaf.has_values:
            return np.zeros(len(self.levels), np.bool_)
        return np.asarray(self.levels == self.leaf.max_level)

    @property
    def masked(self) -> np.ndarray:
        """The levels without the flag of null, uint8."""
        return np.asarray(self.levels & np.uint8(self.leaf.null_flag - 1))


@dataclass(frozen=True, slots=True, eq=False)
class CodedColumn:
    """A column of texts of which few differ: each once, and which of them each value is."""

    leaf: Leaf
    levels: np.ndarray
    """As of a Column."""
    codes: np.ndarray
    """int32, in place of each value: its number among `different`."""
    different: Texts
    """None of them twice."""

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """All that it is made of."""
        return self.levels, self.codes, *self.different.arrays

    @property
    def masked(self) -> np.ndarray:
        """As of a Column."""
        return np.asarray(self.levels & np.uint8(self.leaf.null_flag - 1))


def is_text(kind: ValueKind) -> bool:
    """Whether the values of such a leaf are Texts."""
    return kind in (ValueKind.TEXT, ValueKind.BINARY, ValueKind.REST)


def values_of(kind: ValueKind, values: Sequence[object]) -> Values:
    """The values of a column from Python's: int, float, bool, or bytes for what is Texts."""
    if is_text(kind):
        return Texts.of(values)  # type: ignore[arg-type]
    return np.array(values, _DTYPES[kind])


def dtype_of(kind: ValueKind) -> np.dtype:
    """Of the values of such a leaf that are no Texts."""
    return np.dtype(_DTYPES[kind])


def key_column(leaf: Leaf, keys: Sequence[int] | Sequence[str] | np.ndarray, is_antimatter: np.ndarray) -> Column:
    """The key's column of records that are there and of records that were deleted (bool array, one for each key)."""
    levels = np.where(np.asarray(is_antimatter, np.bool_), np.uint8(0), np.uint8(1))
    if leaf.kind is ValueKind.TEXT:
        return Column(leaf, levels, Texts.of([str(key).encode() for key in keys]))
    return Column(leaf, levels, np.asarray(keys, np.int64))
