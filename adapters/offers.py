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
    """How much of a file an engine has to read to return rows that are requested by their numbers."""

    ROWS = "rows"
    """Only the requested rows, and what is needed to find them."""
    GROUPS = "groups"
    """All rows of the groups that contain requested rows. Formats call a group a row group, batch, stripe or block."""


class Sifts(Enum):
    """Which rows a scan leaves out of its result."""

    ROWS = "rows"
    """The scan leaves out all rows that do not meet the condition."""
    GROUPS = "groups"
    """The scan leaves out groups whose statistics rule out a match, and returns all rows of the other groups."""
    NOTHING = "nothing"
    """The scan returns all rows. This is the baseline for how much time a filter saves."""


class Sharing(Enum):
    """How several threads can call `take`, which reads rows by their numbers, on one stored copy at the same time."""

    ONE = "one handle"
    """All threads can share one open handle."""
    EACH = "a handle each"
    """Every thread needs its own open handle. A shared handle would give wrong results or crash the process."""


class Parts(Enum):
    """How several processes store the partitions of one table at the same time."""

    FILES = "a file for each partition"
    """A process stores or reads a partition by `save` or `read` of the adapter that `TabularFormat.part` returns."""
    DASK = "dask.dataframe's own calls"
    """The caller's process calls `save_parts` or `parts_frame`, and dask sends the work to the worker processes of
    dask."""


@dataclass(frozen=True)
class Offers:
    """The operations that an engine, i.e. a library for a format, supports by its own calls, beyond save and read.

    For an operation that is not offered here, Format Bench reads or saves the whole table instead, and reports mark
    the figures of this operation."""

    project: bool = False
    take: Reach | None = None
    scan: frozenset[Kind] = frozenset()
    """The kinds of condition that the engine itself evaluates."""
    ordered: bool = True
    """Whether a scan returns rows in stored order."""
    sifts: Sifts = Sifts.ROWS
    """What a scan leaves out of its result: single rows that do not match (ROWS), only whole row groups (GROUPS), or
    nothing (NOTHING). For GROUPS, `group_rows` must be set."""
    keeps_scans: bool = False
    """Whether the handle from `open_scans` stays open between calls of `scan` or `aggregate`."""
    aggregate: bool = False
    metadata: bool = False
    group_rows: int | None = None
    """Number of rows in each row group of a stored copy; the last group may have fewer. None if no operation in
    `offers` needs this number."""
    file_rows: int | None = None
    """Number of rows in each file of a stored copy; None if a copy is a single file."""
    append: bool = False
    batches: bool = False
    save_stream: bool = False
    sharing: Sharing | None = None
    """How several threads can call `take` at the same time. None if the library is not thread-safe, or if this project
    has not tried it."""
    keeps_columns: bool = False
    """Whether the handle from `open_columns` stays open between calls of `project`."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the offered operations with their restrictions, as `format-bench list` prints them."""
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
    """A stored copy of a table that is open for reading parts of the table.

    Each field is a function that performs one operation, or None if the adapter's `offers` does not have this
    operation. Returned tables are of the kind that the adapter's `native_read` names. They own their memory and stay
    valid after `close`. Callers request at least one column, and results have the columns in the requested order.
    """

    project: Callable[[Sequence[str]], Any] | None = None
    """Return all rows of the given columns."""
    take: Callable[[np.ndarray, Sequence[str]], Any] | None = None
    """Return the given columns of the rows with the given numbers, in the order of the numbers. Row numbers are a 1-D
    int64 array, start at 0 and may repeat. Raises IndexError for a number out of range, before anything is read."""
    scan: Callable[[Predicate, Sequence[str]], Any] | None = None
    """Return the given columns of the rows that meet the condition. The condition's kind is in `offers.scan`. The
    condition may be on a column that is not returned."""
    aggregate: Callable[[Predicate, str], Any] | None = None
    """Return a table of one row that summarizes the rows that meet the condition. Its int64 columns are `count`, the
    number of these rows, and `min`, `max` and `sum` of the given integer column. If no row matches, all values except
    `count` are null."""
    metadata: Callable[[int], Any] | None = None
    """Load the metadata of the given number of stored files, and keep the metadata in memory until `close`. If the copy
    has fewer files, load files repeatedly. Return a table with the int64 column `rows`: the number of rows of each
    row group."""
    batches: Callable[[Sequence[str], int], Iterator[Any]] | None = None
    """Yield all rows of the given columns in stored order, in batches of at most the given number of rows. Batches are
    never empty, and stay valid when the next batch is read. Close an unfinished iterator before closing the handle."""
    close: Callable[[], None] = _nothing_to_close


@dataclass(frozen=True)
class ImageHandle:
    """A stored copy of images that is open for reading some of the images.

    Each field is a function that performs one operation, or None if the storage's `offers` does not have this
    operation. Returned arrays own their memory, whatever the setting `arrays` of the storage is."""

    take: Callable[[np.ndarray], Any] | None = None
    """Return the images with the given numbers as `Images`, in the order of the numbers. Numbers are a 1-D int64 array,
    start at 0 and may repeat. Raises IndexError for a number out of range, before anything is read."""
    batches: Callable[[int], Iterator[Any]] | None = None
    """Yield all images in stored order, as `Images` of the given number of images. The last batch may be smaller but is
    never empty. A batch stays valid when the next batch is read. Close an unfinished iterator before closing the
    handle."""
    close: Callable[[], None] = _nothing_to_close
