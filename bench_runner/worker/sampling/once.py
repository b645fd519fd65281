"""A sample of one call (rules 2, 3, 6, 7, 11 and 13)."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from bench_runner.clock import Laps, now_ns
from bench_runner.machine import linux
from bench_runner.worker import document_verify
from bench_runner.worker.messages import MeasureTask
from bench_runner.worker.phase import PHASE_AFTER, PHASE_CLOCK, PHASE_READY, enter
from bench_runner.worker.prepared import Prepared, distinct_bytes, stored_bytes
from bench_runner.worker.sampling.sampled import Sampled
from bench_runner.worker.verification import Part, read_back
from bench_runner.worker.watch import Watch


def sample(prepared: Prepared, task: MeasureTask, phase: mmap.mmap) -> Sampled:
    """One call; nothing is given where it writes."""
    stage, operation, location = prepared.stage, prepared.operation, prepared.location
    watched = task.served is not None
    enter(phase, PHASE_READY, watched=watched)
    watch = Watch()
    laps = Laps()

    phase[0] = PHASE_CLOCK
    laps.start()
    started = now_ns()
    result = prepared.run(laps)
    laps.stop()
    watch.stop()
    enter(phase, PHASE_AFTER, watched=watched)
    laps.parts["cpu_ns"] += watch.started_cpu_ns()
    measured = watch.measured(prepared.rest, started, thorough=prepared.thorough)
    measured.figures |= {**prepared.first_call} | laps.parts
    operation.end(stage, location)  # what a server has read is known once it was waited for
    moved, before = linux.io_bytes(), watch.moved
    figures = measured.figures
    if operation.writes or operation.changes:
        figures["dirtied_bytes"] = moved.dirtied - before.dirtied
        written = result if operation.changes else location
        sync_started = now_ns()
        linux.fsync_all(written)
        figures["sync_ns"] = now_ns() - sync_started
        document_verify.refuse_what_shows_nothing(stage.adapter, written, whole=task.whole)
    else:
        figures["device_read_bytes"] = moved.device_read - before.device_read
        figures["asked_bytes"] = moved.asked_since(before)
        figures |= distinct_bytes(task, prepared)
        if isinstance(result, pa.Table):
            figures["result_bytes"] = result.nbytes
    if operation.changes:
        figures["growth_bytes"] = stored_bytes(stage, result)
        if not operation.makes_anew:
            figures["growth_bytes"] -= stored_bytes(stage, location)
    if operation.writes or operation.makes_anew:
        stored = read_back(stage.adapter, location if operation.writes else result)
        measured.codec, measured.encodings = stored.codec, list(stored.encodings)
    given = None if operation.writes else operation.answer(stage, result, location)
    return Sampled(measured, prepared.held, given)


def parts(prepared: Prepared, asked: Any, given: Any) -> Sequence[Part]:
    """What was asked for, and what was given."""
    return [(asked, given)]
