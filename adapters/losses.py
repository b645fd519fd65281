"""Losses: what a format, or the default of a call, is known to change, and the relation that still holds.

A loss is a check, not a waiver: the expected column is changed in the way that the loss describes,
and what came back must equal that exactly (or within the stated bound). A fault planted in a lossy
column is therefore found. This module knows Arrow columns only; comparing is bench_runner.verify.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


class Cause(Enum):
    """Who loses: the format itself, or the default of the call (then another call of the format may not)."""

    FORMAT = "format"
    CALL = "call"


@dataclass(frozen=True)
class Relation:
    """What still holds for a column that is not exact.

    `expect` maps the expected Arrow column to what is to come back, or returns None when the loss does
    not touch this column (then the column must be exact). `tolerance` is the largest absolute
    difference for floats; 0 means equal.
    """

    expect: Callable[[pa.ChunkedArray], pa.ChunkedArray | None]
    tolerance: float = 0.0


@dataclass(frozen=True)
class Loss:
    """One declared loss. `kinds` are the names of the `kinds` tables on which it must be seen to occur:
    a declared loss that does not occur is an error, as is a loss outside its bound."""

    what: str
    bound: str
    cause: Cause
    relation: Relation
    kinds: frozenset[str]
    targets: frozenset[str] = field(default=frozenset({"pandas", "arrow"}))
    lossless: str | None = None
