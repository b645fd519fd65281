"""Values of many tuples at once, in numpy and pyarrow, for generated code over columns.

A vector has one value per tuple. It stores the kind of each value, and for each kind a dense array of the values.
Generated code makes no vectors of arrays and objects; only `arrow_columns.py` does. `document_queries/semantics.py`
defines the meaning of the functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from libraries.document_store.errors import CorruptError
from libraries.document_store.queries.vectors import arrow
from libraries.document_store.queries.vectors.coded import Coded, joined, plain
from libraries.document_store.queries.vectors.slots import Values, View
from libraries.document_store.values import ValueKind

MISSING = 255
NULL = int(ValueKind.NULL)
BOOLEAN, INTEGER, DOUBLE = int(ValueKind.BOOLEAN), int(ValueKind.INTEGER), int(ValueKind.DOUBLE)
TEXT, BINARY = int(ValueKind.TEXT), int(ValueKind.BINARY)
NUMBERS = (INTEGER, DOUBLE)
WITHOUT_VALUES = (NULL, MISSING)

MOST_COMPARED = 16
"""Up to this number of constants, comparing every value with every constant is faster than a lookup."""

Index = np.ndarray | None
"""Positions (int64). None means all positions in order."""


class Vector:
    """One value per tuple."""

    __slots__ = ("count", "kinds", "values")

    def __init__(self, count: int, kinds: int | np.ndarray, values: dict[int, Values]) -> None:
        """`kinds` is one kind for all tuples, or one kind per tuple (uint8). `values` maps each kind to its values in
        tuple order."""
        self.count, self.kinds, self.values = count, kinds, values

    def has(self, kind: int) -> np.ndarray:
        """Return for each tuple whether its value has this kind (bool)."""
        if isinstance(self.kinds, int):
            return np.full(self.count, self.kinds == kind)
        return np.asarray(self.kinds == kind)

    def take(self, index: Index) -> Vector:
        """Return the values at these positions."""
        if index is None:
            return self
        if isinstance(self.kinds, int):
            return Vector(len(index), self.kinds, {kind: take(part, index) for kind, part in self.values.items()})
        kinds, values = self.kinds[index], {}
        for kind, part in self.values.items():
            chosen = index[kinds == kind]
            if len(chosen):
                values[kind] = take(part, (np.cumsum(self.kinds == kind) - 1)[chosen])
        return Vector(len(index), kinds, values)

    def tolist(self, missing: Any) -> list[Any]:
        """Return Python values. Raises CorruptError for texts that are not UTF-8."""
        if isinstance(self.kinds, int):
            return (
                self._converted(self.kinds)
                if self.values
                else [missing if self.kinds == MISSING else None] * self.count
            )
        whole = np.full(self.count, None, object)
        whole[self.kinds == MISSING] = missing
        for kind in self.values:
            part = np.empty(len(self.values[kind]), object)
            part[:] = self._converted(kind)
            whole[self.kinds == kind] = part
        return list(whole)

    def _converted(self, kind: int) -> list[Any]:
        part = self.values[kind]
        try:
            return list(part.tolist() if isinstance(part, np.ndarray) else part.to_pylist())
        except UnicodeDecodeError as error:
            raise CorruptError("a column has a text that is not UTF-8") from error


def take(values: Values, index: np.ndarray) -> Values:
    """Return the values at these positions."""
    return values[index] if isinstance(values, np.ndarray) else _taken(values, index)


def _taken(values: Coded | pa.Array, index: np.ndarray) -> Values:
    return values.take(index) if isinstance(values, Coded) else arrow.taken(values, index)


def concatenated(vectors: Sequence[Vector]) -> Vector:
    """Concatenate the values of several vectors."""
    if len(vectors) == 1:
        return vectors[0]
    count = sum(vector.count for vector in vectors)
    kinds: int | np.ndarray = vectors[0].kinds
    if not all(isinstance(vector.kinds, int) and vector.kinds == kinds for vector in vectors):
        kinds = np.concatenate([spelled_out(vector) for vector in vectors])
    found = {kind: [v.values[kind] for v in vectors if kind in v.values] for v in vectors for kind in v.values}
    return Vector(count, kinds, {kind: _joined(parts) for kind, parts in found.items()})


def spelled_out(vector: Vector) -> np.ndarray:
    """Return the kind of each value, uint8."""
    return np.full(vector.count, vector.kinds, np.uint8) if isinstance(vector.kinds, int) else vector.kinds


def _joined(parts: list[Values]) -> Values:
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    if all(isinstance(part, Coded) for part in parts):
        return joined(parts)
    return pa.concat_arrays([plain(part) for part in parts])


def of_view(view: View, kind: int, level: int, index: Index) -> Vector:
    """Return the values at a position that has a single branch (one kind of value). `view` and `kind` are those of the
    branch."""
    values = view.tested
    if view.present is None and values is not None:
        return Vector(len(view), kind, {kind: values}).take(index)
    return of_views(((view, kind),), level, index)


def of_views(views: Sequence[tuple[View, int]], level: int, index: Index) -> Vector:
    """Return the values at a position of this level, from the view and the kind of each branch. A tuple without a value
    is null if there is an explicit null, else missing."""
    kinds, values = _without_values(views[0][0], level), {}
    for view, kind in views:
        if view.tested is None or len(view.tested) == 0:
            continue
        np.putmask(kinds, view.reaches(level) if view.present is None else view.present, np.uint8(kind))
        values[kind] = view.dense()
    return Vector(len(kinds), kinds, values).take(index)


def kinds_of(views: Sequence[tuple[View, int]], level: int, index: Index) -> np.ndarray:
    """Return for each tuple the kind of the value at a position (uint8). The view of a branch shows for which tuples
    this branch exists."""
    kinds = _without_values(views[0][0], level)
    for view, kind in views:
        if kind != NULL:
            np.putmask(kinds, view.reaches(level), np.uint8(kind))
    return kinds if index is None else kinds[index]


def _without_values(view: View, level: int) -> np.ndarray:
    """Return for each slot the kind null if there is an explicit null at this level, else the kind missing (uint8)."""
    kinds, is_null = np.full(len(view), MISSING, np.uint8), view.is_null(level)
    if is_null.any():
        kinds[is_null] = NULL
    return kinds


def only_kinds(kinds: np.ndarray) -> Vector:
    """Return a vector that has kinds but no values, for callers that only test existence and kind. The kinds may be
    arrays and objects."""
    return Vector(len(kinds), kinds, {})


def constant(value: Any, kind: int, count: int) -> Vector:
    """Return a vector that has the same value for each tuple."""
    if kind == NULL:
        return Vector(count, NULL, {})
    if kind in (TEXT, BINARY):
        one = arrow.constants((value,), pa.large_string() if kind == TEXT else pa.large_binary())
        return Vector(count, kind, {kind: one.take(arrow.integers(np.zeros(count, np.int64)))})
    return Vector(count, kind, {kind: np.full(count, value)})


def absent(count: int) -> Vector:
    """Return a vector in which all values are missing."""
    return Vector(count, MISSING, {})


def spread(known: np.ndarray, view: View, index: Index) -> np.ndarray:
    """Return for each tuple the result of a test on its value (bool); false for tuples without a value.

    `known` has the result for each of the view's tested values (`View.tested`).
    """
    if view.present is not None and view.coded is not None:
        known = known & view.present
    elif view.present is not None:
        whole = np.zeros(len(view), np.bool_)
        whole[view.present] = known
        known = whole
    return known if index is None else known[index]


def compare_texts(values: Values, operator: str, value: Any) -> np.ndarray:
    """Return for each text or binary the result of a bytewise comparison with a constant (bool)."""
    if isinstance(values, Coded):
        return values.looked_up(compare_texts(values.different, operator, value))
    return arrow.bools(_ARROW[operator](values, arrow.constants((value,), values.type)[0]))


def is_prefix(values: Values, text: str) -> np.ndarray:
    """Return for each of `values` whether it begins with `text` (bool)."""
    if isinstance(values, Coded):
        return values.looked_up(is_prefix(values.different, text))
    return arrow.bools(pc.starts_with(values, text))


def is_among(values: Values, several: Sequence[Any]) -> np.ndarray:
    """Return for each text or binary whether it is in `several` (bool)."""
    if isinstance(values, Coded):
        return values.looked_up(is_among(values.different, several))
    if len(several) > MOST_COMPARED:
        return arrow.bools(pc.is_in(values, arrow.constants(several, values.type)))
    found = compare_texts(values, "=", several[0])
    for value in several[1:]:
        found |= compare_texts(values, "=", value)
    return found


def compare(left: Vector, operator: str, right: Vector) -> np.ndarray:
    """Return for each tuple whether the comparison is true (bool)."""
    found = np.zeros(left.count, np.bool_)
    for kind in left.values:
        for other in right.values:
            if kind == other or (kind in NUMBERS and other in NUMBERS):
                both = np.flatnonzero(left.has(kind) & right.has(other))
                if len(both):
                    found[both] = _compared(left.take(both).values[kind], operator, right.take(both).values[other])
    return found


def _compared(left: Values, operator: str, right: Values) -> np.ndarray:
    if not isinstance(left, np.ndarray):
        return arrow.bools(_ARROW[operator](plain(left), plain(right)))
    if left.dtype == np.int64 and right.dtype == np.float64:
        return _NUMPY[operator](_signs(left, right), 0) & ~np.isnan(right)
    if left.dtype == np.float64 and right.dtype == np.int64:
        return _NUMPY[operator](0, _signs(right, left)) & ~np.isnan(left)
    known = _NUMPY[operator](left, right)
    if operator == "!=" and left.dtype == np.float64:
        known &= (left == left) & (right == right)
    return np.asarray(known)


def _signs(integers: np.ndarray, doubles: np.ndarray) -> np.ndarray:
    """Return -1, 0 or 1 for each pair if the integer is less than, equal to or greater than the double. The comparison
    is exact."""
    whole = np.floor(doubles)
    above, below = doubles >= 2.0**63, doubles < -(2.0**63)
    within = ~(above | below | np.isnan(doubles))
    floors = np.zeros(len(doubles), np.int64)
    floors[within] = whole[within].astype(np.int64)
    signs = np.sign(np.where(integers > floors, 1, np.where(integers < floors, -1, np.where(doubles > whole, -1, 0))))
    return np.where(above, -1, np.where(below, 1, signs))


def length(of: Vector) -> Vector:
    """Return the number of characters of each text; null for other values."""
    if TEXT not in of.values:
        return Vector(of.count, NULL, {})
    return _where(of, TEXT, INTEGER, _lengths(of.values[TEXT]))


def _lengths(texts: Values) -> np.ndarray:
    if isinstance(texts, Coded):
        return _lengths(texts.different)[texts.codes]
    return arrow.numbers(pc.utf8_length(texts), np.int64)


def floor_divide(of: Vector, divisor: int) -> Vector:
    """Return the integer quotients of integers and a positive divisor; null for other values."""
    return _where(of, INTEGER, INTEGER, of.values[INTEGER] // divisor) if INTEGER in of.values else _nulls(of)


def modulo(of: Vector, divisor: int) -> Vector:
    """Return the remainders of integers and a positive divisor; null for other values."""
    return _where(of, INTEGER, INTEGER, of.values[INTEGER] % divisor) if INTEGER in of.values else _nulls(of)


def _nulls(of: Vector) -> Vector:
    return Vector(of.count, NULL, {})


def _where(of: Vector, kind: int, new_kind: int, values: Values) -> Vector:
    if isinstance(of.kinds, int):
        return Vector(of.count, new_kind, {new_kind: values})
    kinds = np.where(of.kinds == kind, np.uint8(new_kind), np.uint8(NULL))
    return Vector(of.count, kinds, {new_kind: values})


def minus(left: Vector, right: Vector) -> Vector:
    """Return differences of numbers; null for everything else."""
    kinds = np.full(left.count, NULL, np.uint8)
    parts: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {INTEGER: [], DOUBLE: []}
    for kind in NUMBERS:
        for other in NUMBERS:
            if kind in left.values and other in right.values:
                both = np.flatnonzero(left.has(kind) & right.has(other))
                if len(both):
                    _subtract(left.take(both).values[kind], right.take(both).values[other], both, parts)
    values = {}
    for kind, found in parts.items():
        if found:
            places = np.concatenate([place for place, _ in found])
            order = np.argsort(places)
            kinds[places] = kind
            values[kind] = np.concatenate([part for _, part in found])[order]
    return Vector(left.count, kinds, values)


def _subtract(
    left: np.ndarray, right: np.ndarray, places: np.ndarray, parts: dict[int, list[tuple[np.ndarray, np.ndarray]]]
) -> None:
    if left.dtype == np.float64 or right.dtype == np.float64:
        with np.errstate(invalid="ignore", over="ignore"):
            parts[DOUBLE].append((places, left.astype(np.float64) - right.astype(np.float64)))
        return
    difference = left - right
    # A difference overflows exactly if the operands' signs differ and the result's sign differs from the left
    # operand's.
    wrapped = ((left ^ right) & (left ^ difference)) < 0
    if wrapped.any():
        pairs = zip(left[wrapped].tolist(), right[wrapped].tolist(), strict=True)
        parts[DOUBLE].append((places[wrapped], np.array([float(a - b) for a, b in pairs])))
        places, difference = places[~wrapped], difference[~wrapped]
    if len(places):
        parts[INTEGER].append((places, difference))


_ARROW = {
    **{"=": pc.equal, "!=": pc.not_equal, "<": pc.less},
    **{"<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal},
}
_NUMPY = {
    **{"=": np.equal, "!=": np.not_equal, "<": np.less},
    **{"<=": np.less_equal, ">": np.greater, ">=": np.greater_equal},
}
