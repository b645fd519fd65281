"""Do one job in one fresh worker process: measure an operation, time an import, test the measurement of memory, or find
out what a variant changes in data.

The worker receives its job from its parent, bench_runner.run.launcher, and sends the results back as lines of JSON
through a pipe. The parent also observes the worker from outside.
"""

from __future__ import annotations

import errno
import mmap
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import assert_never

import pyarrow as pa

from adapters.document_store import DocumentStoreAdapter
from adapters.errors import RefusedData
from bench_runner import registries
from bench_runner.clock import now_ns
from bench_runner.errors import Failure, in_one_line
from bench_runner.machine import linux
from bench_runner.operations import OtherAnswer, targets
from bench_runner.worker import document_fidelity, fidelity, memory_probe, sample
from bench_runner.worker.clean_slate import clean_slate
from bench_runner.worker.messages import (
    Answer,
    AnyTask,
    Done,
    Failed,
    FidelityFound,
    FidelityTask,
    Imported,
    ImportTask,
    MeasureTask,
    Probed,
    ProbeTask,
    decode,
    encode,
)
from bench_runner.worker.phase import PHASE_AFTER, PHASE_CLOCK
from bench_runner.worker.prepared import loaded_adapter
from bench_runner.worker.verify import Mismatch

SHARED_MEMORY = Path("/dev/shm")


def run_job(task: AnyTask, answers: int, phase_page: int) -> None:
    """Do one job and write its result messages to the file descriptor `answers`. Errors are sent as a message, too.
    `phase_page` is the file descriptor of a shared memory page, whose first byte is the phase of the sample."""
    with mmap.mmap(phase_page, mmap.PAGESIZE) as phase:
        try:
            for answer in _answers(task, phase):
                _send(answers, answer)
            _send(answers, Done())
        except BaseException as error:  # includes SystemExit: a library may call sys.exit, which fails the sample too
            phase[0] = PHASE_AFTER
            _send(answers, Failed(classify(error)))


def _send(descriptor: int, answer: Answer) -> None:
    line = encode(answer) + b"\n"
    while line:
        line = line[os.write(descriptor, line) :]


def _answers(task: AnyTask, phase: mmap.mmap) -> Iterator[Answer]:
    match task:
        case MeasureTask():
            return sample.measure(task, phase)
        case ImportTask():
            return time_import(task)
        case ProbeTask():
            return probe_memory(task, phase)
        case FidelityTask():
            return look_for_losses(task)
    assert_never(task)


def classify(error: BaseException) -> Failure:
    """Return the Failure to record for a job that raised `error`. The reason has one line."""
    text = in_one_line(error) or "no message"
    reason = f"{type(error).__name__}: {text}"[:400]
    if isinstance(error, (Mismatch, OtherAnswer)):
        return Failure(kind="mismatch", reason=text[:600])
    if isinstance(error, RefusedData):
        return Failure(kind="refused", reason=text[:400])
    if isinstance(error, MemoryError):
        return Failure(kind="memory", reason=reason)
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    if full or "No space left on device" in text or "StorageFull" in text:
        return Failure(kind="disk", reason=f"the disk is full ({reason})")
    return Failure(kind="error", reason=reason)


# --- other jobs ---------------------------------------------------------------------------------------------------


def time_import(task: ImportTask) -> Iterator[Imported]:
    """Yield the time and memory for loading an engine's libraries, in an interpreter that has loaded pandas and
    pyarrow. Call this only in spawned workers, because forked workers have already loaded the libraries."""
    import pandas  # noqa: F401  # the target's library is loaded for every format

    adapter = registries.build(task.variant, threads=task.threads)
    before = linux.own_memory()
    started = now_ns()
    adapter.load_library()
    wall_ns = now_ns() - started
    after = linux.own_memory()
    yield Imported(import_ns=wall_ns, import_rss_bytes=max(after.resident_bytes - before.resident_bytes, 0))


def probe_memory(task: ProbeTask, phase: mmap.mmap) -> Iterator[Probed]:
    """Allocate and free 500 MB, then allocate a known amount of memory. Yield the memory that the probe measured for
    the known amount (rule 13)."""
    allocate = memory_probe.ALLOCATIONS[task.how]
    memory_probe.disturb()
    clean_slate()
    linux.reset_high_water()
    high_water_before = linux.high_water_bytes()
    before = linux.own_memory()
    phase[0] = PHASE_CLOCK
    kept = allocate(task.size_bytes)
    at_end = linux.own_memory()
    high_water = linux.high_water_bytes()
    phase[0] = PHASE_AFTER
    del kept
    yield Probed(
        private_before_bytes=before.private_bytes,
        private_end_bytes=at_end.private_bytes,
        peak_rss_bytes=max(high_water - high_water_before, 0),
    )


def look_for_losses(task: FidelityTask) -> Iterator[FidelityFound]:
    """Save and read back every kind of column, without and with nulls (rule 12). For a document store, do the same with
    every kind of document. Yield one result for each kind."""
    adapter = loaded_adapter(task)
    targets.apply_strings(task.target)
    if isinstance(adapter, DocumentStoreAdapter):
        verdicts = document_fidelity.probe(adapter, task.location)
    else:
        verdicts = fidelity.probe(adapter, task.target, task.location)
    yield from map(FidelityFound, verdicts)


# --- becoming a worker ---------------------------------------------------------------------------------------------


def become_worker(task: AnyTask, parent: int) -> None:
    """Restrict this process. It then ends when its parent ends, is the first process to be killed when memory runs out,
    can write only to its folder, and prints to a file."""
    linux.die_with_parent(parent)
    # Use a separate session, so that the launcher can end all processes that the library starts.
    if os.getsid(0) != os.getpid():
        os.setsid()
    linux.adopt_orphans()
    linux.go_first_when_memory_runs_out()
    os.environ["TMPDIR"] = str(task.scratch)
    os.chdir(task.scratch)
    printed = os.open(task.printed, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    os.close(nothing)
    os.close(printed)
    # Writing to /proc/self resets the memory peak. Started processes need shared memory for their locks.
    shared = [SHARED_MEMORY] if task.starts_processes else []
    linux.confine_writes([task.confine, Path("/proc/self"), Path(os.devnull), *shared])
    if task.threads == 1:
        # OMP_NUM_THREADS sets the size of Arrow's compute pool, but not of its I/O pool.
        pa.set_io_thread_count(1)


def main() -> None:
    """Entry point of a spawned worker: `python -m bench_runner.worker.jobs PARENT ANSWERS PHASE`, task on stdin."""
    parent, answers, phase_page = map(int, sys.argv[1:4])
    task: AnyTask = decode(sys.stdin.buffer.read(), AnyTask)
    become_worker(task, parent)
    run_job(task, answers, phase_page)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
