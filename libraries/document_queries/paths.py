"""Paths into documents, and their text form. A step of a path is a field name, or `[*]` for all items of an array.

Example: `user.tags[*].text`. A dot, bracket or backslash in a name is escaped with a backslash. `""` is the empty name.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from functools import lru_cache

from libraries.document_queries.errors import QueryError


class Items(enum.Enum):
    """The step from an array to its items."""

    ITEMS = "[*]"


ITEMS = Items.ITEMS
Step = str | Items

_EMPTY_NAME = '""'
_SPECIAL = re.compile(r'([.\[\]\\]|^"")')
_NAME = re.compile(r"(?:[^.\[\]\\]|\\.)+", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class Path(tuple[Step, ...]):
    """The steps from a document to a value; `Path()` is the document itself."""

    __slots__ = ()

    def __new__(cls, steps: Iterable[Step] = ()) -> Path:
        """Make a path of field names and `ITEMS`."""
        return super().__new__(cls, steps)

    def __truediv__(self, step: Step) -> Path:
        """Return the path with one more step."""
        return Path((*self, step))

    def __str__(self) -> str:
        """Return the text that `parse` reads."""
        return _spelled(self)

    def __repr__(self) -> str:
        return f"Path({str(self)!r})"


@lru_cache(maxsize=1 << 14)
def _spelled(path: Path) -> str:
    words = ""
    for step in path:
        if isinstance(step, Items):
            words += step.value
        else:
            words += ("." if words else "") + (_SPECIAL.sub(r"\\\1", step) or _EMPTY_NAME)
    return words


def parse(text: str) -> Path:
    """Parse the text of a path. Raises QueryError with the position of the first mistake."""
    steps: list[Step] = []
    place = 0
    while place < len(text):
        if text.startswith(ITEMS.value, place):
            steps.append(ITEMS)
            place += len(ITEMS.value)
            continue
        if steps and text[place] != ".":
            raise _misspelled(text, place)
        place += bool(steps)
        found = _NAME.match(text, place)
        if found is None:
            raise _misspelled(text, place)
        steps.append("" if found.group() == _EMPTY_NAME else _ESCAPED.sub(r"\1", found.group()))
        place = found.end()
    return Path(steps)


def _misspelled(text: str, place: int) -> QueryError:
    return QueryError(
        f"path {text!r}, character {place}: expected a field name or [*], as in user.tags[*].text; "
        "put a backslash before a dot, bracket or backslash of a name"
    )
