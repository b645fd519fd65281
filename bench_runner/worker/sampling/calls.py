"""Take a sample that consists of a block of short calls (rule 19). The calls are made one after the other, or by
several threads."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from adapters.offers import Handle
from bench_runner.clock import Laps, cpu_ns, now_ns
from bench_runner.machine import linux
from bench_runner.machine.linux import IoBytes
from bench_runner.operations import Calls
from bench_runner.operations.operation import CALLS_AROUND
from bench_runner.variants import is_raw_io
from bench_runner.worker.clean_slate import clean_slate
from bench_runner.worker.messages import Measured, MeasureTask
from bench_runner.worker.phase import PHASE_AFTER, PHASE_CLOCK, PHASE_READY, enter
from bench_runner.worker.prepared import Prepared, distinct_bytes, settle, stored_bytes
from bench_runner.worker.sampling import block, concurrent, joined, once
from bench_runner.worker.sampling.block import Block, Opened
from bench_runner.worker.sampling.sampled import Sampled
from bench_runner.worker.verification import Pair, verified
from bench_runner.worker.watch import Watch


@dataclass
class _Before:
    """The results of the calls before timing, and the inputs that remain for the timed calls."""

    prepared: Prepared
    inputs: list[Any]
    """Inputs of the timed calls."""
    first: Block = field(default_factory=Block)
    """The first calls, one on each handle."""
    early: Block = field(default_factory=Block)
    """Calls that were made one at a time before a block of concurrent calls."""
    spare: list[Any] = field(default_factory=list)
    """Inputs for the calls that are made one at a time after a block of concurrent calls."""
    asked_bytes: int = 0
    """Number of bytes that opening and the first call requested, per handle."""
    figures: dict[str, int] = field(default_factory=dict)

    @property
    def results(self) -> list[Any]:
        return [*self.first.results, *self.early.results]


def call(prepared: Prepared, laps: Laps) -> list[Any]:
    """Make one call, including opening and closing the copy, and return a list with its result."""
    return [prepared.operation.run(prepared.stage, prepared.held[0], prepared.location, laps)]


def sample(prepared: Prepared, task: MeasureTask, phase: mmap.mmap) -> Sampled:
    """Make the calls before timing, the timed calls, and the calls after timing. Return the measurement and the
    results."""
    operation = cast(Calls, prepared.operation)
    threads = operation.threads_at_once
    opened, io_before = _opened(prepared, operation, task)

    def timed(handle: Handle | None, held: Any) -> tuple[Any, dict[str, int]]:
        return block.one_call(operation, prepared.stage, handle, held, prepared.location)

    # In a cold sample, only the first call of each thread counts: later calls find pages in the page cache, or data in
    # the caches of services.
    once = task.cold or task.fresh_services
    if once:
        before = _Before(prepared, prepared.held[:threads])
    else:
        before = _called_before(prepared, operation, task, opened, timed, io_before)
    handles, inputs = opened.of_calls, before.inputs
    watched = task.served is not None
    enter(phase, PHASE_READY, watched=watched)
    watch = Watch()

    phase[0] = PHASE_CLOCK
    started = now_ns()
    cpu_before_ns = cpu_ns()
    if threads > 1:
        inside = concurrent.call_at_once(timed, handles, inputs, threads)
    else:
        inside = block.call_all(timed, handles, inputs)
    own_cpu_ns = cpu_ns() - cpu_before_ns
    watch.stop()
    enter(phase, PHASE_AFTER, watched=watched)
    measured = watch.measured(before.prepared.rest, started, thorough=prepared.thorough)
    measured.figures |= {**prepared.first_call} | opened.figures | before.figures
    measured.figures |= inside.figures(own_cpu_ns + watch.started_cpu_ns())
    late, halves = Block(), inside
    if threads > 1 and not once:
        late = block.call_all(timed, handles, before.spare[:CALLS_AROUND])
        halves = concurrent.both_sides(before.early, late)
    measured.held_before_bytes = sum(each.nbytes for each in before.results)
    kept = opened.kept
    del handles
    held_bytes = _given_back_bytes(opened)
    _add_figures(measured, inside, threads, once=once)
    measured.device_bytes_of_all = linux.io_bytes().device_read - io_before.device_read
    measured.figures |= distinct_bytes(task, prepared)
    # This memory includes buffers of connections. The launcher sees the network traffic and can account for them.
    measured.held_bytes = held_bytes + prepared.stage.adapter.server_cache_bytes
    given = [*before.results, *inside.results, *late.results]
    # Large results of calls before timing have been verified and dropped.
    asked = prepared.held if before.first.results or once else prepared.held[len(before.first.laps) :]
    if kept and not task.cold:
        measured.cached = block.is_cached(
            halves,
            measured.held_bytes,
            stored_bytes(prepared.stage, prepared.location),
            before.asked_bytes,
            sees_reads=task.served is None and not prepared.stage.adapter.reads_unseen,
            # Raw I/O has no cache. For a narrow row it requests few bytes, which must not look like cached values.
            needs_values=operation.needs_values(asked[0]) and not is_raw_io(prepared.stage.adapter.format),
        )
    return Sampled(measured, asked, given)


def _opened(prepared: Prepared, operation: Calls, task: MeasureTask) -> tuple[Opened, IoBytes]:
    """Open the stored copy and prepare its handles for calls. Return the handles, and a reading of the I/O counters.
    Reads of the calls are counted from this reading on."""
    stage, location = prepared.stage, prepared.location
    before = linux.io_bytes()
    opened = block.open_copy(operation, stage, location)
    block.make_ready(operation, stage, opened, prepared.held)
    known = opened.handles
    if task.cold:
        opened.handles = tuple(operation.open_again(stage, handle, location) for handle in known)
    if any(fresh is not handle for fresh, handle in zip(opened.handles, known, strict=True)):
        # The handles are new. Evict the pages that were read while preparing the old handles.
        linux.evict_all(stage.adapter.data_of(location))
        before = linux.io_bytes()
    return opened, before


def _called_before(
    prepared: Prepared, operation: Calls, task: MeasureTask, opened: Opened, call: block.Call, io_before: IoBytes
) -> _Before:
    """Make the calls before timing and return them with the inputs for the timed calls. The time of the first call is a
    separate figure, and determines how many calls the block has."""
    threads, handles, inputs = operation.threads_at_once, opened.of_calls, prepared.held
    first = block.call_all(call, handles, inputs[: len(handles)])
    inputs = inputs[len(handles) :]
    before = _Before(prepared, inputs, first)
    before.asked_bytes = linux.io_bytes().asked_since(io_before) // len(handles)
    before.figures["first_ns"] = first.walls_ns[0]
    size_bytes = first.results[0].nbytes
    shorter = operation.shorter if opened.kept else ""
    calls = block.calls_that_fit(
        first.walls_ns[0], size_bytes, enough_ns=task.block_ns, shorter=shorter, threads=threads
    )
    if block.has_large_answers(size_bytes, threads):
        # Verify and drop large results before timing. Two large results together may need more memory than was made
        # ready, which would slow down the second call.
        began_ns = now_ns()
        verified(prepared, parts(prepared, prepared.held, first.results), last_reader=False)
        first.results.clear()
        before.figures["verify_ns"] = now_ns() - began_ns
        before.prepared = replace(prepared, rest=settle(task))
        clean_slate(thorough=prepared.thorough)
    if threads > 1:
        before.early = block.call_all(call, handles, inputs[:CALLS_AROUND])
        inputs = inputs[CALLS_AROUND:]
    before.inputs, before.spare = inputs[:calls], inputs[calls:]
    return before


def _given_back_bytes(opened: Opened) -> int:
    """Close the handles and return the number of bytes that closing frees. Memory pools return unused memory to the
    system before and after closing, so that memory in pools does not count."""
    clean_slate(thorough=False)
    before = linux.own_memory().private_bytes
    while opened.handles:
        opened.handles[-1].close()
        # Some libraries have no close. They free memory when the last reference to the handle is dropped.
        opened.handles = opened.handles[:-1]
    clean_slate(thorough=False)
    return before - linux.own_memory().private_bytes


def _add_figures(measured: Measured, inside: Block, threads: int, *, once: bool) -> None:
    """Add to `measured` the figures of the timed calls that can be computed only when the results of the calls are
    known."""
    figures, last, calls = measured.figures, inside.results[-1], len(inside.results)
    figures["result_bytes"] = sum(each.nbytes for each in inside.results) // calls
    if threads > 1:
        figures["empty_ns"] = concurrent.empty_call_ns(last, calls, threads)
    else:
        figures["empty_ns"] = block.empty_call_ns(last)
    measured.tells_memory = block.tells_memory(
        calls, figures["calls_ns"], figures["result_bytes"], once=once, threads=threads
    )


def parts(prepared: Prepared, asked: Sequence[Any], given: Sequence[Any]) -> Sequence[Pair]:
    """Return pairs of results and expected results. The results of tables are joined into a few larger tables, which
    are faster to verify. Raises Mismatch for a result with a wrong number of rows or wrong columns."""
    stage = prepared.stage
    apart = [part for each, result in zip(asked, given, strict=False) for part in once.parts(prepared, each, result)]
    return joined.joined(apart, stage.rows) if stage.target.data_kind.has_columns else apart
