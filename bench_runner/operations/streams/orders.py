"""The orders in which a training loop reads rows, and measures of how shuffled an order is.

An order is an int64 array that contains each row number of a table once. A batch is a run of neighbours in it. See
docs/method.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

NEIGHBOUR_ROWS = 16
"""Neighbouring rows in a block, in the order `blocks`."""
WINDOW_BLOCKS = 64
"""Blocks that are shuffled together."""
BUFFER_ROWS = 1_000
"""Rows that wait in the buffer, in the order `buffer`, of which one is drawn each time."""
EQUAL_PARTS = 16
"""Equal parts of the table in which the rows of a batch are counted."""


def permuted(random: np.random.Generator, rows: int) -> np.ndarray:
    """Return a full shuffle."""
    return random.permutation(rows).astype(np.int64)


def in_blocks(random: np.random.Generator, rows: int) -> np.ndarray:
    """Return shuffled blocks, with the rows of each window of blocks shuffled: reads are of neighbours."""
    blocks = random.permutation(-(-rows // NEIGHBOUR_ROWS))
    windows = []
    for start in range(0, len(blocks), WINDOW_BLOCKS):
        firsts = blocks[start : start + WINDOW_BLOCKS, None] * NEIGHBOUR_ROWS
        numbers = (firsts + np.arange(NEIGHBOUR_ROWS)).reshape(-1)
        windows.append(random.permutation(numbers[numbers < rows]))
    return np.concatenate(windows).astype(np.int64)


def buffered(random: np.random.Generator, rows: int, waiting: int = BUFFER_ROWS) -> np.ndarray:
    """Return rows drawn from a buffer: when it is full, one is drawn and the next in stored order takes its place."""
    buffer = list(range(min(waiting, rows)))
    order = np.empty(rows, np.int64)
    drawn = random.random(rows)
    for place in range(rows):
        at = int(drawn[place] * len(buffer))
        order[place] = buffer[at]
        following = place + waiting
        if following < rows:
            buffer[at] = following
        else:
            buffer[at] = buffer[-1]
            buffer.pop()
    return order


# --- how shuffled an order is ---------------------------------------------------------------------------------------


def locality(order: np.ndarray, rows: int, batch: int) -> float:
    """Return how often two rows of a batch are stored less than a batch apart, relative to chance. 1 for a random
    order, about rows / (2 batch) for the stored one. `order` may be a part of all `rows`."""
    near = pairs = 0
    for ordered in _batches(order, batch):
        numbers = np.sort(ordered)
        size = len(numbers)
        near += int((np.searchsorted(numbers, numbers + batch) - np.arange(size) - 1).sum())
        pairs += size * (size - 1) // 2
    apart = min(batch, rows)
    by_chance = ((apart - 1) * rows - apart * (apart - 1) / 2) / (rows * (rows - 1) / 2)
    return near / pairs / by_chance


def parts(order: np.ndarray, rows: int, batch: int) -> float:
    """Return how unevenly batches are spread over the table: the mean chi-squared per degree of freedom over equal
    parts of it, relative to chance. 1 for a random order, the size of a batch for the stored one."""
    ends = np.arange(1, EQUAL_PARTS) * rows // EQUAL_PARTS
    shares = np.diff([0, *ends, rows]) / rows
    found = []
    for ordered in _batches(order, batch):
        size = len(ordered)
        counts = np.bincount(np.searchsorted(ends, ordered, side="right"), minlength=EQUAL_PARTS)
        expected = shares * size
        squared = float(((counts - expected) ** 2 / expected).sum())
        found.append(squared / (EQUAL_PARTS - 1) / ((rows - size) / (rows - 1)))
    return float(np.mean(found))


def can_tell(rows: int, batch: int) -> bool:
    """Return whether there are enough rows for the order of batches to mean anything."""
    return batch >= 2 and rows >= max(EQUAL_PARTS, 2 * batch)


def _batches(order: np.ndarray, batch: int) -> Iterator[np.ndarray]:
    """Yield the batches with at least two rows."""
    for start in range(0, len(order), batch):
        ordered = order[start : start + batch]
        if len(ordered) > 1:
            yield ordered
