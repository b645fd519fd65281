"""The rows that a caller requests, and the units that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from libraries.f3.errors import F3Error

Rows = slice | range | Sequence[int] | np.ndarray
Places = range | np.ndarray
"""Row numbers: a range if they are consecutive and ascending, else an array."""


@dataclass(frozen=True)
class Picked:
    """Wanted rows of some row groups. Rows are numbered from 0 over these groups alone, as if they were
    concatenated."""

    groups: tuple[int, ...]
    wanted: Places

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.wanted)

    def halves(self) -> tuple[Picked, Picked]:
        """Return the first half and the second half of the rows."""
        middle = len(self.wanted) // 2
        return Picked(self.groups, self.wanted[:middle]), Picked(self.groups, self.wanted[middle:])

    def located(self, starts: np.ndarray) -> tuple[list[int], Places]:
        """Return the units that hold the rows, in order, and the positions of the rows in the concatenation of these
        units.

        `starts` has the first row of each unit, and the end of the last unit.
        """
        if len(self.wanted) == 0:
            return [], range(0)
        if isinstance(self.wanted, range):
            first, after = _reach(self.wanted, starts)
            skipped = self.wanted.start - int(starts[first])
            return list(range(first, after)), range(skipped, skipped + len(self.wanted))
        units, moved = _gathered(self.wanted, starts)
        return units.tolist(), moved


@dataclass(frozen=True)
class Scattered:
    """Wanted rows, ordered by the units that hold them.

    `units` has the numbers of these units, `counts` the number of wanted rows in each unit, and `rows` the numbers of
    the wanted rows within their units. Taking values at the positions `order` puts them into the wanted order; `order`
    is None if they are already in it.
    """

    units: np.ndarray
    counts: np.ndarray
    rows: np.ndarray
    order: np.ndarray | None


def scattered(wanted: Places, starts: np.ndarray) -> Scattered:
    """Order wanted rows by the units that hold them. `starts` has the first row of each unit, and the end of the last
    unit."""
    numbers = np.arange(wanted.start, wanted.stop) if isinstance(wanted, range) else wanted
    order = None
    if np.any(numbers[1:] < numbers[:-1]):
        places = np.argsort(numbers, kind="stable")
        numbers = numbers[places]
        order = np.empty_like(places)
        order[places] = np.arange(len(places))
    holding = np.searchsorted(starts, numbers, "right") - 1
    units, counts = np.unique(holding, return_counts=True)
    return Scattered(units, counts, (numbers - starts[holding]).astype(np.uint32), order)


def pick(rows: Rows | None, group_starts: np.ndarray) -> Picked:
    """Return the requested rows and their row groups. Raises F3Error for rows that do not exist."""
    wanted = _wanted(rows, int(group_starts[-1]))
    if len(wanted) == 0:
        return Picked((), range(0))
    if isinstance(wanted, range):
        first, after = _reach(wanted, group_starts)
        base = int(group_starts[first])
        return Picked(tuple(range(first, after)), range(wanted.start - base, wanted.stop - base))
    groups, moved = _gathered(wanted, group_starts)
    return Picked(tuple(groups.tolist()), moved)


def _wanted(rows: Rows | None, count: int) -> Places:
    """Return the numbers of the requested rows (None: all `count` rows). Raises F3Error if a row does not exist."""
    if rows is None:
        return range(count)
    if isinstance(rows, slice):
        rows = range(count)[rows]
    if isinstance(rows, range):
        if not rows:
            return range(0)
        _check_reach(min(rows[0], rows[-1]), max(rows[0], rows[-1]), count)
        # The slice's end and step may exceed 64 bits.
        return rows if rows.step == 1 else np.fromiter(rows, np.int64, len(rows))
    numbers = _numbers(rows)
    if len(numbers):
        # Check before the conversion to int64, which would make numbers from 2^63 on negative.
        _check_reach(int(numbers.min()), int(numbers.max()), count)
    return numbers.astype(np.int64)


def _numbers(rows: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return row numbers of any integer size as a one-dimensional array. Raises F3Error for anything but whole
    numbers."""
    try:
        numbers = np.asarray(rows)
    except ValueError:
        raise F3Error(f"rows must be a slice, range or list of row numbers (got {type(rows).__name__})") from None
    if numbers.ndim == 1 and (len(numbers) == 0 or numbers.dtype.kind in "iu"):
        return numbers
    # numpy converts a mix of uint64 and signed numbers to inexact floats, and larger numbers to objects.
    if numbers.ndim == 1 and numbers.dtype.kind in "fO" and all(map(_is_whole, rows)):
        return np.array(rows, object)
    held = f" of {numbers.dtype}" if numbers.ndim == 1 else f" with {numbers.ndim} dimensions" if numbers.ndim else ""
    raise F3Error(f"rows must be a slice, range or list of row numbers (got {type(rows).__name__}{held})")


def _is_whole(number: object) -> bool:
    return isinstance(number, Integral) and not isinstance(number, bool)


def _check_reach(lowest: int, highest: int, count: int) -> None:
    if lowest < 0 or highest >= count:
        wrong = lowest if lowest < 0 else highest
        asked = "" if lowest == highest else f" (wanted: rows from {lowest} to {highest})"
        raise F3Error(f"row {wrong} does not exist{asked}; the file has {count} rows, counted from 0")


def _reach(wanted: range, starts: np.ndarray) -> tuple[int, int]:
    """Return the number of the first part (a unit or row group) that a range touches, and one more than the number of
    the last."""
    first = int(np.searchsorted(starts, wanted.start, "right")) - 1
    return first, int(np.searchsorted(starts, wanted.stop, "left"))


def _gathered(wanted: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct parts that hold the rows, and the positions of the rows in the concatenation of
    these parts."""
    holding = np.searchsorted(starts, wanted, "right") - 1
    parts, order = np.unique(holding, return_inverse=True)
    sizes = starts[parts + 1] - starts[parts]
    first = np.cumsum(sizes) - sizes
    return parts, first[order] + wanted - starts[holding]
