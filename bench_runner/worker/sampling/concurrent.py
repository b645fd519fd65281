"""Calls from several threads at once. Each call is timed separately, and all calls are timed together.

With one request at a time, the device is idle while the library works, and the reverse. With several requests, the
duration of one call means little, because it includes waiting for other calls. So a block of streams has two figures:
the time of all calls divided by their number, and the duration of a single call (method rule 19).
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import Any

from adapters.offers import Handle
from bench_runner.clock import now_ns
from bench_runner.machine import linux
from bench_runner.worker.sampling.block import Block, Call, empty_call


def both_sides(before: Block, after: Block) -> Block:
    """Return the calls before and after a block of streams as the two halves of one block."""
    laps = [*before.laps, *after.laps]
    return Block(laps=laps, asked_bytes=[sum(before.asked_bytes), sum(after.asked_bytes)])


def call_at_once(call: Call, handles: Sequence[Handle | None], inputs: Sequence[Any], threads: int) -> Block:
    """Call with all inputs from `threads` threads. Each thread makes one call and then takes the next input. If there
    are several handles, each thread uses its own.

    Results and laps are in the order of the inputs. After all threads have ended, raises the first error of a call.
    """
    results: list[Any] = [None] * len(inputs)
    laps: list[dict[str, int]] = [{} for _ in inputs]
    spans: list[tuple[int, int]] = [(0, 0)] * len(inputs)
    errors: list[BaseException] = []
    places = itertools.count(threads)
    gate = threading.Barrier(threads)

    def stream(number: int) -> None:
        handle = handles[number % len(handles)]
        place = number
        gate.wait()
        while not errors and place < len(inputs):
            started = now_ns()
            try:
                results[place], laps[place] = call(handle, inputs[place])
            except BaseException as error:  # every error belongs to the sample, not to this thread
                errors.append(error)
            spans[place] = started, now_ns()
            place = next(places)

    before = linux.io_bytes()
    streams = [threading.Thread(target=stream, args=(number,), daemon=True) for number in range(threads)]
    for each in streams:
        each.start()
    for each in streams:
        each.join()
    end = linux.io_bytes()
    if errors:
        raise errors[0]
    return Block(
        results=results,
        laps=laps,
        asked_bytes=[end.asked_since(before)],
        device_bytes=end.device_read - before.device_read,
        together_ns=max(ended for _, ended in spans) - min(started for started, _ in spans),
    )


def empty_call_ns(result: Any, calls: int, threads: int) -> int:
    """Return the time of a call that does nothing, made by `threads` threads at once. It consists of thread handling,
    reading clocks, and touching an existing result."""
    block = call_at_once(empty_call, (None,), [result] * calls, threads)
    assert block.together_ns is not None
    return block.together_ns // calls
