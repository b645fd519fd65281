"""Rows by their numbers, for engines that know groups of rows, or ascending numbers alone. Inside the clock."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def calls_of_groups(count: str, rows_of_group: str, read: str) -> tuple[tuple[str, ...], str]:
    """What a user writes to take rows of an engine that knows groups of rows, as statements and an expression.

    `count` is how many groups there are, `rows_of_group` the rows of the one that is called `group`, `read` reads those
    that are called `groups`, a list.
    """
    return (
        f"starts = np.cumsum([0, *({rows_of_group} for group in range({count}))])",
        'groups, place = np.unique(np.searchsorted(starts, rows, side="right") - 1, return_inverse=True)',
        "before = np.cumsum([0, *np.diff(starts)[groups]])",
        f"read = {read}",
    ), "read.take(before[place] + rows - starts[groups[place]])"


def checked(numbers: np.ndarray, rows: int) -> np.ndarray:
    """The numbers, if a table of so many rows has all of them. Raises IndexError."""
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < rows):
        wrong = next(int(number) for number in numbers if not 0 <= number < rows)
        raise IndexError(f"there is no row {wrong}; the table has {rows:,}, counted from 0")
    return numbers


def ascending(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """The different numbers in ascending order, and where among them each lies that was asked for; None for the latter
    where they are what was asked for."""
    if len(numbers) < 2 or bool(np.all(numbers[1:] > numbers[:-1])):
        return numbers, None
    unique, places = np.unique(numbers, return_inverse=True)
    return unique, places


def starts_of(rows_of_groups: Sequence[int]) -> np.ndarray:
    """The number of the first row of each group, and behind the last one that of all rows."""
    return np.cumsum([0, *rows_of_groups], dtype=np.int64)


def located(numbers: np.ndarray, starts: np.ndarray) -> tuple[list[int], np.ndarray]:
    """The groups that hold these rows, ascending, and where each row lies in them when they stand one behind the
    other. Raises IndexError."""
    checked(numbers, int(starts[-1]))
    # Of groups without rows the last one is found, which is the one that has the row.
    groups = np.searchsorted(starts, numbers, side="right") - 1
    needed, places = np.unique(groups, return_inverse=True)
    lengths = np.diff(starts)[needed]
    before = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    return needed.tolist(), before[places] + numbers - starts[groups]
