"""Process several parts of a store at the same time. Decompression and decoding release Python's global lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

MOST_THREADS = 4
"""Maximum number of threads of one call."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def in_threads(function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[tuple[_Item, _Result]]:
    """Return each item with the function's result, in order. The iterator `items` advances while threads process
    earlier items."""
    with ThreadPoolExecutor(min(MOST_THREADS, len(os.sched_getaffinity(0)))) as workers:
        waiting = [(item, workers.submit(function, item)) for item in items]
        return [(item, future.result()) for item, future in waiting]
