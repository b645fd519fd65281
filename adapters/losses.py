"""Define losses: the changes that a format, or a call with default options, is known to make to columns.

Declaring a loss does not switch off verification. The stored column is first changed as the loss describes. The column
that was read must then equal the changed column, exactly or within a stated bound. Verification therefore still finds
any other change. This module describes changes to Arrow columns, and bench_runner.worker.verification checks them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


class Cause(Enum):
    """The cause of a loss: the format itself, or the library's call with its default options.

    Another call for the same format may avoid a loss that is caused by the call."""

    FORMAT = "format"
    CALL = "call"


Expect = Callable[["pa.ChunkedArray"], "pa.ChunkedArray | None"]
"""A function that takes the stored column and returns the column that a read should return, or None if the loss does
not affect this column."""

Parse = Callable[["pa.ChunkedArray", "pa.DataType"], "pa.ChunkedArray"]
"""A function with two arguments: a column of text that was read, and a type. It returns the values of this type that
the text represents."""


@dataclass(frozen=True)
class Relation:
    """How a format changes a column: the relation between the stored column and the column that a read returns.

    expect: maps the stored Arrow column to the column that a read should return. If `expect` returns None, the loss
        does not affect this column, and the column must come back exactly.
    tolerance, relative_tolerance: floats may differ by `tolerance` plus `relative_tolerance` times the stored value.
    nulls: 'numpy' if integers with nulls come back to pandas as float64 instead of Int64, and booleans with nulls as
        object instead of boolean.
    strings: 'str' if text comes back to pandas as this dtype, even if the user's DataFrame has another dtype for text.
    parse: if not None, the column comes back as text, and its parsed values must equal the expected values.
    """

    expect: Expect
    tolerance: float = 0.0
    relative_tolerance: float = 0.0
    nulls: str | None = None
    strings: str | None = None
    parse: Parse | None = None


@dataclass(frozen=True)
class Loss:
    """One declared loss. `what` and `bound` describe the change and its limits in words.

    `kinds` are names of test tables on which the loss must occur. Tests fail if a declared loss does not occur, or if
    a change exceeds its bound."""

    what: str
    bound: str
    cause: Cause
    relation: Relation
    kinds: frozenset[str]
    targets: frozenset[str] = frozenset({"pandas", "arrow"})
    strings: frozenset[str] = frozenset({"str", "object"})
    """The loss occurs only if text columns have one of these dtypes in pandas."""
    nulls: frozenset[str] = frozenset({"masked", "numpy"})
    """The loss occurs only if pandas uses one of these groups of types for integers and booleans with nulls. 'masked'
    stands for Int64 and boolean, 'numpy' for float64 and object."""
    lossless: str | None = None
    """Full name of a variant of the same format that does not have this loss; None if there is no such variant."""

    def holds_for(self, target: str, strings: str, nulls: str) -> bool:
        """Return whether this loss occurs with these conditions.

        `target` is the kind of object that is saved and read ('pandas' or 'arrow'), `strings` is pandas' dtype for
        text, and `nulls` is the group of types that pandas uses for integers and booleans with nulls."""
        return target in self.targets and strings in self.strings and nulls in self.nulls
