"""Make a block of short calls in one process, and time each call separately (method rule 19).

If the stored copy stays open between calls, it is opened before the first call. The time of the first call is a
separate figure. The median time of the other calls is the time of the sample.
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
"""Longest duration in ns of a block with more than three calls. If the duration of the first call shows that all calls
would take longer, the block has fewer calls. More calls would only show how much the calls of one process differ.
Confidence intervals are computed from several processes, so they do not need more calls in one process (rule 19)."""
MOST_NS, MOST_RESULT_BYTES = 10 * 10**9, 64 * 10**6
"""Limits for the duration and for the size of all results of a block (rule 19). If three calls would exceed MOST_NS, or
if all results would exceed MOST_RESULT_BYTES, the block has fewer calls."""
FEWEST_KEPT = 3
"""Smallest number of calls on a handle that stays open. With fewer calls, no figure is reported (rule 19)."""
PRIVATE_FROM_NS = 50 * 10**6
"""Shortest block, in ns, for which private memory is reported. Memory is read only every 2 ms, which is too seldom for
a shorter block (rule 19)."""
CACHED_SHARE = 0.5
"""If the calls of the second half of a block request less than this share of the bytes that the first half requested,
the library reads from its own cache (rule 19)."""
LOOK_BYTES = 128
"""A call that requests fewer bytes does not read stored values (rule 19). It may read some bytes for other reasons:
SQLite reads 16 bytes in each statement to check whether its file has changed, and a thread that another thread wakes
reads 8 bytes."""
HELD_BYTES, HELD_SHARE = 16 * 10**6, 0.1
"""Limits for the memory of an open handle, in bytes and as a share of the stored copy (rule 19). A handle that exceeds
both limits is considered a cache in two cases: if its reads cannot be counted, or if it read much more before the block
than each call of the block reads."""


@dataclass
class Opened:
    """The open handles of a stored copy, and the figures of opening them. There is one handle, or one for each calling
    thread, or none if each call opens the copy."""

    handles: tuple[Handle, ...]
    figures: dict[str, int] = field(default_factory=dict)

    @property
    def kept(self) -> bool:
        """Whether a handle is open."""
        return bool(self.handles)

    @property
    def of_calls(self) -> tuple[Handle | None, ...]:
        """The handles that calls use in turn. If each call opens the copy itself, this is (None,)."""
        return self.handles or (None,)


Call = Callable[[Handle | None, Any], tuple[Any, dict[str, int]]]
"""Type of functions that make one call with a handle and an input. They return the result and the durations of the
timed steps ("laps") by name."""


@dataclass
class Block:
    """The results of the calls of a block, and the durations of the timed steps ("laps") of each call."""

    results: list[Any] = field(default_factory=list)
    laps: list[dict[str, int]] = field(default_factory=list)
    asked_bytes: list[int] = field(default_factory=list)
    """Two numbers: the bytes requested in the first half of the block and in the second half."""
    device_bytes: int = 0
    together_ns: int | None = None
    """Time from the start of the first call to the end of the last call, if the calls ran concurrently; otherwise
    None."""

    @property
    def walls_ns(self) -> list[int]:
        """Duration of each call."""
        return [each["wall_ns"] for each in self.laps]

    def figures(self, cpu_ns: int) -> dict[str, int]:
        """Return the figures of a sample by name: medians and means over the calls. `cpu_ns` is the CPU time of all
        calls, including child processes."""
        walls, calls = self.walls_ns, len(self.laps)
        figures = {
            "p90_ns": int(quantiles(walls, n=10, method="inclusive")[-1]) if calls > 1 else walls[0],
            "cpu_ns": cpu_ns // calls,
            "repetitions": calls,
            "asked_bytes": sum(self.asked_bytes) // calls,
            "device_read_bytes": self.device_bytes // calls,
        }
        if self.together_ns is not None:
            # The time of each call includes waiting for other calls. So use the total duration of all calls.
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
    """Open the stored copy as many times as the operation needs open handles. Return the handles, and the figures of
    opening."""
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
    """Prepare the handles between opening and the first call. This loop is a separate function, so that its loop
    variable does not keep the last handle alive when the handles are closed."""
    for handle in opened.handles:
        operation.make_ready(stage, handle, inputs)
        operation.confirm(stage, handle, inputs)


def one_call(
    operation: Calls, stage: OperationContext, handle: Handle | None, held: Any, location: Path
) -> tuple[Any, dict[str, int]]:
    """Make one call and time it. Return its result and the durations of its timed steps by name."""
    laps = Laps()
    laps.start()
    if handle is None:
        result = operation.run(stage, held, location, laps)
    else:
        result = operation.call(stage, handle, held, location, laps)
    laps.stop()
    return result, laps.parts


def calls_that_fit(
    first_ns: int, result_bytes: int, *, enough_ns: int | None = None, shorter: str = "", threads: int = 1
) -> int:
    """Return the total number of calls in a block, over all threads. The number is computed from the duration and the
    result size of the first call.

    `enough_ns` is the longest duration of a block with more than three calls (default ENOUGH_NS). `shorter` is the
    advice to a user whose calls are too long, or ''. Raises RefusedData if there is such advice and fewer than
    FEWEST_KEPT calls per thread fit into the limits.
    """
    first_ns, fewest = max(first_ns, 1), FEWEST_KEPT * threads
    in_time = max((enough_ns or ENOUGH_NS) // first_ns, min(fewest, MOST_NS // first_ns))
    calls = min(REPETITIONS * threads, in_time, MOST_RESULT_BYTES // max(result_bytes, 1))
    if shorter and calls < fewest:
        raise RefusedData(
            f"a call takes {first_ns / 1e9:.1f} s and returns {result_bytes / 1e6:.0f} MB, so fewer than "
            f"{fewest} calls fit into {MOST_NS / 1e9:.0f} s and {MOST_RESULT_BYTES / 1e6:.0f} MB; {shorter}"
        )
    return max(calls, 1)


def has_large_answers(result_bytes: int, threads: int) -> bool:
    """Return whether two results of this size exceed the limit for all results of a block. If so, each variant makes a
    single call. With several threads, return False."""
    return threads == 1 and 2 * result_bytes > MOST_RESULT_BYTES


def tells_memory(calls: int, calls_ns: int, result_bytes: int, *, once: bool, threads: int = 1) -> bool:
    """Return whether the private memory measured in a block is comparable between variants.

    The block must be long enough for memory to be read several times. The block must also have the same number of calls
    as the blocks of other variants, because all results stay in memory until they are verified. `once` means that all
    variants make a single call.
    """
    single = once or has_large_answers(result_bytes, threads)
    return calls_ns >= PRIVATE_FROM_NS and (single or calls >= REPETITIONS * threads)


def call_all(call: Call, handles: Sequence[Handle | None], inputs: Sequence[Any]) -> Block:
    """Make one call for each input, using these handles in turn, and return their results and times. Between calls
    nothing else happens, except that the I/O counters are read once, halfway through the block."""
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
    """Return whether calls used data that the library keeps in its own memory since the copy was opened or since
    earlier calls.

    `held_bytes` is the memory that the handles use. `before_bytes` is the number of bytes that opening and the first
    call requested, per handle. `sees_reads` is whether the I/O counters include reads of the stored copy. If reads
    cannot be counted, only the memory of the handles can show a cache. `needs_values` is whether every call must read
    stored values. If metadata are enough for a call, reading few bytes does not show a cache, because metadata may stay
    in memory.
    """
    calls = len(block.laps)
    # The memory of a handle may contain a decoded footer and buffers of the last call, as in pyarrow, but no cache.
    read_ahead_bytes = before_bytes - sum(block.asked_bytes) / calls
    may_be_values = not sees_reads or read_ahead_bytes > HELD_SHARE * copy_bytes
    if may_be_values and held_bytes > max(HELD_BYTES, HELD_SHARE * copy_bytes):
        return True
    if not sees_reads:
        return False
    first, *rest = block.asked_bytes
    # With an odd number of calls, the first half has one call more.
    first_of_each = first / ((calls + 1) // 2 if rest else calls)
    if needs_values and first_of_each < LOOK_BYTES:
        return True
    return bool(rest) and rest[0] / (calls // 2) < CACHED_SHARE * first_of_each


def empty_call_ns(result: Any) -> int:
    """Return the median time of a call that does nothing. The time consists of reading clocks, storing the durations,
    and reading one byte in each page of an existing result (rule 19)."""
    return int(median(empty_call(None, result)[1]["wall_ns"] for _ in range(REPETITIONS)))


def empty_call(handle: Handle | None, result: Any) -> tuple[Any, dict[str, int]]:
    """Make a timed call that only reads one byte in each page of an existing result."""
    laps = Laps()
    laps.start()
    laps.lap("engine_ns")
    laps.lap("convert_ns")
    targets.touch(result)
    laps.lap("touch_ns")
    laps.stop()
    return result, laps.parts
