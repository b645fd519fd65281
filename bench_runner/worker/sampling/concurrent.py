"""Calls from several threads at once: each clocked alone, and all of them together.

One request at a time leaves a device, and a library, idle while the other works. What a call takes then says little:
it waits for the others. So a block of streams has two figures, the time of all its calls over their number, and what
one of them took (method rule 19).
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
    """The calls before a block of streams and those after it, as the halves of one block."""
    laps = [*before.laps, *after.laps]
    return Block(laps=laps, asked_bytes=[sum(before.asked_bytes), sum(after.asked_bytes)])


def call_at_once(call: Call, handles: Sequence[Handle | None], inputs: Sequence[Any], threads: int) -> Block:
    """The calls of all inputs by so many threads: first one each, then whoever has done one takes the next, on its own
    handle where there are several. Results and laps stand in the order of the inputs. Raises what the first call that
    failed has raised, when all threads have ended."""
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
            except BaseException as error:  # whatever it is, it belongs to the sample and not to this thread
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
    """What a call takes of which nothing is asked, where so many threads make them at once: threads and clocks, and
    touching a result that is there."""
    block = call_at_once(empty_call, (None,), [result] * calls, threads)
    assert block.together_ns is not None
    return block.together_ns // calls
