"""The calls that an engine offers in addition to save and read, and the open copy that has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from adapters.predicate import Kind, Predicate

if TYPE_CHECKING:
    import numpy as np


class Reach(Enum):
    """How much an engine reads for some rows that are named by their numbers."""

    ROWS = "rows"
    """What it needs to find those rows."""
    GROUPS = "groups"
    """The groups of rows that they lie in, whole: row groups, batches, stripes, blocks."""


class Sifts(Enum):
    """How much a scan leaves out of what does not meet its condition."""

    ROWS = "rows"
    """All of it."""
    GROUPS = "groups"
    """The groups of rows whose statistics say that none meets it; of all others every row comes."""
    NOTHING = "nothing"
    """All rows come, whatever is asked: what a filter saves is measured against it."""


class Sharing(Enum):
    """How several threads take rows of one stored copy at once."""

    ONE = "one handle"
    """One handle answers all of them."""
    EACH = "a handle each"
    """Each needs one of its own: on a shared one the library gives wrong answers, or ends the process."""


@dataclass(frozen=True)
class Offers:
    """What an engine has calls of its own for, beside save and read. For what is not here the harness reads or saves
    everything, and says so in every figure."""

    project: bool = False
    take: Reach | None = None
    scan: frozenset[Kind] = frozenset()
    """The conditions that the engine itself tests."""
    ordered: bool = True
    """Whether a scan gives its rows in the order in which they are stored."""
    sifts: Sifts = Sifts.ROWS
    """What a scan gives; where it is not ROWS, `group_rows` is told."""
    keeps_scans: bool = False
    """Whether what `open_scans` gives stays open from one `scan` or `aggregate` to the next."""
    aggregate: bool = False
    metadata: bool = False
    group_rows: int | None = None
    """How many rows each group of a stored copy has, the last one fewer; None where nobody asks."""
    file_rows: int | None = None
    """Likewise each file; None where a copy is one."""
    append: bool = False
    batches: bool = False
    save_stream: bool = False
    sharing: Sharing | None = None
    """How several threads take rows at once; None where the library is not made for threads, or nobody has tried."""
    keeps_columns: bool = False
    """Whether what `open_columns` gives stays open from one `project` to the next."""

    @property
    def names(self) -> tuple[str, ...]:
        """The operations, with what limits them: for a listing."""
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

    Each call is there when the adapter's `offers` name it. What it gives is of the kind that `native_read` names, in
    memory of its own, and stays valid after `close`. `columns` is never empty, and gives their order.
    """

    project: Callable[[Sequence[str]], Any] | None = None
    """All rows of these columns."""
    take: Callable[[np.ndarray, Sequence[str]], Any] | None = None
    """The rows of these numbers (int64, one dimension, counted from 0), in that order, repeated where a number is.
    Raises IndexError for a number that no row has, before anything is read."""
    scan: Callable[[Predicate, Sequence[str]], Any] | None = None
    """The rows that meet the condition, of a kind that `offers.scan` names. Its column need not be among `columns`."""
    aggregate: Callable[[Predicate, str], Any] | None = None
    """Of the rows that meet the condition one row: how many they are (`count`), and the `min`, `max` and `sum` of one
    column of whole numbers, all int64; all null but the first where there are none."""
    metadata: Callable[[int], Any] | None = None
    """Takes in what is known of the stored files before one is read, file by file, again from the first one until it is
    that of so many, and holds it until `close`. Gives a column `rows` (int64): those of each group."""
    batches: Callable[[Sequence[str], int], Iterator[Any]] | None = None
    """All rows of these columns in stored order, at most so many at a time and never none: a table without rows gives
    no batch. Each stays valid when the next one comes. What is not taken to its end is to be closed before the handle
    is."""
    close: Callable[[], None] = _nothing_to_close


@dataclass(frozen=True)
class ImageHandle:
    """Stored images that are open for reading in part: as `Handle`, with the calls that the storage's `offers` name.
    Each array that they give owns its memory, whatever the setting `arrays` says of a read."""

    take: Callable[[np.ndarray], Any] | None = None
    """The Images of these numbers (int64, one dimension, counted from 0), in that order, repeated where a number is.
    Raises IndexError for a number that no image has, before any image is read."""
    batches: Callable[[int], Iterator[Any]] | None = None
    """All Images in stored order, so many at a time, the last ones fewer, and never none. Each stays valid when the
    next one comes. What is not taken to its end is to be closed before the handle is."""
    close: Callable[[], None] = _nothing_to_close
