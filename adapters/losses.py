"""Define losses: what a format, or the default of a call, is known to change, and the relation that still holds.

A loss is a check, not a waiver. The expected column is changed as the loss describes, and the result must equal it
exactly or within the stated bound. A fault in a lossy column is therefore still found. This module describes Arrow
columns; bench_runner.worker.verification compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


class Cause(Enum):
    """The cause of a loss: the format itself, or the default of the call, which another call may not share."""

    FORMAT = "format"
    CALL = "call"


Expect = Callable[["pa.ChunkedArray"], "pa.ChunkedArray | None"]
"""Maps the expected column to the column that should come back; None if the loss does not affect it."""

Parse = Callable[["pa.ChunkedArray", "pa.DataType"], "pa.ChunkedArray"]
"""Maps returned text and the stored type to values of that type."""


@dataclass(frozen=True)
class Relation:
    """What still holds for a column that is not exact.

    `expect` maps the stored Arrow column to the column that should come back, or returns None if the loss does not
    affect it; the column must then be exact. Floats may differ by `tolerance` plus `relative_tolerance` times the
    stored value; 0 means equal. `nulls` is 'numpy' if integers and booleans with nulls come back to pandas as float64
    and object, not as Int64 and boolean. With `parse` a column comes back as text, and its parsed values must be the
    expected ones.
    """

    expect: Expect
    tolerance: float = 0.0
    relative_tolerance: float = 0.0
    nulls: str | None = None
    parse: Parse | None = None


@dataclass(frozen=True)
class Loss:
    """One declared loss. It must occur on the tables named in `kinds`: a declared loss that does not occur is an error,
    as is a loss outside its bound."""

    what: str
    bound: str
    cause: Cause
    relation: Relation
    kinds: frozenset[str]
    targets: frozenset[str] = frozenset({"pandas", "arrow"})
    strings: frozenset[str] = frozenset({"str", "object"})
    """pandas dtypes for text, in the conversion, with which this is lost."""
    nulls: frozenset[str] = frozenset({"masked", "numpy"})
    """pandas types for integers and booleans with nulls, in the conversion, with which this is lost."""
    lossless: str | None = None
    """A sibling variant without this loss."""

    def holds_for(self, target: str, strings: str, nulls: str) -> bool:
        """Return whether this loss is declared for a target, this pandas dtype of text and this type of nulls."""
        return target in self.targets and strings in self.strings and nulls in self.nulls
