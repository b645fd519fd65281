"""Losses: what a format, or the default of a call, is known to change, and the relation that still holds.

A loss is a check, not a waiver: the expected column is changed in the way that the loss describes,
and what came back must equal that exactly (or within the stated bound). A fault planted in a lossy
column is therefore found. This module knows Arrow columns only; comparing is bench_runner.worker.verify.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


class Cause(Enum):
    """Who loses: the format itself, or the default of the call (then another call of the format may not)."""

    FORMAT = "format"
    CALL = "call"


Expect = Callable[["pa.ChunkedArray"], "pa.ChunkedArray | None"]
"""From the expected column to what is to come back; None when the loss does not touch this column."""

Parse = Callable[["pa.ChunkedArray", "pa.DataType"], "pa.ChunkedArray"]
"""From the text that came back, and the type that was stored, to values of that type."""


@dataclass(frozen=True)
class Relation:
    """What still holds for a column that is not exact.

    `expect` maps the expected Arrow column to what is to come back, or returns None when the loss does
    not touch this column (then the column must be exact). Floats may be off by `tolerance` plus
    `relative_tolerance` times the stored value; 0 means equal. `nulls` is 'numpy' when integers and booleans with
    nulls come back to pandas as float64 and object, not as Int64 and boolean. With `parse` a column comes back as
    text, and what the text stands for must be what is expected.
    """

    expect: Expect
    tolerance: float = 0.0
    relative_tolerance: float = 0.0
    nulls: str | None = None
    parse: Parse | None = None


@dataclass(frozen=True)
class Loss:
    """One declared loss. `kinds` are the names of the `kinds` tables on which it must be seen to occur:
    a declared loss that does not occur is an error, as is a loss outside its bound."""

    what: str
    bound: str
    cause: Cause
    relation: Relation
    kinds: frozenset[str]
    targets: frozenset[str] = frozenset({"pandas", "arrow"})
    strings: frozenset[str] = frozenset({"str", "object"})
    """What pandas has for text, on the way, where this is lost."""
    nulls: frozenset[str] = frozenset({"masked", "numpy"})
    """What pandas has for integers and booleans with nulls, on the way, where this is lost."""
    lossless: str | None = None
    """A sibling variant that does not lose this."""

    def holds_for(self, target: str, strings: str, nulls: str) -> bool:
        """Whether this loss is declared for a target, with text of this pandas dtype and nulls of this manner."""
        return target in self.targets and strings in self.strings and nulls in self.nulls
