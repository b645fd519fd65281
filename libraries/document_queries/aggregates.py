"""Aggregates over Python values. Each group has a state that accepts values, merges with another state, and returns the
result.

Sums are exact: integers are added as integers, doubles as multiples of the smallest double. The result therefore does
not depend on the order of additions.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

from libraries.document_queries.errors import QueryError
from libraries.document_queries.semantics import MISSING, identity, order_key
from libraries.document_queries.values import INTEGER_HIGHEST, INTEGER_LOWEST

UNIT_BITS = 1074
"""Every finite double is a multiple of 2**-UNIT_BITS, the smallest double above 0. So sums of doubles are exact as
integers in this unit."""


class State(Protocol):
    """The state of one aggregate of one group."""

    def add(self, value: Any) -> None:
        """Add one value: the aggregate's expression, evaluated for one more tuple."""

    def merge(self, other: Any) -> None:
        """Merge in another state of the same aggregate."""

    def result(self) -> Any:
        """Return the aggregate of all values so far."""


class CountState:
    """Counts values that are neither missing nor null."""

    __slots__ = ("count",)

    def __init__(self, count: int = 0) -> None:
        self.count = count

    def add(self, value: Any) -> None:
        """Count the value."""
        self.count += value is not None and value is not MISSING

    def merge(self, other: CountState) -> None:
        """Add the other count."""
        self.count += other.count

    def result(self) -> int:
        """Return the count."""
        return self.count


class SumState:
    """The exact sum of numbers, and their count."""

    __slots__ = ("count", "double_count", "doubles", "integers", "special")

    def __init__(self) -> None:
        self.count = self.double_count = self.integers = self.doubles = 0
        self.special = 0.0
        """Sum of infinities and NaN, which no integer can represent. It is 0 if there are none."""

    def add(self, value: Any) -> None:
        """Add the value if it is a number."""
        if type(value) is int:
            self.integers += value
        elif type(value) is float:
            self.double_count += 1
            self._add_double(value)
        else:
            return
        self.count += 1

    def _add_double(self, value: float) -> None:
        if value - value != 0.0:
            self.special += value
            return
        numerator, denominator = value.as_integer_ratio()
        self.doubles += numerator << (UNIT_BITS + 1 - denominator.bit_length())

    def merge(self, other: SumState) -> None:
        """Add the other sum."""
        self.count += other.count
        self.double_count += other.double_count
        self.integers += other.integers
        self.doubles += other.doubles
        self.special += other.special

    def result(self) -> int | float | None:
        """Return the sum, rounded once, or None if there are no numbers.

        Raises QueryError for integers beyond 64 bits.
        """
        if self.double_count:
            return self._divided(1)
        if not INTEGER_LOWEST <= self.integers <= INTEGER_HIGHEST:
            raise QueryError(f"sum: {self.integers} is beyond 64 bits; use avg, or sum doubles instead of integers")
        return self.integers if self.count else None

    def as_double(self) -> float | None:
        """Return the sum as a double, rounded once, or None without numbers."""
        return self._divided(1) if self.count else None

    def _divided(self, by: int) -> float:
        if self.special != 0.0:
            return self.special
        try:
            return ((self.integers << UNIT_BITS) + self.doubles) / (by << UNIT_BITS)
        except OverflowError:
            return float("inf") if self.doubles > 0 else float("-inf")


class AverageState(SumState):
    """The exact sum divided by the count, rounded once."""

    __slots__ = ()

    def result(self) -> float | None:
        """Return the average, or None if there are no numbers."""
        return self._divided(self.count) if self.count else None


class ExtremeState:
    """Keeps the minimum or maximum of the values that are neither missing nor null, by the sort order of results."""

    __slots__ = ("highest", "key", "value")

    def __init__(self, highest: bool) -> None:
        self.highest = highest
        self.key: tuple[Any, ...] | None = None
        self.value: Any = None

    def add(self, value: Any) -> None:
        """Replace the current value if the new value is smaller (for the minimum) or larger (for the maximum)."""
        if value is None or value is MISSING:
            return
        key = order_key(value)
        if self.key is None or (key > self.key if self.highest else key < self.key):
            self.key, self.value = key, value

    def merge(self, other: ExtremeState) -> None:
        """Replace the current value if the other state's value is smaller (for the minimum) or larger (for the
        maximum)."""
        if other.key is not None:
            self.add(other.value)

    def result(self) -> Any:
        """Return the value, or None if there are no values."""
        return self.value


class DistinctState:
    """Counts distinct values that are neither missing nor null."""

    __slots__ = ("seen",)

    def __init__(self) -> None:
        self.seen: set[Hashable] = set()

    def add(self, value: Any) -> None:
        """Remember the value."""
        if value is not None and value is not MISSING:
            self.seen.add(identity(value))

    def merge(self, other: DistinctState) -> None:
        """Add the values of the other state."""
        self.seen |= other.seen

    def result(self) -> int:
        """Return the count."""
        return len(self.seen)


def new_state(function: str) -> State:
    """Return an empty state of an aggregate function."""
    if function == "count":
        return CountState()
    if function == "sum":
        return SumState()
    if function == "avg":
        return AverageState()
    if function == "count_distinct":
        return DistinctState()
    return ExtremeState(function == "max")
