"""Row orders of training loops contain each row once. The measures of shuffling have known values for known orders."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from bench_runner.operations.streams import orders

ROWS, BATCH = 50_000, 64

Order = Callable[[np.random.Generator, int], np.ndarray]


def groups_of_1000(random: np.random.Generator, rows: int) -> np.ndarray:
    """Return row groups in random order, with the rows of each group shuffled."""
    groups = random.permutation(rows // 1_000)
    return np.concatenate([group * 1_000 + random.permutation(1_000) for group in groups])


def contiguous(random: np.random.Generator, rows: int) -> np.ndarray:
    """Return batches of neighbouring rows, in random order."""
    whole = rows // BATCH
    starts = random.permutation(whole) * BATCH
    return np.concatenate([(starts[:, None] + np.arange(BATCH)).reshape(-1), np.arange(whole * BATCH, rows)])


def buffer_of_10_000(random: np.random.Generator, rows: int) -> np.ndarray:
    return orders.buffered(random, rows, 10_000)


KNOWN: dict[Order, tuple[float, float, float]] = {
    orders.permuted: (1.0, 1.0, 0.04),
    orders.buffered: (24, 45, 0.04),
    buffer_of_10_000: (2.8, 7.5, 0.04),
    groups_of_1000: (47, 56, 0.04),
    contiguous: (397, 64, 0.01),
    orders.in_blocks: (6.7, 1.8, 0.08),
}
"""Order -> expected locality, expected parts, and the tolerance of both."""


@pytest.mark.parametrize("order", KNOWN, ids=lambda order: order.__name__)
def test_known_orders_have_known_measures(order: Order) -> None:
    """A full shuffle has 1 in both measures. Each simplified shuffle has its known distance from that."""
    locality, parts, off = KNOWN[order]
    numbers = order(np.random.default_rng(1), ROWS)
    assert orders.locality(numbers, ROWS, BATCH) == pytest.approx(locality, rel=off)
    assert orders.parts(numbers, ROWS, BATCH) == pytest.approx(parts, rel=off)


def test_the_stored_order_is_the_worst() -> None:
    stored = np.arange(ROWS)
    assert orders.locality(stored, ROWS, BATCH) == pytest.approx(ROWS / 2 / BATCH, rel=0.02)
    assert orders.parts(stored, ROWS, BATCH) == pytest.approx(BATCH, rel=0.02)


def test_a_part_of_an_order_has_nearly_the_same_measures() -> None:
    numbers = orders.in_blocks(np.random.default_rng(1), ROWS)[: ROWS // 4]
    assert orders.locality(numbers, ROWS, BATCH) == pytest.approx(6.7, rel=0.1)
    assert orders.parts(numbers, ROWS, BATCH) == pytest.approx(1.8, rel=0.1)


@pytest.mark.parametrize("order", [orders.permuted, orders.in_blocks, orders.buffered])
@pytest.mark.parametrize("rows", [1, 15, 17, 999, 1_001, 5_003])
def test_each_row_comes_once(order: Order, rows: int) -> None:
    numbers = order(np.random.default_rng(1), rows)
    assert numbers.dtype == np.int64
    assert sorted(numbers.tolist()) == list(range(rows))


def test_a_buffer_gives_nothing_that_has_not_come() -> None:
    numbers = orders.buffered(np.random.default_rng(1), 5_000)
    assert (numbers < np.arange(5_000) + orders.BUFFER_ROWS).all()


def test_a_window_of_blocks_is_read_as_neighbours() -> None:
    numbers = orders.in_blocks(np.random.default_rng(1), 16 * 64 * 4)
    window = numbers[: orders.NEIGHBOUR_ROWS * orders.WINDOW_BLOCKS]
    assert len(set((window // orders.NEIGHBOUR_ROWS).tolist())) == orders.WINDOW_BLOCKS


@pytest.mark.parametrize(("rows", "batch", "told"), [(10, 1, False), (100, 64, False), (128, 64, True), (8, 2, False)])
def test_few_rows_have_no_measures(rows: int, batch: int, told: bool) -> None:
    assert orders.can_tell(rows, batch) == told
