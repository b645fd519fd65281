"""Define losses: the changes that a format, or a call with default options, is known to make to columns.

A loss is a check, not a waiver. The stored column is first changed as the loss describes. The column that was read must
then equal the changed column, exactly or within a stated bound. Other changes to such a column are therefore still
found. This module describes Arrow columns; bench_runner.worker.verification compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


class Cause(Enum):
    """The cause of a loss: the format itself, or the default options of the call. Another call of the same format may
    avoid a loss of the second kind."""

    FORMAT = "format"
    CALL = "call"


Expect = Callable[["pa.ChunkedArray"], "pa.ChunkedArray | None"]
"""Function from the stored column to the column that a read should return; None if the loss does not affect it."""

Parse = Callable[["pa.ChunkedArray", "pa.DataType"], "pa.ChunkedArray"]
"""Function that parses the text of a column that was read, as values of the type that was stored."""


@dataclass(frozen=True)
class Relation:
    """How a column that comes back changed depends on the stored column.

    expect: maps the stored Arrow column to the column that a read should return. If it returns None, the loss does not
        affect this column, and the column must come back exactly.
    tolerance, relative_tolerance: floats may differ by `tolerance` plus `relative_tolerance` times the stored value.
    nulls: 'numpy' if integers and booleans with nulls come back to pandas as float64 and object, not as Int64 and
        boolean.
    parse: if not None, the column comes back as text, and its parsed values must equal the expected values.
    """

    expect: Expect
    tolerance: float = 0.0
    relative_tolerance: float = 0.0
    nulls: str | None = None
    parse: Parse | None = None


@dataclass(frozen=True)
class Loss:
    """One declared loss, which must occur on the kinds of test tables named in `kinds`.

    A declared loss that does not occur is an error, and so is a loss outside its bound."""

    what: str
    bound: str
    cause: Cause
    relation: Relation
    kinds: frozenset[str]
    targets: frozenset[str] = frozenset({"pandas", "arrow"})
    strings: frozenset[str] = frozenset({"str", "object"})
    """The loss occurs if text columns have one of these dtypes in pandas."""
    nulls: frozenset[str] = frozenset({"masked", "numpy"})
    """The loss occurs if integers and booleans with nulls have one of these kinds of types in pandas."""
    lossless: str | None = None
    """A variant of the same format without this loss."""

    def holds_for(self, target: str, strings: str, nulls: str) -> bool:
        """Return whether this loss is declared for a target, a pandas dtype for text, and pandas types for nulls."""
        return target in self.targets and strings in self.strings and nulls in self.nulls
