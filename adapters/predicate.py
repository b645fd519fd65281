"""Define the conditions on one column by which a scan selects rows. Conditions mean the same for all engines.

NaN satisfies no condition, a null satisfies only `null`, and -0.0 equals 0.0. Adapters translate a condition for their
engine; this module does not evaluate conditions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class Kind(Enum):
    """The comparison that a condition makes with the values of its column."""

    RANGE = "range"
    """Greater than or equal to the first value, and less than the second value."""
    EQUAL = "equal"
    """Equal to the value."""
    IN = "in"
    """Equal to one of the values. A null among the values matches nothing."""
    NULL = "null"
    """The column is null in this row. Such a condition has no values."""
    PREFIX = "prefix"
    """The column is text that begins with the value. The comparison respects upper and lower case."""


VALUES = {Kind.RANGE: (2, 2), Kind.EQUAL: (1, 1), Kind.IN: (1, None), Kind.NULL: (0, 0), Kind.PREFIX: (1, 1)}
"""Minimum and maximum number of values for each kind of condition; None means no limit."""


@dataclass(frozen=True)
class Predicate:
    """A condition on one column.

    `values` are int, float, bool, str, bytes, date, or datetime with the column's unit and time zone. None may be among
    the values of conditions of the kind IN only. Raises ValueError for a wrong number of values, or for None in a
    condition of another kind."""

    column: str
    kind: Kind
    values: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        least, most = VALUES[self.kind]
        if len(self.values) < least or (most is not None and len(self.values) > most):
            allowed = least if most == least else f"at least {least}"
            raise ValueError(f"the condition {self.kind.value!r} has {len(self.values)} values (allowed: {allowed})")
        if self.kind is not Kind.IN and any(value is None for value in self.values):
            raise ValueError(
                f"the condition {self.kind.value!r} cannot have None as a value: no row would meet such a condition"
            )

    @property
    def present(self) -> tuple[Any, ...]:
        """The values that are not None. Adapters pass only these to engines, because in SQL a comparison with a list
        that contains a null yields null."""
        return tuple(value for value in self.values if value is not None)
