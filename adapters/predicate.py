"""What a filter asks of one column: a closed set of conditions, with one meaning for all engines.

NaN satisfies no condition, a null satisfies `null` alone, and -0.0 equals 0.0. An adapter says it to its engine in the
engine's words; it knows no column's data, and nothing here computes an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class Kind(Enum):
    """What a condition is about."""

    RANGE = "range"
    """From the first value on, below the second."""
    EQUAL = "equal"
    """The one value."""
    IN = "in"
    """One of the values; a null among them is met by nothing."""
    NULL = "null"
    """No value."""
    PREFIX = "prefix"
    """A text that begins with the one value, letter by letter."""


VALUES = {Kind.RANGE: (2, 2), Kind.EQUAL: (1, 1), Kind.IN: (1, None), Kind.NULL: (0, 0), Kind.PREFIX: (1, 1)}
"""How many values a condition of each kind has: at least, and at most, where there is a limit."""


@dataclass(frozen=True)
class Predicate:
    """A condition on one column. `values` are Python's: int, float, bool, str, bytes, datetime (of the column's unit
    and zone), date; None only in IN. Raises ValueError for another number of values."""

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
        """The values that are none: what an engine is asked for, because in SQL a null in a list spoils the rest."""
        return tuple(value for value in self.values if value is not None)
