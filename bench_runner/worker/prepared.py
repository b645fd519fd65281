"""Preparation of a sample before timing, in a worker process: run the operation once on a few rows, load the
operation's input into private memory, wait until the machine is idle, and free memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_runner import registries
from bench_runner.clock import Laps
from bench_runner.machine import linux
from bench_runner.operations import Operation, OperationContext, operation_of, targets
from bench_runner.operations.parallel.pool import Pool
from bench_runner.worker.clean_slate import clean_slate, containers_made, may_collect
from bench_runner.worker.messages import FidelityTask, ImportTask, MeasureTask
from bench_runner.worker.settle import Rest, Settler


@dataclass(frozen=True)
class Prepared:
    """An operation that is ready to be timed. It has run once on a few rows, its input is in private memory, the
    machine is idle, and no memory pool keeps freed memory (rules 1, 2 and 3)."""

    stage: OperationContext
    operation: Operation
    held: Any
    location: Path
    rest: Rest
    first_call: Mapping[str, int]
    thorough: bool
    """Whether all garbage was collected before timing."""
    copy: tuple[Any, ...] = ()
    """Name, inode, size and time of the files of the stored copy, to detect changes. Empty if the operation creates the
    copy. Also empty for images and documents, because their stores may write to the copy while reading."""


def prepare(task: MeasureTask) -> Prepared:
    """Do everything that precedes timing, in this process, and return the operation ready to be timed."""
    operation = operation_of(task.operation)
    adapter = loaded_adapter(task)
    if task.served is not None:
        adapter.reach(task.location, task.served)
    targets.apply_strings(task.target)
    stage = OperationContext(adapter, task.target, task.dataset, task.dataset_digest, task.rows, task.dataset_name)
    before = containers_made()
    first_call = _prime(stage, operation, task.primer)
    made = containers_made() - before
    held = operation.held(stage)
    operation.prepare(task.location)
    if task.served is not None and not task.fresh_services:
        adapter.warm_up(task.location)
        if task.cold:
            # While warming up, services may have read pages that a cold call must read from the device.
            linux.evict_all(adapter.data_of(task.location))
    operation.begin(stage, task.location)
    rest = settle(task)
    thorough = task.thorough or may_collect(made * stage.rows / max(stage.primer_rows, 1))
    clean_slate(thorough=thorough)
    if isinstance(held, Pool):
        held.everywhere(clean_processes)
    copy = () if task.target.data_kind.reads_may_write else copy_at(adapter.data_of(task.location))
    return Prepared(stage, operation, held, task.location, rest, first_call, thorough, copy)


def clean_processes() -> None:
    """Return freed memory to the system. Called in each process of a pool."""
    clean_slate(thorough=False)


def _prime(stage: OperationContext, operation: Operation, primer: Path) -> dict[str, int]:
    """Run the operation once on a few rows and return the figures of this first call. These figures are reported
    separately, because the extra work that a library does at its first call is not a cost of the format."""
    held = operation.take_input(stage, stage.primer_rows)
    operation.prepare(primer)
    operation.begin(stage, primer)
    linux.reset_high_water()
    before = linux.high_water_bytes()
    laps = Laps()
    laps.start()
    operation.run(stage, held, primer, laps)
    laps.stop()
    growth = linux.high_water_bytes() - before
    operation.end(stage, primer)
    return {"first_call_ns": laps.parts["wall_ns"], "first_call_rss_bytes": max(growth, 0)}


def settle(task: MeasureTask) -> Rest:
    """Wait until the machine is at rest, and return the state that was reached. Call this as late as possible, because
    the machine stays at rest for less than a second (rule 1)."""
    return Settler(task.scratch, task.best_control, task.readiness).settle(task.need_bytes)


def loaded_adapter(task: MeasureTask | ImportTask | FidelityTask) -> Any:
    """Return the adapter of a task, with its libraries loaded."""
    adapter = registries.build(task.variant, threads=task.threads)
    adapter.load_library()
    return adapter


def copy_at(location: Path) -> tuple[Any, ...]:
    """Return a tuple (name, inode, size, modification time) for each file of a stored copy."""
    found = ((str(path), path.stat()) for path in linux.files_below(location))
    return tuple(sorted((name, about.st_ino, about.st_size, about.st_mtime_ns) for name, about in found))


def stored_bytes(stage: OperationContext, location: Path) -> int:
    """Return the size of a stored copy in bytes, excluding a server's own files."""
    return sum(path.stat().st_size for path in linux.files_below(stage.adapter.sized_at(location)))


def distinct_bytes(task: MeasureTask, prepared: Prepared) -> dict[str, int]:
    """Return, as the figure `distinct_bytes`, how many bytes of the stored copy are in the page cache after a cold
    call. Return an empty dict if the cache was warm."""
    if not task.cold:
        return {}
    data = prepared.stage.adapter.data_of(prepared.location)
    return {"distinct_bytes": sum(linux.resident_file_bytes(path) for path in linux.files_below(data))}
