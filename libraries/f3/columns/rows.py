"""Which rows are asked for, and in which units they lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from libraries.f3.errors import F3Error

Rows = slice | range | Sequence[int] | np.ndarray
Places = range | np.ndarray
"""Ascending numbers without a gap, or any numbers."""


@dataclass(frozen=True)
class Picked:
    """Rows of some row groups, counted from the first row of the first of these."""

    groups: tuple[int, ...]
    wanted: Places

    @property
    def count(self) -> int:
        """How many rows."""
        return len(self.wanted)

    def halves(self) -> tuple[Picked, Picked]:
        """The first and the second half."""
        middle = len(self.wanted) // 2
        return Picked(self.groups, self.wanted[:middle]), Picked(self.groups, self.wanted[middle:])

    def located(self, starts: np.ndarray) -> tuple[list[int], Places]:
        """The units that hold the rows, in order, and where the rows lie in what these units hold together. `starts`
        are the first rows of all units, and the end."""
        if len(self.wanted) == 0:
            return [], range(0)
        if isinstance(self.wanted, range):
            first, after = _reach(self.wanted, starts)
            skipped = self.wanted.start - int(starts[first])
            return list(range(first, after)), range(skipped, skipped + len(self.wanted))
        units, moved = _gathered(self.wanted, starts)
        return units.tolist(), moved


def pick(rows: Rows | None, group_starts: np.ndarray) -> Picked:
    """The rows that are asked for, in their row groups. Raises F3Error for rows that there are none of."""
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
    """The row numbers, all of which there are."""
    if rows is None:
        return range(count)
    if isinstance(rows, slice):
        rows = range(count)[rows]
    if isinstance(rows, range):
        if not rows:
            return range(0)
        _check_reach(min(rows[0], rows[-1]), max(rows[0], rows[-1]), count)
        # Neither its end nor its step need fit into 64 bits.
        return rows if rows.step == 1 else np.fromiter(rows, np.int64, len(rows))
    numbers = _numbers(rows)
    if len(numbers):
        # Before they become int64, which turns numbers from 2^63 on into negative ones.
        _check_reach(int(numbers.min()), int(numbers.max()), count)
    return numbers.astype(np.int64)


def _numbers(rows: Sequence[int] | np.ndarray) -> np.ndarray:
    """Whole numbers of any size, in one dimension."""
    try:
        numbers = np.asarray(rows)
    except ValueError:
        raise F3Error(f"rows: {type(rows).__name__} of unequal parts is no list of row numbers") from None
    if numbers.ndim == 1 and (len(numbers) == 0 or numbers.dtype.kind in "iu"):
        return numbers
    # numpy makes floats of uint64 next to signed numbers, which are not exact, and objects of larger numbers.
    if numbers.ndim == 1 and numbers.dtype.kind in "fO" and all(map(_is_whole, rows)):
        return np.array(rows, object)
    raise F3Error(f"rows: {type(rows).__name__} of {numbers.dtype} is no slice, range or list of row numbers")


def _is_whole(number: object) -> bool:
    return isinstance(number, Integral) and not isinstance(number, bool)


def _check_reach(lowest: int, highest: int, count: int) -> None:
    if lowest < 0 or highest >= count:
        asked = f"row {highest} is" if lowest == highest else f"rows {lowest} to {highest} are"
        raise F3Error(f"{asked} asked for; there are {count}, counted from 0")


def _reach(wanted: range, starts: np.ndarray) -> tuple[int, int]:
    """The first part that a range lies in, and the one behind the last."""
    first = int(np.searchsorted(starts, wanted.start, "right")) - 1
    return first, int(np.searchsorted(starts, wanted.stop, "left"))


def _gathered(wanted: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The parts that rows lie in, each once, and the rows' places when only these parts are put together."""
    holding = np.searchsorted(starts, wanted, "right") - 1
    parts, order = np.unique(holding, return_inverse=True)
    sizes = starts[parts + 1] - starts[parts]
    first = np.cumsum(sizes) - sizes
    return parts, first[order] + wanted - starts[holding]
