"""Represent texts with few distinct values as codes, so that a test runs once per distinct text instead of once per
row.

C code assigns the codes when columns are decoded or received. Without C, or with many distinct texts, columns stay
plain.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from libraries.document_store import kernels
from libraries.document_store.queries.vectors import arrow
from libraries.document_store.shredding import Texts

MOST_TEXTS = 254
"""Maximum number of distinct texts, as in the C kernel. With more distinct texts, codes save nothing."""

# A library built before this function was added lacks it.
_kernel = getattr(kernels.library, "ds_text_codes", None)
if _kernel is not None:
    _kernel.restype = ctypes.c_uint64


class Coded:
    """Texts, each represented by an index into an array of distinct texts."""

    __slots__ = ("codes", "different")

    def __init__(self, codes: np.ndarray, different: pa.Array) -> None:
        """`codes` are integers; `different` has no duplicates. The code `len(different)` stands for a slot without
        text."""
        self.codes, self.different = codes, different

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, index: np.ndarray) -> Coded:
        """Return the texts at these positions."""
        return Coded(self.codes[index], self.different)

    def looked_up(self, known: np.ndarray) -> np.ndarray:
        """Return for each text the entry of `known` (bool) that belongs to the text. `known` has one entry for each
        distinct text. Return false for slots without text."""
        table = np.zeros(len(self.different) + 1, np.bool_)
        table[:-1] = known
        return table[self.codes]

    def plain(self) -> pa.Array:
        """Return the texts themselves."""
        return arrow.taken(self.different, self.codes)

    def to_pylist(self) -> list[Any]:
        """Return the texts as Python values."""
        different = self.different.to_pylist()
        return [different[code] for code in self.codes.tolist()]


def coded(texts: Texts, kind: Any) -> Coded | None:
    """Return the texts as codes. None if there are too many distinct texts, or if there is no C kernel."""
    count = len(texts)
    if _kernel is None or count == 0:
        return None
    codes, firsts = np.empty(count, np.int32), np.empty(MOST_TEXTS, np.uint64)
    offsets = np.ascontiguousarray(texts.offsets, np.int64)
    found = _kernel(
        ctypes.c_uint64(count), kernels.address(offsets), kernels.address(texts.data), kernels.address(codes),
        kernels.address(firsts),
    )  # fmt: skip
    if found > MOST_TEXTS:
        return None
    whole = arrow.texts(texts.offsets, texts.data, kind)
    return Coded(codes, arrow.taken(whole, firsts[:found]))


def joined(parts: Sequence[Coded]) -> Coded:
    """Concatenate the texts of several parts."""
    whole = pa.concat_arrays([part.different for part in parts]).dictionary_encode()
    place = arrow.numbers(whole.indices, np.int32)
    starts = np.cumsum([0, *(len(part.different) for part in parts)])
    codes = [place[start:][part.codes] for start, part in zip(starts, parts, strict=False)]
    return Coded(np.concatenate(codes), whole.dictionary)


def plain(values: Any) -> Any:
    """Return plain values. Codes are replaced by their texts; other values are unchanged."""
    return values.plain() if isinstance(values, Coded) else values
