"""A block of short calls in one process, each clocked alone (method rule 19).

What is kept open is opened before the first call, whose time is a figure of its own; the calls after it make one value
of the sample, their median.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from adapters.errors import RefusedData
from adapters.offers import Handle
from bench_runner.clock import Laps, now_ns
from bench_runner.machine import linux
from bench_runner.operations import Calls, OperationContext, targets
from bench_runner.operations.operation import REPETITIONS

ENOUGH_NS = 2 * 10**9
"""Calls that take longer together, by what the first one shows, are fewer, down to three: what more of them would tell
is how much calls of one process differ, and intervals are of processes (rule 19)."""
MOST_NS, MOST_RESULT_BYTES = 10 * 10**9, 64 * 10**6
"""A block has fewer than three where they would take longer, and fewer at all where they would give more (rule 19)."""
FEWEST_KEPT = 3
"""With fewer calls there is no figure for a handle that is kept (rule 19)."""
PRIVATE_FROM_NS = 50 * 10**6
"""From this length on a block has a figure of private memory, which is looked for every 2 ms (rule 19)."""
CACHED_SHARE = 0.5
"""A second half that asks for less than this share of the bytes of the first reads from what the library keeps
(rule 19)."""
LOOK_BYTES = 128
"""A call that asks for fewer bytes than this reads no values (rule 19): in each statement SQLite looks whether its
file is still the same, at 16 of them, and threads that wake each other read 8."""
HELD_BYTES, HELD_SHARE = 16 * 10**6, 0.1
"""So does a handle that holds more than both, where its reads are not seen or began with so much more (rule 19)."""


@dataclass
class Opened:
    """A stored copy that is open, once or for each thread that calls, or not where each call opens it; and what opening
    took."""

    handles: tuple[Handle, ...]
    figures: dict[str, int] = field(default_factory=dict)

    @property
    def kept(self) -> bool:
        """Whether anything is open."""
        return bool(self.handles)

    @property
    def of_calls(self) -> tuple[Handle | None, ...]:
        """What calls are made on, in turn: None where they open the copy themselves."""
        return self.handles or (None,)


Call = Callable[[Handle | None, Any], tuple[Any, dict[str, int]]]
"""One repetition on what is open: what it gave, and what it took."""


@dataclass
class Block:
    """What the calls of a block gave and took; the first call, which is in no figure but its own, before the others."""

    results: list[Any] = field(default_factory=list)
    laps: list[dict[str, int]] = field(default_factory=list)
    asked_bytes: list[int] = field(default_factory=list)
    """Of the first half, and of the second."""
    device_bytes: int = 0
    together_ns: int | None = None
    """From the start of the first call to the end of the last, where calls ran at the same time."""

    @property
    def walls_ns(self) -> list[int]:
        """Of each call."""
        return [each["wall_ns"] for each in self.laps]

    def figures(self, cpu_ns: int) -> dict[str, int]:
        """A sample's: medians and means of a call. `cpu_ns` is of all calls, with what they have started."""
        walls, calls = self.walls_ns, len(self.laps)
        figures = {
            "p90_ns": int(quantiles(walls, n=10, method="inclusive")[-1]) if calls > 1 else walls[0],
            "cpu_ns": cpu_ns // calls,
            "repetitions": calls,
            "asked_bytes": sum(self.asked_bytes) // calls,
            "device_read_bytes": self.device_bytes // calls,
        }
        if self.together_ns is not None:
            # What a call waits for the others is in its own clock, and in theirs: only all together have a duration.
            return figures | {
                "wall_ns": self.together_ns // calls,
                "calls_ns": self.together_ns,
                "latency_ns": int(median(walls)),
            }
        parts = {
            name: int(median(each.get(name, 0) for each in self.laps))
            for name in ("engine_ns", "convert_ns", "touch_ns")
        }
        return figures | parts | {"wall_ns": int(median(walls)), "calls_ns": sum(walls)}


def open_copy(operation: Calls, stage: OperationContext, location: Path) -> Opened:
    """Open the copy where the operation keeps it open, as many times as it asks for, and say what that took."""
    wanted = operation.handles(stage.adapter)
    if not wanted:
        return Opened(())
    private_before_bytes = linux.own_memory().private_bytes
    before = linux.io_bytes()
    started = now_ns()
    opened = [operation.open(stage, location) for _ in range(wanted)]
    open_ns = now_ns() - started
    asked_bytes = linux.io_bytes().asked_since(before)
    private_bytes = max(linux.own_memory().private_bytes - private_before_bytes, 0)
    figures = {"open_ns": open_ns, "open_asked_bytes": asked_bytes, "open_private_bytes": private_bytes}
    return Opened(tuple(handle for handle in opened if handle is not None), figures)


def make_ready(operation: Calls, stage: OperationContext, opened: Opened, inputs: Sequence[Any]) -> None:
    """What comes between opening and the first call. Not a loop where the handles are closed: its variable would hold
    the last of them, and what it gives back would not be seen."""
    for handle in opened.handles:
        operation.make_ready(stage, handle, inputs)
        operation.confirm(stage, handle, inputs)


def one_call(
    operation: Calls, stage: OperationContext, handle: Handle | None, held: Any, location: Path
) -> tuple[Any, dict[str, int]]:
    """One repetition under its own clock: what it gave, and what it took."""
    laps = Laps()
    laps.start()
    if handle is None:
        result = operation.run(stage, held, location, laps)
    else:
        result = operation.call(stage, handle, held, location, laps)
    laps.stop()
    return result, laps.parts


def calls_that_fit(first_ns: int, result_bytes: int, *, shorter: str = "", threads: int = 1) -> int:
    """How many calls a block has, of all threads together, by what the first one took and gave. Where `shorter` says
    what a user can do against long calls, raises RefusedData if they are too few for a handle that is kept."""
    first_ns, fewest = max(first_ns, 1), FEWEST_KEPT * threads
    in_time = max(ENOUGH_NS // first_ns, min(fewest, MOST_NS // first_ns))
    calls = min(REPETITIONS * threads, in_time, MOST_RESULT_BYTES // max(result_bytes, 1))
    if shorter and calls < fewest:
        raise RefusedData(
            f"a call takes {first_ns / 1e9:.1f} s and gives {result_bytes / 1e6:.0f} MB: fewer than "
            f"{fewest} fit into {MOST_NS / 1e9:.0f} s and {MOST_RESULT_BYTES / 1e6:.0f} MB; {shorter}"
        )
    return max(calls, 1)


def has_large_answers(result_bytes: int, threads: int) -> bool:
    """Whether two answers are more than a block may give: then nobody's has more than a single call."""
    return threads == 1 and 2 * result_bytes > MOST_RESULT_BYTES


def tells_memory(calls: int, calls_ns: int, result_bytes: int, *, once: bool, threads: int = 1) -> bool:
    """Whether a block's private memory can be set beside that of others: it was long enough to be seen, and held as
    many answers as theirs, which are kept until they are verified. `once`: all have a single call."""
    single = once or has_large_answers(result_bytes, threads)
    return calls_ns >= PRIVATE_FROM_NS and (single or calls >= REPETITIONS * threads)


def call_all(call: Call, handles: Sequence[Handle | None], inputs: Sequence[Any]) -> Block:
    """The block: nothing but calls between its first clock and its last, on these handles in turn, and one look at the
    counters halfway."""
    block = Block()
    turns = itertools.cycle(handles)
    half = (len(inputs) + 1) // 2
    before = linux.io_bytes()
    look = before
    for place, held in enumerate(inputs):
        if place == half:
            look, previous = linux.io_bytes(), look
            block.asked_bytes.append(look.asked_since(previous))
        result, laps = call(next(turns), held)
        block.results.append(result)
        block.laps.append(laps)
    end = linux.io_bytes()
    block.asked_bytes.append(end.asked_since(look))
    block.device_bytes = end.device_read - before.device_read
    return block


def is_cached(
    block: Block, held_bytes: int, copy_bytes: int, before_bytes: int, *, sees_reads: bool, needs_values: bool
) -> bool:
    """Whether these calls found what opening or earlier calls had read in the library's own memory.

    `before_bytes`: what opening and the first call have asked for, of each handle. `sees_reads`: the counters see what
    is read of the copy; where they do not, what is held alone can tell. `needs_values`: no call can be answered by
    metadata alone, which may be kept."""
    calls = len(block.laps)
    # What is held may be a footer decoded, or buffers of the last call: pyarrow holds both, and reads all again.
    read_ahead_bytes = before_bytes - sum(block.asked_bytes) / calls
    may_be_values = not sees_reads or read_ahead_bytes > HELD_SHARE * copy_bytes
    if may_be_values and held_bytes > max(HELD_BYTES, HELD_SHARE * copy_bytes):
        return True
    if not sees_reads:
        return False
    first, *rest = block.asked_bytes
    # An odd number of calls has one more in the first half.
    first_of_each = first / ((calls + 1) // 2 if rest else calls)
    if needs_values and first_of_each < LOOK_BYTES:
        return True
    return bool(rest) and rest[0] / (calls // 2) < CACHED_SHARE * first_of_each


def empty_call_ns(result: Any) -> int:
    """What a call takes of which nothing is asked: clocks, laps, and touching a result that is there (rule 19)."""
    walls = []
    for _ in range(REPETITIONS):
        walls.append(empty_call(None, result)[1]["wall_ns"])
    return int(median(walls))


def empty_call(handle: Handle | None, result: Any) -> tuple[Any, dict[str, int]]:
    """A call of which nothing is asked: a result that is there is touched."""
    laps = Laps()
    laps.start()
    laps.lap("engine_ns")
    laps.lap("convert_ns")
    targets.touch(result)
    laps.lap("touch_ns")
    laps.stop()
    return result, laps.parts
