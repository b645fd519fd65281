"""Describe how column names differ, for error messages. Names are quoted, because a name may begin with a space."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

MOST_NAMES = 6
"""Largest number of names of a table that an error message lists."""


def quoted(name: Any) -> str:
    """Return a name in double quotes. pandas allows names that are not text; for such a name, return its repr()."""
    return json.dumps(name, ensure_ascii=False) if isinstance(name, str) else repr(name)


def columns_differ(expected: Sequence[Any], got: Sequence[Any]) -> str:
    """Return a description of how two lists of column names differ: the first difference, and the first names of both
    lists."""
    pairs = zip_longest(map(quoted, expected), map(quoted, got), fillvalue="none")
    number, (stored, returned) = next(pair for pair in enumerate(pairs, start=1) if pair[1][0] != pair[1][1])
    first = f"column {number} is {returned} instead of {stored}"
    return f"columns differ: {first}; expected {_few(expected)}, came back {_few(got)}"


def _few(names: Sequence[Any]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return (", ".join(map(quoted, names[:MOST_NAMES])) or "none") + more
