"""Define the operations that an engine offers in addition to save and read, and the open copy that has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from adapters.predicate import Kind, Predicate

if TYPE_CHECKING:
    import numpy as np


class Reach(Enum):
    """How much an engine reads for some rows, given their numbers."""

    ROWS = "rows"
    """Only what it needs to find those rows."""
    GROUPS = "groups"
    """The whole groups that contain them: row groups, batches, stripes, blocks."""


class Sifts(Enum):
    """Which rows a scan leaves out."""

    ROWS = "rows"
    """All rows that do not meet the condition."""
    GROUPS = "groups"
    """Groups of rows whose statistics rule out a match; all rows of other groups are returned."""
    NOTHING = "nothing"
    """No rows: all rows are returned, as a baseline for what a filter saves."""


class Sharing(Enum):
    """How several threads can take rows of one stored copy at once."""

    ONE = "one handle"
    """All threads share one handle."""
    EACH = "a handle each"
    """Each thread needs its own handle: a shared one gives wrong answers or crashes the process."""


@dataclass(frozen=True)
class Offers:
    """The native operations of an engine beyond save and read. For the others the harness reads or saves everything,
    and every figure is marked so."""

    project: bool = False
    take: Reach | None = None
    scan: frozenset[Kind] = frozenset()
    """The kinds of condition that the engine itself evaluates."""
    ordered: bool = True
    """Whether a scan returns rows in stored order."""
    sifts: Sifts = Sifts.ROWS
    """What a scan leaves out. If it is not ROWS, `group_rows` must be set."""
    keeps_scans: bool = False
    """Whether the handle from `open_scans` stays open between calls of `scan` or `aggregate`."""
    aggregate: bool = False
    metadata: bool = False
    group_rows: int | None = None
    """Rows of each group in a stored copy, the last one may have fewer; None if not needed."""
    file_rows: int | None = None
    """Rows of each file; None if a copy is one file."""
    append: bool = False
    batches: bool = False
    save_stream: bool = False
    sharing: Sharing | None = None
    """How several threads take rows at once; None if the library is not thread-safe, or this was not tried."""
    keeps_columns: bool = False
    """Whether the handle from `open_columns` stays open between calls of `project`."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the operations with their limits, for a listing."""
        kinds = ", ".join(kind.value for kind in Kind if kind in self.scan)
        order = "" if self.ordered else "; in any order"
        named = {
            "project": self.project,
            f"take (by {self.take.value})" if self.take else "take": self.take is not None,
            f"scan ({kinds}{order})": bool(self.scan),
            "aggregate": self.aggregate,
            "append": self.append,
            "batches": self.batches,
            "save a stream": self.save_stream,
        }
        return tuple(name for name, offered in named.items() if offered)


def _nothing_to_close() -> None:
    pass


@dataclass(frozen=True)
class Handle:
    """A stored copy that is open for reading in part.

    Calls are present if the adapter's `offers` has them. Results are of the `native_read` kind, have their own memory,
    and stay valid after `close`. `columns` is never empty, and results have that order.
    """

    project: Callable[[Sequence[str]], Any] | None = None
    """Return all rows of these columns."""
    take: Callable[[np.ndarray, Sequence[str]], Any] | None = None
    """Return the rows of these numbers (int64, one dimension, from 0), in that order, repeated if a number is repeated.
    Raises IndexError for a number out of range, before anything is read."""
    scan: Callable[[Predicate, Sequence[str]], Any] | None = None
    """Return the rows that meet the condition, of a kind in `offers.scan`. Its column need not be among `columns`."""
    aggregate: Callable[[Predicate, str], Any] | None = None
    """Return one row on the rows that meet the condition: their `count`, and `min`, `max` and `sum` of one column of
    whole numbers, all int64. Without matching rows all but `count` are null."""
    metadata: Callable[[int], Any] | None = None
    """Load the metadata of this many stored files before one is read, file by file, starting over if there are fewer,
    and hold it until `close`. Return a column `rows` (int64): the rows of each group."""
    batches: Callable[[Sequence[str], int], Iterator[Any]] | None = None
    """Yield all rows of these columns in stored order, at most the given number at a time. Batches are never empty, so
    a table without rows gives none. Each stays valid after the next. Close an unfinished iterator before the handle."""
    close: Callable[[], None] = _nothing_to_close


@dataclass(frozen=True)
class ImageHandle:
    """Stored images that are open for reading in part, with the calls that the storage's `offers` has. Returned arrays
    own their memory, whatever the setting `arrays` says about reads."""

    take: Callable[[np.ndarray], Any] | None = None
    """Return the Images of these numbers (int64, one dimension, from 0), in that order, repeated if a number is
    repeated. Raises IndexError for a number out of range, before anything is read."""
    batches: Callable[[int], Iterator[Any]] | None = None
    """Yield all Images in stored order, this many at a time; the last batch may be smaller but is never empty. Each
    stays valid after the next. Close an unfinished iterator before the handle."""
    close: Callable[[], None] = _nothing_to_close
