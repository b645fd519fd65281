"""A block of calls: how many calls it has, its figures, and whether a library answers from its own memory."""

from __future__ import annotations

import pyarrow as pa
import pytest

from adapters.errors import RefusedData
from adapters.offers import Handle
from bench_runner.operations.operation import REPETITIONS
from bench_runner.worker.sampling.block import (
    ENOUGH_NS,
    FEWEST_KEPT,
    HELD_BYTES,
    LOOK_BYTES,
    MOST_NS,
    MOST_RESULT_BYTES,
    PRIVATE_FROM_NS,
    Block,
    call_all,
    calls_that_fit,
    empty_call_ns,
    is_cached,
    tells_memory,
)


@pytest.mark.parametrize(
    ("first_ns", "result_bytes", "calls"),
    [
        (1_000, 1_000, REPETITIONS),
        (ENOUGH_NS // REPETITIONS, 0, REPETITIONS),
        (ENOUGH_NS // 10, 1, 10),
        (ENOUGH_NS // 2, 1, FEWEST_KEPT),
        (MOST_NS // FEWEST_KEPT, 1, FEWEST_KEPT),
        (1, MOST_RESULT_BYTES // 7, 7),
        (ENOUGH_NS // 10, MOST_RESULT_BYTES // 5, 5),
    ],
)
def test_as_many_calls_as_fit(first_ns: int, result_bytes: int, calls: int) -> None:
    assert calls_that_fit(first_ns, result_bytes, shorter="reopen it") == calls


def test_too_few_calls_are_no_figure_for_a_kept_handle() -> None:
    with pytest.raises(RefusedData, match=r"a call takes 4\.0 s .* reopen it"):
        calls_that_fit(MOST_NS * 2 // (FEWEST_KEPT + 2), 1, shorter="reopen it")
    assert calls_that_fit(MOST_NS * 2, 1) == 1


def test_memory_with_fewer_answers_is_not_compared_with_that_of_thirty() -> None:
    """Answers are kept until they are verified. A slow variant with three answers would seem to need a tenth of the
    memory."""
    assert tells_memory(REPETITIONS, PRIVATE_FROM_NS, 1, once=False)
    assert not tells_memory(REPETITIONS - 1, PRIVATE_FROM_NS, 1, once=False)
    assert not tells_memory(REPETITIONS, PRIVATE_FROM_NS - 1, 1, once=False)
    assert tells_memory(1, PRIVATE_FROM_NS, 1, once=True)
    assert not tells_memory(REPETITIONS, PRIVATE_FROM_NS, 1, once=False, threads=2)


def test_memory_is_compared_for_answers_so_large_that_all_have_one() -> None:
    most = MOST_RESULT_BYTES // 2
    assert calls_that_fit(1, most + 1) == 1
    assert tells_memory(1, PRIVATE_FROM_NS, most + 1, once=False)
    assert not tells_memory(1, PRIVATE_FROM_NS, most, once=False), "another has two of them"
    assert not tells_memory(1, PRIVATE_FROM_NS, most + 1, once=False, threads=2)


def test_streams_make_as_many_calls_each_or_all_that_fit_together() -> None:
    assert calls_that_fit(1, 1, shorter="fewer", threads=16) == 16 * REPETITIONS
    assert calls_that_fit(1, MOST_RESULT_BYTES // 100, shorter="fewer", threads=16) == 100
    with pytest.raises(RefusedData, match=r"fewer than 48 calls fit .* fewer"):
        calls_that_fit(1, MOST_RESULT_BYTES // 40, shorter="fewer", threads=16)


def test_for_concurrent_calls_the_block_and_each_latency_are_clocked() -> None:
    """A call among ten concurrent calls did not take a tenth of their total time."""
    block = Block(
        results=[None] * 10,
        laps=[{"wall_ns": wall, "engine_ns": wall} for wall in [10] * 9 + [90]],
        asked_bytes=[100],
        together_ns=250,
    )
    figures = block.figures(cpu_ns=50)
    assert figures["wall_ns"] == 25
    assert figures["calls_ns"] == 250
    assert figures["latency_ns"] == 10
    assert 10 <= figures["p90_ns"] < 90
    assert figures["cpu_ns"] == 5
    assert "engine_ns" not in figures


def test_a_sample_is_the_median_of_its_calls() -> None:
    walls = [5, 1, 9, 3, 100]
    block = Block(
        results=[None] * 5,
        laps=[{"wall_ns": wall, "engine_ns": wall - 1, "touch_ns": 1} for wall in walls],
        asked_bytes=[300, 200],
        device_bytes=50,
    )
    figures = block.figures(cpu_ns=1_000)
    assert figures["wall_ns"] == 5
    assert figures["engine_ns"] == 4
    assert figures["touch_ns"] == 1
    assert figures["convert_ns"] == 0
    assert 9 < figures["p90_ns"] < 100
    assert figures["repetitions"] == 5
    assert figures["calls_ns"] == sum(walls)
    assert figures["cpu_ns"] == 200
    assert figures["asked_bytes"] == 100
    assert figures["device_read_bytes"] == 10


def test_each_input_is_asked_for_once_and_in_order() -> None:
    asked = []

    def call(handle: Handle | None, held: int) -> tuple[int, dict[str, int]]:
        asked.append((handle, held))
        return held * 2, {"wall_ns": held}

    one, other = Handle(), Handle()
    block = call_all(call, [one, other], [3, 1, 2])
    assert asked == [(one, 3), (other, 1), (one, 2)]
    assert block.results == [6, 2, 4]
    assert block.walls_ns == [3, 1, 2]
    assert len(block.asked_bytes) == 2


@pytest.mark.parametrize(
    ("asked_bytes", "calls", "held_bytes", "cached"),
    [
        ([100_000, 100_000], 30, 0, False),
        ([100_000, 51_000], 30, 0, False),
        ([100_000, 49_000], 30, 0, True),
        ([100_000, 0], 30, 0, True),
        # The block has an odd number of calls. Its halves have one and two calls, with the same bytes for each call.
        ([100_000, 50_000], 3, 0, False),
        # Whatever opening or the first call read before, these calls read nothing again.
        ([0, 0], 30, 0, True),
        ([0], 1, 0, True),
        # SQLite reads 16 bytes of its file per call, to check whether the file has changed.
        ([32 * 15, 32 * 15], 30, 0, True),
        ([LOOK_BYTES * 15, LOOK_BYTES * 15], 30, 0, False),
        ([LOOK_BYTES * 2, LOOK_BYTES], 3, 0, False),
        ([100_000], 1, 0, False),
        # Held memory alone, such as metadata or buffers of the last call, is not a cache if every call reads everything
        # again.
        ([100_000, 100_000], 30, HELD_BYTES + 1, False),
    ],
)
def test_reading_less_and_less_or_nothing_is_a_cache(
    asked_bytes: list[int], calls: int, held_bytes: int, cached: bool
) -> None:
    block = Block(laps=[{"wall_ns": 1}] * calls, asked_bytes=asked_bytes)
    assert is_cached(block, held_bytes, 10 * HELD_BYTES, 100_000, sees_reads=True, needs_values=True) == cached


@pytest.mark.parametrize(
    ("before_bytes", "held_bytes", "cached"),
    [
        # Opening and the first call read a footer and a whole copy. Each later call reads a whole copy.
        (HELD_BYTES + 60_000, 3 * HELD_BYTES, False),
        # Opening and the first call read a tenth of the copy more than a later call.
        (HELD_BYTES + HELD_BYTES // 10 + 1, HELD_BYTES + 1, True),
        (HELD_BYTES + HELD_BYTES // 10, HELD_BYTES + 1, False),
        (2 * HELD_BYTES, HELD_BYTES, False),
        (2 * HELD_BYTES, HELD_BYTES + 1, True),
    ],
)
def test_what_is_held_is_a_cache_where_that_much_was_read_before(
    before_bytes: int, held_bytes: int, cached: bool
) -> None:
    block = Block(laps=[{"wall_ns": 1}] * 2, asked_bytes=[HELD_BYTES, HELD_BYTES])
    assert is_cached(block, held_bytes, HELD_BYTES, before_bytes, sees_reads=True, needs_values=True) == cached


@pytest.mark.parametrize("asked_bytes", [[0, 0], [116, 0], [0], [5_000, 8]])
def test_what_reads_by_a_mapping_asks_for_nothing_and_is_no_cache(asked_bytes: list[int]) -> None:
    """Reads through a mapping and reads of a service are not counted, so only the held memory can show a cache."""
    block = Block(laps=[{"wall_ns": 1}] * (30 if len(asked_bytes) > 1 else 1), asked_bytes=asked_bytes)
    assert not is_cached(block, HELD_BYTES, HELD_BYTES, 0, sees_reads=False, needs_values=True)
    assert is_cached(block, HELD_BYTES + 1, HELD_BYTES, 0, sees_reads=False, needs_values=True)


def test_an_answer_from_metadata_needs_no_reads() -> None:
    """Opening or the first call may have read the metadata, as pyarrow's data sets do."""
    block = Block(laps=[{"wall_ns": 1}] * 30, asked_bytes=[0, 0])
    assert not is_cached(block, 0, 1, 0, sees_reads=True, needs_values=False)
    block.asked_bytes = [9_000, 0]
    assert is_cached(block, 0, 1, 0, sees_reads=True, needs_values=False)


def test_a_handle_may_hold_a_tenth_of_a_large_copy() -> None:
    block = Block(laps=[{"wall_ns": 1}] * 2, asked_bytes=[1, 1])
    assert not is_cached(block, 5 * HELD_BYTES, 100 * HELD_BYTES, 90 * HELD_BYTES, sees_reads=True, needs_values=False)


def test_an_empty_call_takes_something() -> None:
    assert 0 < empty_call_ns(pa.table({"a": [1, 2], "b": ["x", None]})) < 10_000_000


def test_a_shorter_block_has_fewer_calls_but_enough() -> None:
    assert calls_that_fit(ENOUGH_NS // 20, 1, enough_ns=ENOUGH_NS // 4) == 5
    assert calls_that_fit(ENOUGH_NS // 4, 1, enough_ns=ENOUGH_NS // 4) == FEWEST_KEPT
