"""Concurrent calls use every input once, in order, on their stream's own handle. They are timed together."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest

from adapters.offers import Handle
from bench_runner.clock import now_ns, pause
from bench_runner.worker.sampling.block import Block, is_cached
from bench_runner.worker.sampling.concurrent import both_sides, call_at_once, empty_call_ns

THREADS, CALLS, SLEEP_S = 4, 40, 0.005


def sleeping(handle: Handle | None, held: int) -> tuple[int, dict[str, int]]:
    started = now_ns()
    pause(SLEEP_S)
    return held * 2, {"wall_ns": now_ns() - started}


def test_all_inputs_are_answered_in_their_order_and_in_a_part_of_the_time() -> None:
    began = now_ns()
    block = call_at_once(sleeping, (None,), list(range(CALLS)), THREADS)
    assert block.results == [2 * held for held in range(CALLS)]
    assert block.together_ns is not None
    assert block.together_ns <= now_ns() - began
    assert sum(block.walls_ns) >= CALLS * SLEEP_S * 1e9
    assert CALLS / THREADS * SLEEP_S * 1e9 <= block.together_ns < 0.75 * sum(block.walls_ns)
    assert len(block.asked_bytes) == 1


def test_each_stream_keeps_to_its_handle() -> None:
    handles = [Handle() for _ in range(THREADS)]
    users: dict[int, set[int]] = {}

    def call(handle: Handle | None, held: int) -> tuple[int, dict[str, int]]:
        users.setdefault(id(handle), set()).add(threading.get_ident())
        return sleeping(handle, held)

        # Each stream makes one call, as in a cold sample. A fast stream does not make the call of another stream.

    call_at_once(call, handles, list(range(THREADS)), THREADS)
    assert len(users) == THREADS
    call_at_once(call, handles, list(range(CALLS)), THREADS)
    assert all(len(threads) <= 2 for threads in users.values())


def test_what_one_call_raises_ends_them_all_and_is_raised() -> None:
    made: list[int] = []

    def call(handle: Handle | None, held: int) -> tuple[int, dict[str, int]]:
        made.append(held)
        if held == 5:
            raise KeyError("of the sixth")
        return sleeping(handle, held)

    with pytest.raises(KeyError, match="of the sixth"):
        call_at_once(call, (None,), list(range(1_000)), THREADS)
    assert len(made) < 100


def test_fewer_calls_than_streams_are_made_once_each() -> None:
    block = call_at_once(sleeping, (None,), [7, 8], THREADS)
    assert block.results == [14, 16]


def test_calls_before_and_after_are_the_halves_that_show_a_cache() -> None:
    before, after = (Block(laps=[{"wall_ns": 1}] * 3, asked_bytes=[each, each]) for each in (100_000, 40_000))
    assert is_cached(both_sides(before, after), 0, 1, 0, sees_reads=True, needs_values=True)
    assert not is_cached(both_sides(before, before), 0, 1, 0, sees_reads=True, needs_values=True)


def test_empty_calls_take_something_and_little() -> None:
    result: Any = pa.table({"a": [1, 2], "b": ["x", None]})
    assert 0 < empty_call_ns(result, 64, THREADS) < 10_000_000
