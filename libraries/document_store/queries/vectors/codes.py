"""Represent values as codes for grouping. Two codes are equal exactly if the values have the same kind and bits."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from libraries.document_store import kernels
from libraries.document_store.queries.vectors import arrow
from libraries.document_store.queries.vectors.coded import Coded
from libraries.document_store.queries.vectors.slots import Values, View
from libraries.document_store.queries.vectors.vector import (
    BINARY,
    DOUBLE,
    INTEGER,
    MISSING,
    NULL,
    TEXT,
    WITHOUT_VALUES,
    Index,
    Vector,
    concatenated,
    of_view,
)

FEW = 256
"""If the integers of a part are in a range smaller than this, they get codes immediately, while they are still in the
CPU cache."""
SPARE = 4
"""If integers are in a range smaller than this multiple of their number, look them up in an array instead of hashing
them."""


class Codes(NamedTuple):
    """Values as codes from 0 to size - 1. `values` has the value of each code, also of codes that do not occur.

    The codes are integers of any width.
    """

    codes: np.ndarray
    size: int
    values: Vector


def codes_of(vector: Vector) -> Codes:
    """Return the codes of a vector's values."""
    if isinstance(vector.kinds, int):
        if vector.kinds in WITHOUT_VALUES:
            return Codes(np.zeros(vector.count, np.int64), 1, Vector(1, vector.kinds, {}))
        codes, distinct = _coded(vector.kinds, vector.values[vector.kinds])
        return Codes(codes, len(distinct), Vector(len(distinct), vector.kinds, {vector.kinds: distinct}))
    whole, size, found = np.empty(vector.count, np.int64), 0, []
    for kind, values in vector.values.items():
        codes, distinct = _coded(kind, values)
        part = Vector(len(distinct), kind, {kind: distinct})
        whole[vector.kinds == kind] = codes + size if size else codes
        found.append(part)
        size += part.count
    for kind in WITHOUT_VALUES:
        chosen = vector.kinds == kind
        if not chosen.any():
            continue
        part = Vector(1, kind, {})
        whole[chosen] = size
        found.append(part)
        size += part.count
    return Codes(whole, size, concatenated(found) if found else Vector(0, NULL, {}))


def key_of_view(view: View, kind: int, level: int, index: Index) -> Codes | Vector:
    """Return the values at a position like `vector.of_view`, but as codes if the column is stored as codes in
    memory."""
    if view.coded is None:
        return of_view(view, kind, level, index)
    codes, texts = view.coded.codes, view.coded.different
    found = [Vector(len(texts), kind, {kind: texts})]
    if view.present is not None:
        found.append(Vector(1, MISSING, {}))
        is_null = view.is_null(level)
        if is_null.any():
            codes = np.where(is_null, np.uint8(len(texts) + 1), codes)
            found.append(Vector(1, NULL, {}))
    size = len(texts) + len(found) - 1
    return Codes(codes if index is None else codes[index], size, concatenated(found))


def codes_if_few(vector: Codes | Vector) -> Codes | Vector:
    """Return the codes of a vector's values if it is clear without hashing that few are distinct. Otherwise return the
    vector."""
    if isinstance(vector, Codes):
        return vector
    for kind, values in vector.values.items():
        if kind == DOUBLE or (kind in (TEXT, BINARY) and not isinstance(values, Coded)):
            return vector
        if kind == INTEGER and len(values) and int(values.max()) - int(values.min()) >= FEW:
            return vector
    return codes_of(vector)


def codes_of_all(parts: Sequence[Codes | Vector]) -> Codes:
    """Return the codes of all values of several parts, concatenated."""
    if not all(isinstance(part, Codes) for part in parts):
        vectors = [part.values.take(part.codes) if isinstance(part, Codes) else part for part in parts]
        return codes_of(concatenated(vectors))
    known = [part for part in parts if isinstance(part, Codes)]
    different = codes_of(concatenated([part.values for part in known]))
    starts = np.cumsum([0, *(part.size for part in known)])
    codes = [different.codes[start:][part.codes] for start, part in zip(starts, known, strict=False)]
    return Codes(np.concatenate(codes), different.size, different.values)


def _coded(kind: int, values: Values) -> tuple[np.ndarray, Values]:
    if kind in (TEXT, BINARY):
        if isinstance(values, Coded):
            return values.codes.astype(np.int64), values.different
        encoded = values.dictionary_encode()
        return arrow.numbers(encoded.indices, np.int32).astype(np.int64), encoded.dictionary
    if kind == INTEGER:
        return _coded_integers(values)
    if kind == DOUBLE:
        bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
        codes, distinct = _hashed(bits)
        return codes, distinct.view(np.float64)
    return values.astype(np.int64), np.array([False, True])


def _coded_integers(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if len(values) == 0:
        return values, values
    lowest, highest = int(values.min()), int(values.max())
    if highest - lowest < SPARE * len(values):
        return values - lowest, lowest + np.arange(highest - lowest + 1)
    return _hashed(values)


def _hashed(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    encoded = arrow.integers(values).dictionary_encode()
    return arrow.numbers(encoded.indices, np.int32).astype(np.int64), arrow.numbers(encoded.dictionary, np.int64)


def compressed(codes: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes that occur, without duplicates. Also return for each value the position of the value's code
    among the returned codes."""
    if size <= max(SPARE * len(codes), 1 << 16):
        occurs = np.zeros(size, np.bool_)
        occurs[codes] = True
        found = np.flatnonzero(occurs)
        if len(found) == size:
            return found, codes
        number = np.empty(size, np.int64)
        number[found] = np.arange(len(found))
        return found, number[codes]
    numbers, found = _hashed(codes)
    return found, numbers


@dataclass(frozen=True)
class Groups:
    """Groups of tuples with equal keys: the group of each tuple, the number of groups, and for each key its value in
    each group."""

    groups: np.ndarray
    count: int
    keys: list[Vector]


def grouped(count: int, keys: Sequence[Codes]) -> Groups:
    """Return the groups of `count` tuples by the codes of their keys. Without keys, all tuples are in one group."""
    groups, group_count, found_keys = np.zeros(count, np.int64), 1, list[Vector]()
    for coded in keys:
        size = max(1, coded.size)
        codes = coded.codes if group_count == 1 else groups * size + coded.codes
        pairs, groups = compressed(codes, group_count * size)
        before, codes = np.divmod(pairs, size)
        found_keys = [*(earlier.take(before) for earlier in found_keys), coded.values.take(codes)]
        group_count = len(pairs)
    return Groups(groups, group_count, found_keys)


def counts_of(codes: np.ndarray) -> np.ndarray:
    """Return how often each code occurs (int64), from code 0 to the highest code that occurs, or to 255."""
    if codes.dtype != np.uint8 or not kernels.NATIVE:
        return np.bincount(codes)
    counts, codes = np.zeros(256, np.int64), np.ascontiguousarray(codes)
    kernels.loaded().ds_count_bytes(ctypes.c_uint64(len(codes)), kernels.address(codes), kernels.address(counts))
    return counts


def counted(count: int, keys: Sequence[Codes | Vector]) -> tuple[list[Codes], np.ndarray] | None:
    """Return the distinct keys of `count` tuples, and how many tuples have each of these keys.

    Returns None if a key has no codes, or if there could be more distinct keys than tuples.
    """
    if not keys:
        return [], np.array([count])
    known = [key for key in keys if isinstance(key, Codes)]
    sizes = [max(1, key.size) for key in known]
    if len(known) < len(keys) or math.prod(sizes) > count:
        return None
    if len(known) == 1:
        counts = counts_of(known[0].codes)
        occurring = np.flatnonzero(counts)
        return [known[0]._replace(codes=occurring)], counts[occurring]
    whole = known[0].codes.astype(np.int64)
    for key, size in zip(known[1:], sizes[1:], strict=True):
        whole = whole * size + key.codes
    counts = np.bincount(whole)
    occurring = np.flatnonzero(counts)
    places = np.unravel_index(occurring, sizes)
    return [key._replace(codes=place) for key, place in zip(known, places, strict=True)], counts[occurring]
