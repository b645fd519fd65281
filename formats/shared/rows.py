"""Find rows by their numbers, for engines that read row groups or need ascending numbers. This code is timed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def calls_of_groups(count: str, rows_of_group: str, read: str) -> tuple[tuple[str, ...], str]:
    """Return statements and an expression with which a user takes rows from an engine that reads row groups.

    `count` is the expression of the number of groups, `rows_of_group` that of the rows of the group named `group`, and
    `read` the one that reads the groups in the list `groups`.
    """
    return (
        f"starts = np.cumsum([0, *({rows_of_group} for group in range({count}))])",
        'groups, place = np.unique(np.searchsorted(starts, rows, side="right") - 1, return_inverse=True)',
        "before = np.cumsum([0, *np.diff(starts)[groups]])",
        f"read = {read}",
    ), "read.take(before[place] + rows - starts[groups[place]])"


def checked(numbers: np.ndarray, rows: int) -> np.ndarray:
    """Return the numbers if a table of `rows` rows has all of them, else raise IndexError."""
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < rows):
        wrong = next(int(number) for number in numbers if not 0 <= number < rows)
        raise IndexError(f"row {wrong} does not exist; the table has {rows:,} rows, counted from 0")
    return numbers


def ascending(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the distinct numbers in ascending order, and for each requested number its index among them.

    The indices are None if the numbers were ascending and distinct.
    """
    if len(numbers) < 2 or bool(np.all(numbers[1:] > numbers[:-1])):
        return numbers, None
    unique, places = np.unique(numbers, return_inverse=True)
    return unique, places


def starts_of(rows_of_groups: Sequence[int]) -> np.ndarray:
    """Return the number of the first row of each group, followed by the number of all rows."""
    return np.cumsum([0, *rows_of_groups], dtype=np.int64)


def located(numbers: np.ndarray, starts: np.ndarray) -> tuple[list[int], np.ndarray]:
    """Return the groups of these rows in ascending order, and the rows' positions in the concatenated groups.

    Raises IndexError for a row that does not exist.
    """
    checked(numbers, int(starts[-1]))
    # If groups without rows start at the same number, this finds the last group, which has the row.
    groups = np.searchsorted(starts, numbers, side="right") - 1
    needed, places = np.unique(groups, return_inverse=True)
    lengths = np.diff(starts)[needed]
    before = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    return needed.tolist(), before[places] + numbers - starts[groups]
