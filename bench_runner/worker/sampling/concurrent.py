"""Make calls from several threads at the same time. Measure the duration of each call and the total duration.

With one request at a time, the device is idle while the library works, and the library waits while the device works.
With several requests, the duration of a call says little, because it includes waiting for other calls. So there are two
figures: the total duration divided by the number of calls, and the duration of a single call (method rule 19).
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
    """Return one block with the calls that were made one at a time. The first half of the block are the calls before
    the concurrent calls. The second half are the calls after the concurrent calls."""
    laps = [*before.laps, *after.laps]
    return Block(laps=laps, asked_bytes=[sum(before.asked_bytes), sum(after.asked_bytes)])


def call_at_once(call: Call, handles: Sequence[Handle | None], inputs: Sequence[Any], threads: int) -> Block:
    """Make one call for each input, from `threads` threads, and return their results and times in the order of the
    inputs.

    When the call of a thread ends, the thread takes the next input. If there are several handles, each thread uses its
    own handle. If a call raises an error, the first error is raised after all threads have ended.
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
            except BaseException as error:  # the calling thread raises it, so that the sample fails
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
    """Return the average time of a call that does nothing, made by `threads` threads at the same time. The time
    consists of managing threads, reading clocks, and reading one byte in each page of an existing result."""
    block = call_at_once(empty_call, (None,), [result] * calls, threads)
    assert block.together_ns is not None
    return block.together_ns // calls
