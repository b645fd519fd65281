"""Texts of few different values as codes: what is asked of a text is asked of each different one, once.

Columns are coded in C, while they are decoded or taken in; without C, or with many different texts, they stay as they
are.
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

MOST_TEXTS = 256
"""As in the kernel: with more different ones, codes save nothing."""

# A library that was built before this function was written lacks it.
_kernel = getattr(kernels.library, "ds_text_codes", None)
if _kernel is not None:
    _kernel.restype = ctypes.c_uint64


class Coded:
    """Texts, each by its place among the different ones."""

    __slots__ = ("codes", "different")

    def __init__(self, codes: np.ndarray, different: pa.Array) -> None:
        """`codes` are int32; `different` holds no text twice."""
        self.codes, self.different = codes, different

    def __len__(self) -> int:
        """How many texts."""
        return len(self.codes)

    def take(self, index: np.ndarray) -> Coded:
        """The texts at these positions."""
        return Coded(self.codes[index], self.different)

    def plain(self) -> pa.Array:
        """The texts themselves."""
        return arrow.taken(self.different, self.codes)

    def to_pylist(self) -> list[Any]:
        """Python's texts."""
        different = self.different.to_pylist()
        return [different[code] for code in self.codes.tolist()]


def coded(texts: Texts, kind: Any) -> Coded | None:
    """The texts as codes; None where they are many, or where there is no kernel."""
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
    """All texts of several, one after the other."""
    whole = pa.concat_arrays([part.different for part in parts]).dictionary_encode()
    place = arrow.numbers(whole.indices, np.int32)
    starts = np.cumsum([0, *(len(part.different) for part in parts)])
    codes = [place[start:][part.codes] for start, part in zip(starts, parts, strict=False)]
    return Coded(np.concatenate(codes), whole.dictionary)


def plain(values: Any) -> Any:
    """Values as they are without codes."""
    return values.plain() if isinstance(values, Coded) else values
