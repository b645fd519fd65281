"""The orders in which a training loop reads rows, and measures of how well an order is shuffled.

An order is an int64 array that contains each row number of a table once. A batch consists of consecutive entries of
this array. See docs/training.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

NEIGHBOUR_ROWS = 16
"""Number of neighbouring rows in a block, for the order `blocks`."""
WINDOW_BLOCKS = 64
"""Number of blocks that are shuffled together, for the order `blocks`."""
BUFFER_ROWS = 1_000
"""Number of rows in the buffer from which the order `buffer` draws one row at a time."""
EQUAL_PARTS = 16
"""Number of equal parts into which a table is divided, to count how many rows of a batch come from each part."""


def permuted(random: np.random.Generator, rows: int) -> np.ndarray:
    """Return all row numbers in random order."""
    return random.permutation(rows).astype(np.int64)


def in_blocks(random: np.random.Generator, rows: int) -> np.ndarray:
    """Return all row numbers, shuffled in two steps. First blocks of neighbouring rows are shuffled, so that a reader
    can read each block at once. Then the rows within each window of WINDOW_BLOCKS blocks are shuffled."""
    blocks = random.permutation(-(-rows // NEIGHBOUR_ROWS))
    windows = []
    for start in range(0, len(blocks), WINDOW_BLOCKS):
        firsts = blocks[start : start + WINDOW_BLOCKS, None] * NEIGHBOUR_ROWS
        numbers = (firsts + np.arange(NEIGHBOUR_ROWS)).reshape(-1)
        windows.append(random.permutation(numbers[numbers < rows]))
    return np.concatenate(windows).astype(np.int64)


def buffered(random: np.random.Generator, rows: int, waiting: int = BUFFER_ROWS) -> np.ndarray:
    """Return all row numbers in the order in which they are drawn at random from a buffer of `waiting` rows. The next
    row in stored order replaces each drawn row."""
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
    """Return how often two rows of a batch are stored less than one batch size apart, divided by the frequency in a
    random order.

    The value is 1 for a random order and about rows / (2 * batch) for the stored order. `order` may be cut short, so
    that it contains fewer than `rows` row numbers.
    """
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
    """Return how unevenly the rows of a batch are spread over the table, averaged over the batches.

    The table is divided into EQUAL_PARTS equal parts. The returned value is chi-squared per degree of freedom of the
    numbers of rows from each part, divided by the value expected for a random order. It is 1 for a random order and
    about the batch size for the stored order.
    """
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
    """Return whether the table and the batches have enough rows to measure how well batches are shuffled."""
    return batch >= 2 and rows >= max(EQUAL_PARTS, 2 * batch)


def _batches(order: np.ndarray, batch: int) -> Iterator[np.ndarray]:
    """Yield the batches that have at least two rows."""
    for start in range(0, len(order), batch):
        ordered = order[start : start + batch]
        if len(ordered) > 1:
            yield ordered
