"""Define the operations that an engine offers in addition to save and read, and the handles that provide them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from adapters.predicate import Kind, Predicate

if TYPE_CHECKING:
    import numpy as np


class Reach(Enum):
    """How much of a file an engine reads to return rows by their numbers."""

    ROWS = "rows"
    """Only the requested rows, and what is needed to find them."""
    GROUPS = "groups"
    """All groups (row groups, batches, stripes or blocks) that contain requested rows."""


class Sifts(Enum):
    """Which rows a scan leaves out of its result."""

    ROWS = "rows"
    """The scan leaves out all rows that do not meet the condition."""
    GROUPS = "groups"
    """The scan leaves out groups whose statistics rule out a match, and returns all rows of the other groups."""
    NOTHING = "nothing"
    """The scan returns all rows. This is the baseline for how much time a filter saves."""


class Sharing(Enum):
    """How several threads can call `take` on one stored copy at the same time."""

    ONE = "one handle"
    """All threads share one handle."""
    EACH = "a handle each"
    """Each thread needs its own handle. A shared handle would give wrong results or crash the process."""


class Parts(Enum):
    """How several processes store one table at once."""

    FILES = "a file for each partition"
    """Each process calls `save` and `read` of the adapter that `part` returns."""
    DASK = "dask.dataframe's own calls"
    """The caller's process calls `save_parts` and `parts_frame`, and dask sends the work to the processes."""


@dataclass(frozen=True)
class Offers:
    """The native operations of an engine beyond save and read.

    For operations that are not offered, the harness reads or saves the whole table, and reports mark such figures."""

    project: bool = False
    take: Reach | None = None
    scan: frozenset[Kind] = frozenset()
    """The kinds of condition that the engine itself evaluates."""
    ordered: bool = True
    """Whether a scan returns rows in stored order."""
    sifts: Sifts = Sifts.ROWS
    """Which rows a scan leaves out. If this is not `Sifts.ROWS`, `group_rows` must be set."""
    keeps_scans: bool = False
    """Whether the handle from `open_scans` stays open between calls of `scan` or `aggregate`."""
    aggregate: bool = False
    metadata: bool = False
    group_rows: int | None = None
    """Number of rows in each group of a stored copy; the last group may have fewer. None if it is not needed."""
    file_rows: int | None = None
    """Number of rows in each file of a stored copy; None if a copy is a single file."""
    append: bool = False
    batches: bool = False
    save_stream: bool = False
    sharing: Sharing | None = None
    """How several threads can call `take` at once; None if the library is not thread-safe, or if we have not tried."""
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
    """A stored copy that is open for reading parts of it.

    A field is None if the adapter's `offers` does not have this operation. Results are of the `native_read` kind, own
    their memory, and stay valid after `close`. The requested columns are never empty, and results have their order.
    """

    project: Callable[[Sequence[str]], Any] | None = None
    """Return all rows of these columns."""
    take: Callable[[np.ndarray, Sequence[str]], Any] | None = None
    """Return the rows with these numbers, in the given order. Row numbers are a 1-D int64 array, start at 0 and may
    repeat. Raises IndexError for a number out of range, before anything is read."""
    scan: Callable[[Predicate, Sequence[str]], Any] | None = None
    """Return these columns of the rows that meet the condition. The condition's kind is in `offers.scan`, and its
    column need not be among the returned columns."""
    aggregate: Callable[[Predicate, str], Any] | None = None
    """Return one row about the rows that meet the condition: their `count`, and the `min`, `max` and `sum` of an
    integer column, all int64. If no row matches, all values except `count` are null."""
    metadata: Callable[[int], Any] | None = None
    """Load the metadata of this number of stored files, and hold them until `close`. If the copy has fewer files, load
    files repeatedly. Return a column `rows` (int64) with the number of rows of each group."""
    batches: Callable[[Sequence[str], int], Iterator[Any]] | None = None
    """Yield all rows of these columns in stored order, in batches of at most the given number of rows. Batches are
    never empty, and stay valid when the next batch is read. Close an unfinished iterator before closing the handle."""
    close: Callable[[], None] = _nothing_to_close


@dataclass(frozen=True)
class ImageHandle:
    """Stored images that are open for reading parts of them.

    A field is None if the storage's `offers` does not have this operation. Returned arrays own their memory; the
    setting `arrays` has no effect here."""

    take: Callable[[np.ndarray], Any] | None = None
    """Return the Images with these numbers, in the given order. Numbers are a 1-D int64 array, start at 0 and may
    repeat. Raises IndexError for a number out of range, before anything is read."""
    batches: Callable[[int], Iterator[Any]] | None = None
    """Yield all Images in stored order, in batches of the given size. The last batch may be smaller but is never empty.
    A batch stays valid when the next batch is read. Close an unfinished iterator before closing the handle."""
    close: Callable[[], None] = _nothing_to_close
