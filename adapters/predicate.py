"""Define conditions on one column: a closed set, with one meaning for all engines.

NaN satisfies no condition, a null satisfies only `null`, and -0.0 equals 0.0. Adapters translate a condition for their
engine; nothing here evaluates it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class Kind(Enum):
    """Kind of a condition."""

    RANGE = "range"
    """At least the first value, and below the second."""
    EQUAL = "equal"
    """Equal to the value."""
    IN = "in"
    """Equal to one of the values; a null among them matches nothing."""
    NULL = "null"
    """Null."""
    PREFIX = "prefix"
    """A text that begins with the value, compared character by character."""


VALUES = {Kind.RANGE: (2, 2), Kind.EQUAL: (1, 1), Kind.IN: (1, None), Kind.NULL: (0, 0), Kind.PREFIX: (1, 1)}
"""Minimum and maximum number of values for each kind of condition; None means no limit."""


@dataclass(frozen=True)
class Predicate:
    """A condition on one column. `values` are Python values: int, float, bool, str, bytes, datetime (of the column's
    unit and zone) or date; None only in IN. Raises ValueError for a wrong number of values."""

    column: str
    kind: Kind
    values: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        least, most = VALUES[self.kind]
        if len(self.values) < least or (most is not None and len(self.values) > most):
            raise ValueError(f"{self.kind.value} has {len(self.values)} values, not {least}")
        if self.kind is not Kind.IN and any(value is None for value in self.values):
            raise ValueError(f"{self.kind.value} with a null: nothing would meet it")

    @property
    def present(self) -> tuple[Any, ...]:
        """The values that are not None. Engines get these, because a null in a SQL list invalidates the comparison."""
        return tuple(value for value in self.values if value is not None)
