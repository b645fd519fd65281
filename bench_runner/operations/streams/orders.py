"""The orders in which a training loop asks for rows, and how shuffled an order is.

An order is an array of int64, in which each number of a table stands once; a batch is
so many neighbours in it. docs/method.md says the same to the reader.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

NEIGHBOUR_ROWS = 16
"""In the order `blocks` so many neighbours are gathered together."""
WINDOW_BLOCKS = 64
"""So many blocks are shuffled among each other."""
BUFFER_ROWS = 1_000
"""In the order `buffer` so many wait, of which one is drawn each time."""
EQUAL_PARTS = 16
"""A batch is looked at by how many of it lie in each of so many equal parts of the table."""


def permuted(random: np.random.Generator, rows: int) -> np.ndarray:
    """Every order is as likely as every other."""
    return random.permutation(rows).astype(np.int64)


def in_blocks(random: np.random.Generator, rows: int) -> np.ndarray:
    """Blocks in any order, and the rows of a window of them shuffled: what is read are neighbours."""
    blocks = random.permutation(-(-rows // NEIGHBOUR_ROWS))
    windows = []
    for start in range(0, len(blocks), WINDOW_BLOCKS):
        firsts = blocks[start : start + WINDOW_BLOCKS, None] * NEIGHBOUR_ROWS
        numbers = (firsts + np.arange(NEIGHBOUR_ROWS)).reshape(-1)
        windows.append(random.permutation(numbers[numbers < rows]))
    return np.concatenate(windows).astype(np.int64)


def buffered(random: np.random.Generator, rows: int, waiting: int = BUFFER_ROWS) -> np.ndarray:
    """Rows come in stored order into a buffer; when it is full, one is drawn and the next takes its place."""
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
    """How many times as often as by chance two rows of a batch are stored less than a batch apart: 1 for a random
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
    """How unevenly a batch is spread over the table: chi squared per degree of freedom over equal parts of it, over
    what chance gives; the mean of all batches. 1 for a random order, as many as a batch has for the stored one."""
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
    """Whether there are so many rows that the order of batches means anything."""
    return batch >= 2 and rows >= max(EQUAL_PARTS, 2 * batch)


def _batches(order: np.ndarray, batch: int) -> Iterator[np.ndarray]:
    """The batches that have pairs."""
    for start in range(0, len(order), batch):
        ordered = order[start : start + batch]
        if len(ordered) > 1:
            yield ordered
