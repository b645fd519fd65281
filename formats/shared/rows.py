"""Find rows by their numbers, for libraries that read whole row groups or require ascending row numbers.

The time of this code is part of the measured time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def calls_of_groups(count: str, rows_of_group: str, read: str) -> tuple[tuple[str, ...], str]:
    """Return the code with which a user reads rows by their numbers from a library that reads whole row groups.

    The code is a tuple of statements and an expression for the rows. All arguments are Python expressions: `count` for
    the number of row groups, `rows_of_group` for the number of rows of the group with the number `group`, and `read`
    for a table of the groups whose numbers are in the list `groups`.
    """
    return (
        f"starts = np.cumsum([0, *({rows_of_group} for group in range({count}))])",
        'groups, place = np.unique(np.searchsorted(starts, rows, side="right") - 1, return_inverse=True)',
        "before = np.cumsum([0, *np.diff(starts)[groups]])",
        f"read = {read}",
    ), "read.take(before[place] + rows - starts[groups[place]])"


def checked(numbers: np.ndarray, rows: int) -> np.ndarray:
    """Return the row numbers unchanged. Raises IndexError if a table of `rows` rows lacks one of these rows."""
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < rows):
        wrong = next(int(number) for number in numbers if not 0 <= number < rows)
        raise IndexError(f"row {wrong} does not exist; the table has {rows:,} rows, counted from 0")
    return numbers


def ascending(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the distinct row numbers in ascending order, and for each given number its index in this sorted array.

    The second result is None if the given numbers are already ascending and distinct.
    """
    if len(numbers) < 2 or bool(np.all(numbers[1:] > numbers[:-1])):
        return numbers, None
    unique, places = np.unique(numbers, return_inverse=True)
    return unique, places


def starts_of(rows_of_groups: Sequence[int]) -> np.ndarray:
    """Return an array with the number of the first row of each row group, followed by the total number of rows."""
    return np.cumsum([0, *rows_of_groups], dtype=np.int64)


def located(numbers: np.ndarray, starts: np.ndarray) -> tuple[list[int], np.ndarray]:
    """Return the numbers of the row groups that contain the given rows, and the position of each given row within the
    rows of these groups.

    The row groups are in ascending order. Positions count through all rows of the returned groups, without a gap
    between two groups. Position 0 is the first row of the first returned group. `starts` is a result of `starts_of`.
    Raises IndexError for a row that does not exist.
    """
    checked(numbers, int(starts[-1]))
    # A group without rows starts at the same row number as the next group. `side="right"` finds the group with the row.
    groups = np.searchsorted(starts, numbers, side="right") - 1
    needed, places = np.unique(groups, return_inverse=True)
    lengths = np.diff(starts)[needed]
    before = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    return needed.tolist(), before[places] + numbers - starts[groups]
