"""Take a sample that consists of one call (rules 2, 3, 6, 7, 11 and 13)."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from bench_runner.clock import Laps, now_ns
from bench_runner.machine.linux import IoBytes
from bench_runner.machine.process_tree import tree_io_bytes
from bench_runner.worker.messages import Measured, MeasureTask
from bench_runner.worker.phase import PHASE_AFTER, PHASE_CLOCK, PHASE_READY, enter
from bench_runner.worker.prepared import Prepared, distinct_bytes
from bench_runner.worker.sampling.sampled import Sampled
from bench_runner.worker.verification import Pair
from bench_runner.worker.watch import Watch


@dataclass(frozen=True)
class Called:
    """The result of a timed call, its measurement, and the I/O counters before and after it."""

    result: Any
    measured: Measured
    before: IoBytes
    after: IoBytes


def call(prepared: Prepared, laps: Laps) -> Any:
    """Run the operation and return its result. Timed by the caller."""
    return prepared.operation.run(prepared.stage, prepared.held, prepared.location, laps)


def called(prepared: Prepared, task: MeasureTask, phase: mmap.mmap) -> Called:
    """Make one timed call, and then end the server that the call needed, if any. Return the result and its
    measurement."""
    # Just before timing, the launcher must read the memory that forked processes share, so wait until it has done so.
    watched = task.served is not None or task.starts_processes
    enter(phase, PHASE_READY, watched=watched)
    watch = Watch()
    laps = Laps()

    phase[0] = PHASE_CLOCK
    laps.start()
    started = now_ns()
    result = call(prepared, laps)
    laps.stop()
    watch.stop()
    enter(phase, PHASE_AFTER, watched=watched)
    laps.parts["cpu_ns"] += watch.started_cpu_ns()
    measured = watch.measured(prepared.rest, started, thorough=prepared.thorough)
    measured.figures |= {**prepared.first_call} | laps.parts
    # The bytes read by a server are known only after the server has ended.
    prepared.operation.end(prepared.stage, prepared.location)
    return Called(result, measured, watch.moved, tree_io_bytes())


def sample(prepared: Prepared, task: MeasureTask, phase: mmap.mmap) -> Sampled:
    """Return the measurement and the result of one call that reads."""
    found = called(prepared, task, phase)
    result, figures = found.result, found.measured.figures
    figures["device_read_bytes"] = found.after.device_read - found.before.device_read
    figures["asked_bytes"] = found.after.asked_since(found.before)
    figures |= distinct_bytes(task, prepared)
    if isinstance(result, pa.Table):
        figures["result_bytes"] = result.nbytes
    return Sampled(found.measured, prepared.held, prepared.operation.answer(prepared.stage, result, prepared.location))


def parts(prepared: Prepared, asked: Any, given: Any) -> Sequence[Pair]:
    """Return a list with one Pair: the result of the call, and the information from which the right result is
    computed."""
    operation, stage = prepared.operation, prepared.stage
    return [Pair(asked, given, operation.expected_columns(stage, asked), operation.expected_rows(stage, asked))]
