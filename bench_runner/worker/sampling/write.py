"""Take a sample of one call that stores data: measure the bytes written, and check the stored copy (rules 6 and 10)."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import cast

from bench_runner.clock import now_ns
from bench_runner.machine import linux
from bench_runner.operations import Writes
from bench_runner.worker import document_verify
from bench_runner.worker.messages import MeasureTask
from bench_runner.worker.prepared import Prepared, stored_bytes
from bench_runner.worker.sampling.once import called
from bench_runner.worker.sampling.sampled import Sampled
from bench_runner.worker.verification import read_back


def sample(prepared: Prepared, task: MeasureTask, phase: mmap.mmap) -> Sampled:
    """Return the measurement of one call that stores data. After the call, the stored files are synced to the device.
    The time of the sync is a separate figure."""
    stage, operation = prepared.stage, cast(Writes, prepared.operation)
    found = called(prepared, task, phase)
    place: Path = found.result
    measured, figures = found.measured, found.measured.figures
    figures["dirtied_bytes"] = found.after.dirtied - found.before.dirtied
    sync_started = now_ns()
    linux.fsync_all(place)
    figures["sync_ns"] = now_ns() - sync_started
    document_verify.refuse_what_shows_nothing(stage.adapter, place, whole=task.whole)
    before = operation.adds_to(prepared.location)
    if place != prepared.location and before is None:
        figures["files_count"] = sum(1 for _ in linux.files_below(place))
    if place != prepared.location:
        figures["growth_bytes"] = stored_bytes(stage, place) - (stored_bytes(stage, before) if before else 0)
    if before is None:
        for adapter, path in operation.files_of(stage, place):
            stored = read_back(adapter, path)
            measured.codec, measured.encodings = stored.codec, list(stored.encodings)
    return Sampled(measured, prepared.held, operation.answer(stage, place, prepared.location))
