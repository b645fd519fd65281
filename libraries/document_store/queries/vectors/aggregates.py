"""Compute aggregates of all groups at once, over vectors. The results equal those of `document_queries/aggregates.py`.

An aggregate returns a column with one result per group. If the tuples come in several batches, the aggregate can
convert its groups to Python states, which can be merged.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pyarrow.compute as pc

from libraries.document_queries.aggregates import (
    UNIT_BITS,
    AverageState,
    CountState,
    DistinctState,
    ExtremeState,
    State,
    SumState,
)
from libraries.document_queries.semantics import identity
from libraries.document_store.queries.vectors import arrow
from libraries.document_store.queries.vectors.coded import Coded
from libraries.document_store.queries.vectors.codes import codes_of, compressed
from libraries.document_store.queries.vectors.slots import Values
from libraries.document_store.queries.vectors.vector import BOOLEAN, DOUBLE, INTEGER, MISSING, NULL, Vector, take

Results = Vector | list[Any]
"""One result per group: a vector if all results that are not null have one kind, otherwise Python values."""

EXACT_BITS = 53
"""Doubles represent all integers of this many bits exactly."""


class Aggregated(Protocol):
    """One aggregate of all groups."""

    def results(self) -> Results:
        """Return the result of each group."""

    def states(self) -> list[State]:
        """Return the state of each group."""


class Counts:
    """`count` of tuples, or of values that are neither missing nor null."""

    def __init__(
        self, groups: np.ndarray, group_count: int, operand: Vector | None, tuples: np.ndarray | None = None
    ) -> None:
        """`groups` is the group of each entry. Without an operand, `tuples` is how many tuples each entry
        represents."""
        if operand is not None:
            groups = _of_values(groups, operand)
        # Doubles represent every possible number of tuples in memory.
        self.counts = np.bincount(groups, tuples, group_count).astype(np.int64)

    def results(self) -> Results:
        """Return the counts as a vector."""
        return Vector(len(self.counts), INTEGER, {INTEGER: self.counts})

    def states(self) -> list[State]:
        """Return the counts as states."""
        return [CountState(count) for count in self.counts.tolist()]


class Sums:
    """`sum` and `avg`: exact."""

    def __init__(self, groups: np.ndarray, group_count: int, operand: Vector, function: str) -> None:
        """`groups` is the group of each tuple."""
        self.function, self.group_count = function, group_count
        integers = operand.values.get(INTEGER, np.zeros(0, np.int64))
        doubles = operand.values.get(DOUBLE, np.zeros(0))
        of_integers, of_doubles = (_of_kind(groups, operand, kind) for kind in (INTEGER, DOUBLE))
        self.integer_counts = np.bincount(of_integers, minlength=group_count)
        self.double_counts = np.bincount(of_doubles, minlength=group_count)
        self.integers = integer_sums(of_integers, integers, group_count)
        self.doubles, self.special = double_sums(of_doubles, doubles, group_count)

    def results(self) -> Results:
        """Return a vector if all sums are integers that fit, else Python values."""
        if self.function == "sum" and not self.double_counts.any() and isinstance(self.integers, np.ndarray):
            kinds = np.where(self.integer_counts > 0, np.uint8(INTEGER), np.uint8(NULL))
            return Vector(self.group_count, kinds, {INTEGER: self.integers[self.integer_counts > 0]})
        return [state.result() for state in self.states()]

    def states(self) -> list[State]:
        """Return the sums as states."""
        states: list[State] = []
        for group, total in enumerate(
            self.integers.tolist() if isinstance(self.integers, np.ndarray) else self.integers
        ):
            state = AverageState() if self.function == "avg" else SumState()
            state.integers = total
            state.double_count = int(self.double_counts[group])
            state.count = int(self.integer_counts[group]) + state.double_count
            state.doubles = self.doubles.get(group, 0)
            state.special = self.special.get(group, 0.0)
            states.append(state)
        return states


def integer_sums(groups: np.ndarray, values: np.ndarray, group_count: int) -> np.ndarray | list[int]:
    """Return the exact sum of each group: int64 if none can overflow, else Python integers."""
    if len(values) == 0:
        return np.zeros(group_count, np.int64)
    bits = max(int(values.max()), -int(values.min())).bit_length() + len(values).bit_length()
    if bits <= EXACT_BITS:
        return np.bincount(groups, values, group_count).astype(np.int64)
    # Both halves stay exact as doubles, because at most 2**21 tuples are added at a time.
    low, high = np.zeros(group_count, object), np.zeros(group_count, object)
    for start in range(0, len(values), 1 << 20):
        piece, of = values[start : start + (1 << 20)], groups[start : start + (1 << 20)]
        low += np.bincount(of, piece & 0xFFFFFFFF, group_count).astype(np.int64)
        high += np.bincount(of, piece >> 32, group_count).astype(np.int64)
    totals = (high << 32) + low
    return totals.astype(np.int64) if bits <= 62 else totals.tolist()


def double_sums(groups: np.ndarray, values: np.ndarray, group_count: int) -> tuple[dict[int, int], dict[int, float]]:
    """Return exact sums of doubles: for each group the sum of its finite doubles in units of 2**-UNIT_BITS, and the sum
    of its infinities and NaN.

    Mantissas with the same exponent are added as integers, without rounding. The sums for the different exponents,
    which are few, are added in Python.
    """
    finite = np.isfinite(values)
    special: dict[int, float] = {}
    for group, value in zip(groups[~finite].tolist(), values[~finite].tolist(), strict=True):
        special[group] = special.get(group, 0.0) + value
    groups, values = groups[finite], values[finite]
    totals: dict[int, int] = dict.fromkeys(np.unique(groups).tolist(), 0)
    mantissas, exponents = np.frexp(values)
    whole = np.ldexp(mantissas, EXACT_BITS).astype(np.int64)
    lowest = int(exponents.min()) if len(exponents) else 0
    width = int(exponents.max()) - lowest + 1 if len(exponents) else 1
    pairs, of = compressed(groups * width + (exponents - lowest), group_count * width)
    sums = integer_sums(of, whole, len(pairs))
    for pair, total in zip(pairs.tolist(), sums.tolist() if isinstance(sums, np.ndarray) else sums, strict=True):
        shift = pair % width + lowest - EXACT_BITS + UNIT_BITS
        totals[pair // width] += total << shift if shift >= 0 else total >> -shift
    return totals, special


class Extremes:
    """`min` and `max`: find the extreme value of each kind first, then the extreme of these values."""

    def __init__(self, groups: np.ndarray, group_count: int, operand: Vector, highest: bool) -> None:
        """`groups` is the group of each tuple."""
        self.highest, self.group_count = highest, group_count
        self.found: list[tuple[int, np.ndarray, Values]] = []
        for kind, values in operand.values.items():
            if len(values):
                of = _of_kind(groups, operand, kind)
                places = furthest(of, ranks(kind, values), group_count, highest)
                has = places >= 0
                index = places[has]
                self.found.append((kind, has, take(values, index)))

    def results(self) -> Results:
        """Return a vector if there is one kind, else Python values."""
        if len(self.found) > 1:
            return [state.result() for state in self.states()]
        kinds = np.full(self.group_count, NULL, np.uint8)
        for kind, has, values in self.found:
            if has.all():
                return Vector(self.group_count, kind, {kind: values})
            kinds[has] = kind
        return Vector(self.group_count, kinds, {kind: values for kind, _, values in self.found})

    def states(self) -> list[State]:
        """Return the extremes as states."""
        states = [ExtremeState(self.highest) for _ in range(self.group_count)]
        for kind, has, values in self.found:
            for group, value in zip(
                np.flatnonzero(has).tolist(), Vector(len(values), kind, {kind: values}).tolist(None), strict=True
            ):
                states[group].add(value)
        return list(states)


def ranks(kind: int, values: Values) -> np.ndarray:
    """Return an integer for each value of a kind. The integers have the same order as the values."""
    if kind == DOUBLE:
        bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
        return np.asarray(bits ^ ((bits >> 63) & 0x7FFF_FFFF_FFFF_FFFF))
    if isinstance(values, np.ndarray):
        return values.astype(np.int64) if kind == BOOLEAN else values
    if isinstance(values, Coded):
        return ranks(kind, values.different)[values.codes]
    encoded = values.dictionary_encode()
    order = arrow.numbers(pc.array_sort_indices(encoded.dictionary), np.uint64)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place[arrow.numbers(encoded.indices, np.int32)]


def furthest(groups: np.ndarray, ranks: np.ndarray, group_count: int, highest: bool) -> np.ndarray:
    """Return for each group the position of one of its extreme values, or -1 if the group has no values."""
    if group_count == 1:
        return np.array([ranks.argmax() if highest else ranks.argmin()])
    if highest:
        best = np.full(group_count, np.iinfo(np.int64).min)
        np.maximum.at(best, groups, ranks)
    else:
        best = np.full(group_count, np.iinfo(np.int64).max)
        np.minimum.at(best, groups, ranks)
    places = np.full(group_count, -1)
    reached = np.flatnonzero(ranks == best[groups])
    places[groups[reached]] = reached
    return places


class Distinct:
    """`count_distinct`: counts the unique pairs of group and value."""

    def __init__(self, groups: np.ndarray, group_count: int, operand: Vector) -> None:
        """`groups` is the group of each tuple."""
        there = _there(operand)
        if there is not None:
            operand, groups = operand.take(there), groups[there]
        coded = codes_of(operand)
        self.values = coded.values
        pairs, _ = compressed(groups * max(1, coded.size) + coded.codes, group_count * max(1, coded.size))
        self.groups, self.codes = np.divmod(pairs, max(1, coded.size))
        self.group_count = group_count

    def results(self) -> Results:
        """Return the counts as a vector."""
        counts = np.bincount(self.groups, minlength=self.group_count).astype(np.int64)
        return Vector(self.group_count, INTEGER, {INTEGER: counts})

    def states(self) -> list[State]:
        """Return the distinct values as states."""
        states = [DistinctState() for _ in range(self.group_count)]
        values = self.values.tolist(None)
        for group, code in zip(self.groups.tolist(), self.codes.tolist(), strict=True):
            states[group].seen.add(identity(values[code]))
        return list(states)


def aggregated(
    function: str, groups: np.ndarray, group_count: int, operand: Vector | None, tuples: np.ndarray | None
) -> Aggregated:
    """Return an aggregate. `groups` numbers the group of each tuple from 0; `tuples` as in `Counts`."""
    if function == "count" or operand is None:
        return Counts(groups, group_count, operand, tuples)
    if function in ("sum", "avg"):
        return Sums(groups, group_count, operand, function)
    if function == "count_distinct":
        return Distinct(groups, group_count, operand)
    return Extremes(groups, group_count, operand, function == "max")


def _there(operand: Vector) -> np.ndarray | None:
    """Return the positions of values that are neither missing nor null. None means that all values are present."""
    if isinstance(operand.kinds, int):
        return np.zeros(0, np.int64) if operand.kinds in (NULL, MISSING) else None
    return np.flatnonzero((operand.kinds != NULL) & (operand.kinds != MISSING))


def _of_values(groups: np.ndarray, operand: Vector) -> np.ndarray:
    there = _there(operand)
    return groups if there is None else groups[there]


def _of_kind(groups: np.ndarray, operand: Vector, kind: int) -> np.ndarray:
    if isinstance(operand.kinds, int):
        return groups if operand.kinds == kind else groups[:0]
    return np.asarray(groups[operand.kinds == kind])
