"""Settings that select columns by their numbers, such as `0+3+7-9`. The name of a variant (a format with its library
and settings) contains these numbers instead of the names of columns, because the name of a column may have characters
that the name of a variant may not have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_RANGE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")


class ColumnNumbers:
    """The allowed values of a setting that selects columns: column numbers, counted from 0, and ranges of numbers,
    joined by '+'."""

    def canonical(self, text: str) -> str:
        """Return `text` in its shortest spelling: '0+1+2+7' becomes '0-2+7'. Raises ValueError if `text` is not a list
        of column numbers and ranges joined by '+'."""
        return spelled(numbers_of(text))

    def __str__(self) -> str:
        return "numbers of columns from 0, e.g. 0+3+7-9"


COLUMN_NUMBERS = ColumnNumbers()


def numbers_of(text: str) -> tuple[int, ...]:
    """Return the column numbers that a text such as '0+3+7-9' contains, in ascending order. Raises ValueError for any
    other text."""
    found: set[int] = set()
    for part in text.split("+"):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise ValueError(text)
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(text)
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def spelled(numbers: Iterable[int]) -> str:
    """Return the columns as text. Two or more consecutive numbers become a range: 7, 8, 9 becomes '7-9'."""
    return "+".join(f"{first}" if first == last else f"{first}-{last}" for first, last in _runs(sorted(set(numbers))))


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    first = last = None
    for number in numbers:
        if last is not None and number == last + 1:
            last = number
            continue
        if first is not None and last is not None:
            yield first, last
        first = last = number
    if first is not None and last is not None:
        yield first, last
