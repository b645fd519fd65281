"""Measure operations on partitions, each with a fault that is planted before its pool is forked.

`main` runs in a separate process.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench_runner import registries
from bench_runner.machine import linux
from bench_runner.operations.parallel import parts, tables
from bench_runner.operations.parallel.parts import Part
from bench_runner.operations.targets import Target
from bench_runner.worker import jobs, sample
from bench_runner.worker.messages import MeasureTask
from bench_runner.worker.settle import Control, Readiness, Rest, Settler
from data_generator.cache import StoredDataset, prepare
from data_generator.catalogue import resolve
from formats.shared.dask_engine import DaskEngine

ROWS = 4_000
FEW_ROWS = 500
"""So few that the primer has all of them."""
_save, _read, _computed = parts.save, parts.read, DaskEngine.parts_computed


def lost(part: Part, folder: Path) -> None:
    """Do not store the last partition."""
    if part.last < ROWS or part.number == 0:
        _save(part, folder)


def swapped(part: Part, folder: Path) -> None:
    """Store each of two partitions at the place of the other."""
    _save(replace(part, number=1 - part.number), folder)


def twice(part: Part, folder: Path) -> None:
    """Store the last partition once more, at the place of a further one."""
    _save(part, folder)
    if part.number == 1:
        _save(replace(part, number=2), folder)


def repeated(part: Part, folder: Path) -> None:
    """Store the first partition at the place of each."""
    held = parts._held.data
    if part.number == 1:
        first = replace(part, first=0, last=part.first)
        parts.hold(first)
    _save(part, folder)
    parts._held.data = held


def dies(part: Part, folder: Path) -> None:
    """End the process in the middle of a call."""
    if part.number == 1 and part.last == ROWS:
        os._exit(7)
    _save(part, folder)


def dies_at_the_end(part: Part, folder: Path) -> None:
    """End the process as soon as its answer was sent."""
    _save(part, folder)
    if part.number == 1 and part.last == ROWS:
        threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGKILL)).start()
    elif part.last < ROWS and part.last > ROWS // 4:
        time.sleep(0.2)


def full(part: Part, folder: Path) -> None:
    """Fail as on a full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def stale(part: Part, folder: Path) -> Any:
    """Return what this process read first, whatever is asked for."""
    known = stale.__dict__.setdefault("known", {})
    if not known:
        known["table"] = _read(part, folder)
    return known["table"]


def mapped(part: Part, folder: Path) -> Any:
    """Return a table in a mapped file."""
    place = folder / f"mapped-{part.number}"
    with pa.OSFile(str(place), "wb") as file:
        table = _read(part, folder)
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    return pa.ipc.open_file(pa.memory_map(str(place))).read_all()


def prompt(work: Callable[[Part, Path], Any], part: Part, folder: Path) -> Any:
    """Do the work, and fail if it first has to make the adapter, which would be timed."""
    before = parts.adapter_of.cache_info().misses
    result = work(part, folder)
    if part.last == ROWS and parts.adapter_of.cache_info().misses > before:
        raise RuntimeError("the adapter was made within the measured time")
    return result


def prompt_save(part: Part, folder: Path) -> None:
    prompt(_save, part, folder)


def prompt_read(part: Part, folder: Path) -> Any:
    return prompt(_read, part, folder)


def dies_by_dask(self: DaskEngine, frame: Any) -> Any:
    """End a process before dask distributes the work, which the other process then does alone."""
    pool = tables.pool_of(2, spare=False)
    if pool.parts[-1].last == ROWS:
        os.kill(pool._processes[1].pid, signal.SIGKILL)
        # After this time dask knows.
        time.sleep(1)
    return _computed(self, frame)


SAVES: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (lost, swapped, twice, repeated, dies, dies_at_the_end, full, prompt_save)
}
READS: dict[str, Callable[..., Any]] = {each.__name__: each for each in (stale, mapped, prompt_read)}


def task_of(operation: str, variant: str, target: Target, dataset: StoredDataset, folder: Path) -> MeasureTask:
    """Return the task of measuring an operation in `folder`."""
    suffix = registries.build(variant).suffix
    for name in ("stored", "primer", "scratch"):
        (folder / name).mkdir()
    return MeasureTask(
        scratch=folder / "scratch",
        confine=folder,
        printed=folder / "printed",
        operation=operation,
        variant=variant,
        target=target,
        dataset=dataset.path,
        dataset_name=dataset.name,
        dataset_digest=dataset.digest,
        rows=dataset.rows,
        whole=True,
        location=folder / "stored" / f"table{suffix}",
        primer=folder / "primer" / f"table{suffix}",
        last_reader=False,
        need_bytes=0,
        best_control=None,
        readiness=Readiness(True, ""),
        thorough=False,
        cold=False,
    )


def tried(fault: str, operation: str, variant: str, kind: str, folder: Path, dataset: StoredDataset) -> str:
    """Return 'right' with the fidelity, or the kind and reason of the failure."""
    parts.save, parts.read = SAVES.get(fault, _save), READS.get(fault, _read)
    if fault == "dies_by_dask":
        DaskEngine.parts_computed = dies_by_dask  # type: ignore[method-assign]
    task = task_of(operation, variant, Target(kind), dataset, folder)
    os.environ["TMPDIR"] = str(task.scratch)
    with mmap.mmap(-1, mmap.PAGESIZE) as phase:
        try:
            (measured,) = sample.measure(task, phase)
        except Exception as error:
            failure = jobs.classify(error)
            return f"{failure.kind} {failure.reason}"
        return f"right {measured.fidelity}"


def main() -> None:
    """Try each of the trials that stdin lists as [fault, operation, variant, target], in a separate process, below
    the folder that is named. Print one line for each."""
    import distributed  # noqa: F401  # once for all processes

    folder = Path(sys.argv[1])
    rest = Rest(Control(1, 1), settled=True, settle_ns=0)
    Settler.settle = lambda self, need_bytes: rest  # type: ignore[method-assign]
    usual, few = (prepare(resolve("eq", {}, rows=rows), folder / "cache") for rows in (ROWS, FEW_ROWS))
    for number, (fault, operation, variant, kind) in enumerate(json.load(sys.stdin)):
        place = folder / str(number)
        place.mkdir()
        parent, child = os.getpid(), os.fork()
        if child == 0:
            linux.die_with_parent(parent)
            print(tried(fault, operation, variant, kind, place, few if fault == "few" else usual), flush=True)
            # The processes of the pool end when they lose their scheduler.
            os._exit(0)
        os.waitpid(child, 0)
