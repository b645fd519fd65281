"""Execute one chain: save the data, execute each operation that reads the saved copy, and remove the copy. Each
operation runs in a fresh worker process on an idle machine.

The result is one sample for each operation. If an operation fails, only its own sample has no figures. There is one
exception: if an operation that reads all data finds other data than were saved, no sample of the chain has figures.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from adapters.contract import Adapter
from adapters.services import Service
from bench_runner import registries
from bench_runner.clock import now_ns
from bench_runner.errors import Failure, OperationFailed
from bench_runner.machine import environment, linux
from bench_runner.operations import SAVE, VERIFYING, operation_of
from bench_runner.plan.chain import Chain
from bench_runner.results.records import Sample, changed
from bench_runner.run.assembly import assembled
from bench_runner.run.launcher import Launcher, Limits, Outcome
from bench_runner.run.page_cache import bring_into_cache
from bench_runner.run.services.monitor import ServiceMonitor
from bench_runner.run.services.service_start import END_GRACE_S, Running, ServiceFailed, running
from bench_runner.run.tasks import make_places, measure_task, stored_at
from bench_runner.worker.messages import Measured, MeasureTask
from bench_runner.worker.settle import Settler
from data_generator.cache import StoredDataset

WORKER_MEMORY_SHARE = 0.9
"""Largest share of the available memory that a worker may use. The available memory is read when the worker starts
(rule 5)."""


@dataclass(frozen=True)
class Bench:
    """The resources for executing a chain: workers, a working folder on an idle machine, and limits."""

    launcher: Launcher
    settler: Settler
    folder: Path
    timeout_s: float
    machine: str
    thorough: set[tuple[str, str]] = field(default_factory=set)
    """The pairs (variant, operation) for which Python once collected garbage during timing. In later samples of these
    pairs, garbage is collected before timing."""
    block_ns: int | None = None
    """Longest duration in ns of a block (calls that are timed in one process) with more than three calls. None means
    the usual limit (rule 19)."""

    def limits(self) -> Limits:
        """Return the limits of the next worker."""
        return Limits(self.timeout_s, int(environment.usable_memory_bytes() * WORKER_MEMORY_SHARE))


def blank_sample(
    chain: Chain, dataset: StoredDataset, machine: str, *, rows: int, round_number: int, position: int
) -> Sample:
    """Return a sample of the save of a chain, without results yet."""
    return Sample(
        suite=chain.suite,
        operation=SAVE,
        dataset=chain.dataset,
        dataset_digest=dataset.digest,
        rows=rows,
        variant=chain.variant,
        library=chain.library,
        conditions=chain.conditions,
        machine=machine,
        round=round_number,
        position=position,
    )


def execute(
    bench: Bench,
    chain: Chain,
    dataset: StoredDataset,
    *,
    rows: int,
    round_number: int,
    position: int,
    need_bytes: int,
    wanted: Sequence[str] | None = None,
) -> list[Sample]:
    """Execute a chain once on the first `rows` rows. Return one sample for each executed operation, in order.

    `wanted` are the operations to measure, by default all operations of the chain. Other operations on which these
    depend are executed too, such as the save before a read. `need_bytes` is the expected memory of an operation. All
    samples are returned together, because a save counts only if an operation that reads all data passes.
    """
    operations = chain.needed_for(chain.operations if wanted is None else wanted)
    verified = VERIFYING in operations
    first = blank_sample(chain, dataset, bench.machine, rows=rows, round_number=round_number, position=position)
    samples: list[Sample] = []
    with _chain_folder(bench.folder, position) as folder:
        for number, operation in enumerate(operations):
            in_service = operation not in chain.operations or (operation == SAVE and not verified)
            blank = changed(first, operation=operation, position=position + number, in_service=in_service)
            saved = samples[0].failure if samples else None
            if saved is not None:
                samples.append(changed(blank, failure=_consequence(saved)))
                continue
            last = number == len(operations) - 1
            try:
                samples.append(_operation(bench, chain, blank, folder, dataset, need_bytes, last))
            except (OperationFailed, OSError) as error:
                samples.append(changed(blank, failure=_failure(error)))
    return _judged(samples)


def _failure(error: OperationFailed | OSError) -> Failure:
    if isinstance(error, OperationFailed):
        return error.failure
    kind = "disk" if error.errno == errno.ENOSPC else "error"
    return Failure(kind=kind, reason=f"{type(error).__name__}: {error}")


def _consequence(failure: Failure) -> Failure:
    """Return the failure to record for an operation that was not run, because the save of its chain failed with
    `failure`."""
    if not failure.is_failure:
        return failure
    return Failure(kind="skipped", reason=f"its {SAVE} failed: {failure.reason}"[:400])


def _judged(samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples of an execution after the verification. If an operation that reads all data found other data
    than were saved, no sample has figures. If all operations that read all data failed for another reason, the save has
    no figures, because its copy was not verified."""
    seeing = [sample for sample in samples if sample.operation == VERIFYING]
    failures = [sample.failure for sample in seeing if sample.failure is not None]
    for failure in failures:
        if failure.kind == "mismatch":
            return [_without_figures(sample, failure) for sample in samples]
    if failures and len(failures) == len(seeing):
        return [_without_figures(samples[0], failures[0]), *samples[1:]]
    return list(samples)


def _without_figures(sample: Sample, failure: Failure) -> Sample:
    """Return the sample without figures, because its stored copy was not verified."""
    if sample.failure is not None:
        return sample
    kind = "skipped" if failure.is_failure else failure.kind
    unverified = Failure(kind=kind, reason=f"not verified, because the read failed: {failure.reason}"[:400])
    return changed(
        sample,
        figures={},
        fidelity=None,
        saw_all=False,
        losses=(),
        codec=None,
        encodings=(),
        unsettled=False,
        failure=unverified,
    )


@contextmanager
def stored_copy(bench: Bench, chain: Chain, dataset: StoredDataset, *, position: int) -> Iterator[Path]:
    """Save a chain's copy and sync it, yield its path, and remove it afterwards. Raises OperationFailed."""
    with _chain_folder(bench.folder, position) as folder:
        task = measure_task(
            chain,
            SAVE,
            dataset,
            folder,
            rows=dataset.rows,
            need_bytes=dataset.size_bytes,
            last=False,
            settler=bench.settler,
        )
        outcome = bench.launcher.run(task, bench.limits())
        if outcome.failure is not None:
            raise OperationFailed(outcome.failure)
        yield stored_at(chain, folder)


@contextmanager
def _chain_folder(work_folder: Path, position: int) -> Iterator[Path]:
    """Make a separate folder for each execution, so that every save has a fresh path (rule 4). Remove the folder
    afterwards."""
    folder = work_folder / f"chain-{position}"
    try:
        make_places(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _operation(
    bench: Bench, chain: Chain, blank: Sample, folder: Path, dataset: StoredDataset, need_bytes: int, last: bool
) -> Sample:
    began_ns = now_ns()
    operation = operation_of(blank.operation)
    location = stored_at(chain, folder)
    bench.settler.examine_more(need_bytes, environment.usable_memory_bytes)
    task = measure_task(
        chain,
        operation.spelled,
        dataset,
        folder,
        rows=blank.rows,
        need_bytes=need_bytes,
        last=last,
        settler=bench.settler,
        thorough=(chain.variant, operation.spelled) in bench.thorough,
        block_ns=bench.block_ns,
    )
    adapter = _adapter(chain)
    saves = operation.spelled == SAVE
    services = () if saves or not chain.conditions.network else adapter.services(location)
    cached, sizes = None, {}
    with _serving(bench, chain, services, blank.position) as found:
        if not saves:
            # Prepare the page cache after services have started, because services may read parts of the copy.
            cached = bring_into_cache(adapter.data_of(location), chain.conditions.cache)
        outcome, monitor = _run(bench, chain, task, found)
    if outcome.failure is not None:
        raise OperationFailed(outcome.failure)
    measured = outcome.answer(Measured)
    bench.settler.learn_from(measured.rest)
    if measured.collected:
        bench.thorough.add((chain.variant, operation.spelled))
    if saves:
        _refuse_strays(folder, location)
        sizes = _sizes(adapter.sized_at(location))
    sample = assembled(
        blank, measured, outcome, readiness=bench.settler.readiness, cached=cached, sizes=sizes, services=monitor
    )
    harness_ns = max(now_ns() - began_ns - sample.taken_ns, 0)
    return changed(sample, figures={**sample.figures, "harness_ns": harness_ns})


def _adapter(chain: Chain) -> Adapter:
    """Return the adapter of the chain's variant. Its declarations can be used, but its library is not loaded."""
    engine, settings = registries.engine_of(chain.spelled)
    return engine(settings)


@contextmanager
def _serving(bench: Bench, chain: Chain, services: Sequence[Service], position: int) -> Iterator[Running | None]:
    """Start the services of one operation. Yield None if the operation has no services."""
    if not services:
        yield None
        return
    try:
        with running(services, chain.conditions.network, bench.folder / f"services-{position}") as found:
            yield found
    except ServiceFailed as failed:
        raise OperationFailed(Failure(kind="crash", reason=str(failed))) from failed


def _run(bench: Bench, chain: Chain, task: MeasureTask, found: Running | None) -> tuple[Outcome, ServiceMonitor | None]:
    """Run the worker. Return its outcome, and the monitor of the services that the operation uses, or None without
    services."""
    if found is None:
        return bench.launcher.run(task, bench.limits()), None
    fresh = chain.conditions.service == "fresh"
    monitor = ServiceMonitor(found.process_ids, found.counters)
    try:
        asking = msgspec.structs.replace(task, served=found.served, fresh_services=fresh)
        outcome = bench.launcher.run(asking, bench.limits(), monitor=monitor)
        found.check(END_GRACE_S if outcome.failure is not None and outcome.failure.is_failure else 0.0)
        return outcome, monitor
    finally:
        monitor.close()


def _sizes(location: Path) -> dict[str, int]:
    files = [path.stat() for path in linux.files_below(location)]
    if not files:
        raise OperationFailed(Failure(kind="mismatch", reason=f"the save stored nothing at its path, {location.name}"))
    return {
        "size_bytes": sum(file.st_size for file in files),
        "allocated_bytes": sum(file.st_blocks * 512 for file in files),
        "files_count": len(files),
    }


def _refuse_strays(folder: Path, location: Path) -> None:
    """Raise OperationFailed if the save wrote outside its path. The size of the stored copy would be wrong, and two
    runs could overwrite each other's files."""
    strays = [path for path in (folder / "stored").iterdir() if path != location]
    strays += (folder / "scratch").iterdir()
    strays += [path for path in folder.iterdir() if path.name not in ("stored", "primer", "scratch", "printed")]
    if strays:
        names = ", ".join(sorted(os.fspath(path.relative_to(folder)) for path in strays)[:3])
        raise OperationFailed(Failure(kind="mismatch", reason=f"the save also wrote files outside its path: {names}"))
